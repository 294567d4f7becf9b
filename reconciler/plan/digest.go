package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sort"

	"github.com/weir-gitops/weir/reconciler/step"
)

// Digest identifies what the plan would do: SHA-256 over the target's name,
// account and region and each step's verb, resource, name and field changes, in
// order; a nodegroup's name is that within its EKS cluster. Revision, origins, counts and times are no part of it, so the same work
// has the same digest wherever it is planned. It is empty for a plan that was
// made without secrets.
func (p *Plan) Digest() string {
	if p.Secretless {
		return ""
	}
	type change struct {
		Field    string
		From, To any
	}
	type entry struct {
		Verb     step.Verb
		Resource step.Resource
		Name     string
		Cluster  string `json:",omitempty"`
		Changes  []change
	}
	var steps []entry
	for _, s := range p.Steps {
		d := entry{Verb: s.Verb, Resource: s.Resource, Name: s.Name, Cluster: s.About().EksCluster()}
		for _, c := range s.Changes {
			d.Changes = append(d.Changes, change{c.Field, c.From, c.To})
		}
		steps = append(steps, d)
	}
	sum := sha256.New()
	enc := json.NewEncoder(sum)
	// A Change holds JSON values only, so encoding cannot fail.
	_ = enc.Encode([]any{p.Target, p.Account, p.Region, steps})
	return hex.EncodeToString(sum.Sum(nil))
}

// CombinedDigest is the digest of several targets' plans: the hash of their
// digests, sorted. It is empty if one of them has none.
func CombinedDigest(plans []*Plan) string {
	var all []string
	for _, p := range plans {
		d := p.Digest()
		if d == "" {
			return ""
		}
		all = append(all, d)
	}
	sort.Strings(all)
	sum := sha256.New()
	for _, d := range all {
		sum.Write([]byte(d + "\n"))
	}
	return hex.EncodeToString(sum.Sum(nil))
}
