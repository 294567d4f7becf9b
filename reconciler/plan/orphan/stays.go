package orphan

import (
	"slices"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// brought reports whether a pool brings the template along: it stays then, even
// if it has tags of ours.
func brought(in basis.Input, t observed.Template) bool {
	if in.Fleet.Brought[t.Name] || in.Fleet.Brought[t.ID] {
		return true
	}
	return slices.ContainsFunc(in.Set.Pools, func(p intent.Pool) bool {
		return slices.ContainsFunc(basis.ForeignTemplates(&p), func(f intent.ForeignTemplate) bool { return f.Lookup.Name == t.Name || f.Lookup.Name == t.ID })
	})
}

// replaceable reports whether the orphan is a nodegroup of a pool that some target
// wants: planning that pool decides what becomes of it.
func replaceable(in basis.Input, name observed.NodegroupName) bool {
	for i := range in.Set.Pools {
		p := &in.Set.Pools[i]
		n := p.Nodegroup
		if n == nil || n.ClusterName != name.Cluster || !basis.StandsFor(name.Name, n.Name) {
			continue
		}
		if slices.ContainsFunc(in.NodegroupsOf(p), func(have observed.Nodegroup) bool { return have.NodegroupName == name }) {
			return true
		}
	}
	base, _, cut := basis.CutSuffix(name.Name)
	wanted := observed.NodegroupName{Cluster: name.Cluster, Name: base}
	target := in.Fleet.Wanted[basis.Claim{Resource: step.ManagedNodegroup, Name: base, Cluster: name.Cluster}]
	if !cut || target == "" || target == in.Policy.Target {
		return false
	}
	// That target's pool takes no other pool's nodegroup where it has one of its own.
	return !slices.ContainsFunc(append([]observed.NodegroupName{wanted}, in.Index.Replacements[wanted]...), func(own observed.NodegroupName) bool {
		tags := in.State.Nodegroups[own].Tags
		return tags[observed.TagOwner] == in.Policy.Instance && tags[observed.TagTarget] == target && tags[observed.TagPool] != in.State.Nodegroups[name].Tags[observed.TagPool]
	})
}
