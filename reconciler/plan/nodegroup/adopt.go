package nodegroup

import (
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// adoptNodegroup is adoptGroup for a nodegroup. Its tags must be those of this
// pass: what is remembered may be out of date.
func (c Planner) adoptNodegroup(pool *intent.Pool, n *observed.Nodegroup, o *basis.Ownership) bool {
	a := basis.Adopting{Resource: step.ManagedNodegroup, Name: n.Name, Have: n.Tags}
	want := c.In.Policy.AllTags(pool, pool.Nodegroup.Tags)
	if n.Status == "DELETING" || !c.In.MayAdopt(pool, a.Have, want, o) {
		return false
	}
	if !n.DescribedAtPass && !c.In.Policy.OnlyShows() {
		c.Needs.Nodegroups = append(c.Needs.Nodegroups, n.NodegroupName)
	}
	a.Put, a.Remove = basis.MissingTags(observed.WithTags(want, map[string]string{observed.TagAdopted: basis.AdoptedFor(pool)}), a.Have)
	c.Adopt(pool, a, step.TagNodegroup{NodegroupName: n.NodegroupName, ARN: n.ARN, Put: a.Put, Remove: a.Remove})
	n.Tags = a.Tags()
	return true
}
