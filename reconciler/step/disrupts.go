package step

import (
	"slices"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// EndsMachines reports whether the update of a group makes Auto Scaling end running machines, and
// how many, 0 if that is unknown. A smaller size ends them at once. Fewer subnets, another share of
// on-demand capacity or a shorter lifetime of machines end them gradually, each replaced by
// another. Sources: InstancesDistribution and MaxInstanceLifetime in the API reference, "Add and
// remove Availability Zones" in the user guide. Such an update waits for a window, like a rollout.
func (u UpdateGroup) EndsMachines(have observed.Group) (ends bool, instances int) {
	if len(have.Instances) == 0 {
		return false, 0
	}
	size := have.DesiredCapacity
	if u.DesiredCapacity != nil {
		size = *u.DesiredCapacity
	}
	if u.MaxSize != nil {
		size = min(size, *u.MaxSize)
	}
	if size < have.DesiredCapacity {
		return true, min(int(have.DesiredCapacity-size), len(have.Instances))
	}
	leaves := len(u.SubnetIDs) > 0 && slices.ContainsFunc(have.SubnetIDs, func(id string) bool { return !slices.Contains(u.SubnetIDs, id) })
	life := u.Options.MaxInstanceLifetime
	return leaves || life != nil && *life > 0 || u.Template != nil && otherShares(have.MixedInstancesPolicy, u), 0
}

// otherShares reports whether a new launch configuration of a group changes the share of on-demand
// capacity.
func otherShares(have *intent.MixedInstances, u UpdateGroup) bool {
	base, above := shares(have)
	wantBase, wantAbove := shares(u.MixedInstancesPolicy)
	return base != wantBase || above != wantAbove
}

// shares returns the on-demand capacity of a policy: a base number, and the percentage above the
// base. Without a policy, all capacity is on-demand.
func shares(m *intent.MixedInstances) (base, above int32) {
	if m == nil || m.OnDemandPercentageAboveBaseCapacity == 100 {
		return 0, 100
	}
	return m.OnDemandBaseCapacity, m.OnDemandPercentageAboveBaseCapacity
}
