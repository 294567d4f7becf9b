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
		// It cannot fail: the time zones were checked when the configuration was read.
		c.Windows, _ = it.target.Calendar()
		out[it.name] = c
	}
	return out
}

// wanted identifies everything that an item wants. It is empty if that is unknown. It is a keyed hash,
// because user data may contain secrets that are easy to guess.
func (it *item) wanted() string {
	d := &it.desired
	if d.Set == nil {
		return ""
	}
	sum := it.heldSum
	if sum == "" {
		sum = it.render.intents(d.Policy.DigestKey)
	}
	m := hmac.New(sha256.New, d.Policy.DigestKey)
	fmt.Fprintf(m, "%q", []any{sum, it.key.Account, it.key.Region, d.Network.VPCID, d.Network.SubnetIDs, d.Network.SecurityGroupIDs})
	return hex.EncodeToString(m.Sum(nil))
}

// configured identifies the part of an item's configuration that its plan depends on and its render does not.
// It is short, because each report contains it.
func (it *item) configured() string {
	p := it.desired.Policy
	return fmt.Sprint(" ", p.ReportOnly, p.Suspended, p.KeepVersions, p.Prune.Enabled, p.Prune.Percent, p.Prune.Count, p.Adoption.Annotated)
}

// sumOfSet returns a hash of intents. It adds user data, which is not part of their JSON.
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
