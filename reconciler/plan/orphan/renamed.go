package orphan

import (
	"slices"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
)

// renamedTo returns the name of a pool's group or nodegroup in Git. It is empty if the pool is not
// in Git or has no resource of the kind.
func (c *orphans) renamedTo(r step.Resource, pool string) string {
	switch p := c.in.Pool(pool); {
	case p == nil:
	case r == step.AutoScalingGroup && p.Group != nil:
		return p.Group.Name
	case r == step.ManagedNodegroup && p.Nodegroup != nil:
		return p.Nodegroup.Name
	}
	return ""
}

// unwanted explains why Git does not want the orphan.
func (o *orphan) unwanted() string {
	if o.now != "" {
		return "the pool has the " + string(o.claim.Resource) + " " + o.now + " in Git"
	}
	return "Git no longer wants it"
}

// keepsRenamed reports whether the orphan is the resource of a pool under an earlier name, and the
// pool does not allow weir to replace it.
func (c *orphans) keepsRenamed(o orphan) bool {
	if o.now == "" || c.in.Pool(o.pool).AllowReplace {
		return false
	}
	c.report(diag.Warning, o, "orphan-kept", o.unwanted()+", and nothing allows weir to replace it, so it stays",
		"delete it by hand, or write the annotation weir.dev/replace: allowed in the pool, which makes weir delete it")
	return true
}

// replacementNotReady reports whether the orphan must stay because its replacement in Git cannot take
// over yet. A nodegroup can once it is ACTIVE, a group once it has as many healthy machines in service
// as it desires. If Git does not set the size, an autoscaler may have made the old group larger than
// the new one starts. The new group then needs as many machines as the old group desires, up to its
// own maximum.
func (c *orphans) replacementNotReady(o orphan) bool {
	pool := c.in.Pool(o.pool)
	if pool == nil {
		return false
	}
	known := c.pools.Of(pool.Key)
	if known.Unplanned() != "" {
		return true
	}
	if pool.Nodegroup != nil {
		have, ok := c.in.State.Nodegroups[known.Nodegroup]
		return !ok || have.Status != "ACTIVE"
	}
	have, ok := c.in.State.Groups[pool.Group.Name]
	if !ok || have.Deleting {
		return true
	}
	ready := int32(0)
	for _, i := range have.Instances {
		if i.LifecycleState == "InService" && i.Health == "Healthy" {
			ready++
		}
	}
	least := have.DesiredInstances()
	written := pool.Replicas.Written && !pool.ReplicasManagedExternally
	if old, ok := c.in.State.Groups[o.claim.Name]; ok && !written && o.claim.Resource == step.AutoScalingGroup && o.claim.Name != pool.Group.Name {
		least = max(least, min(old.DesiredInstances(), have.MaxSize))
	}
	return ready < least
}

// replaceable reports whether the orphan is a nodegroup of a pool that some target wants. Planning
// that pool decides about it.
func replaceable(in model.Input, name observed.NodegroupName) bool {
	for i := range in.Set.Pools {
		p := &in.Set.Pools[i]
		n := p.Nodegroup
		if n == nil || n.ClusterName != name.Cluster || !model.StandsFor(name.Name, n.Name) {
			continue
		}
		if slices.ContainsFunc(in.NodegroupsOf(p), func(have observed.Nodegroup) bool { return have.NodegroupName == name }) {
			return true
		}
	}
	base, _, cut := model.CutSuffix(name.Name)
	wanted := observed.NodegroupName{Cluster: name.Cluster, Name: base}
	target := in.Fleet.Wanted[model.Claim{Resource: step.ManagedNodegroup, Name: base, Cluster: name.Cluster}]
	if !cut || target == "" || target == in.Policy.Target {
		return false
	}
	// A pool of that target does not take over another pool's nodegroup if it has one of its own.
	return !slices.ContainsFunc(append([]observed.NodegroupName{wanted}, in.Index.Replacements[wanted]...), func(own observed.NodegroupName) bool {
		tags := in.State.Nodegroups[own].Tags
		return tags[observed.TagOwner] == in.Policy.Instance && tags[observed.TagTarget] == target && tags[observed.TagPool] != in.State.Nodegroups[name].Tags[observed.TagPool]
	})
}
