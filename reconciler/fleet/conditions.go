package fleet

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/render/intent"
)

// conditions returns the configuration's demands on each item, by its name.
func conditions(items []*item) map[string]gates.Conditions {
	order := chains{direct: map[string][]string{}, lists: map[string][]string{}}
	for _, it := range items {
		order.direct[it.name] = it.waitsFor
	}
	out := make(map[string]gates.Conditions, len(items))
	for _, it := range items {
		c := gates.Conditions{Rendered: it.wanted(), DependsOn: order.before(it.name), Seq: it.desired.Seq}
		c.Wanted = c.Rendered + it.configured()
		// Zones were found when the configuration was read.
		c.Windows, _ = it.target.Calendar()
		out[it.name] = c
	}
	return out
}

// wanted identifies all that an item wants; empty if that is unknown. It is keyed, since user data
// may hold secrets that are easily guessed.
func (it *item) wanted() string {
	d := &it.desired
	if d.Set == nil {
		return ""
	}
	sum := it.heldSum
	if sum == "" {
		if r := it.render; r.sumOf != r.result {
			r.sum, r.sumOf = sumOfSet(d.Policy.DigestKey, d.Set), r.result
		}
		sum = it.render.sum
	}
	m := hmac.New(sha256.New, d.Policy.DigestKey)
	fmt.Fprintf(m, "%q", []any{sum, it.key.Account, it.key.Region, d.Network.VPCID, d.Network.SubnetIDs, d.Network.SecurityGroupIDs})
	return hex.EncodeToString(m.Sum(nil))
}

// configured identifies the configuration of an item outside of its render, as far as a plan
// depends on it. It is short, because each report has one.
func (it *item) configured() string {
	p := it.desired.Policy
	return fmt.Sprint(" ", p.ReportOnly, p.Suspended, p.KeepVersions, p.Prune.Enabled, p.Prune.Percent, p.Prune.Count, p.Adoption.Annotated)
}

// sumOfSet stands for a render's intents. User data is left out of their own JSON, and
// may be no text.
func sumOfSet(key []byte, set *intent.Set) string {
	m := hmac.New(sha256.New, key)
	if err := json.NewEncoder(m).Encode(set); err != nil {
		panic("intents are plain values: " + err.Error())
	}
	for i := range set.Pools {
		if t := set.Pools[i].LaunchTemplate; t != nil {
			fmt.Fprintf(m, "%d %q\n", i, t.UserData.Text)
		}
	}
	return hex.EncodeToString(m.Sum(nil))
}
