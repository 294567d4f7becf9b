package preflight

import (
	"fmt"

	"github.com/weir-gitops/weir/render/intent"
)

// refreshSurge returns the minimum number of units, out of n, that an instance refresh launches before it
// terminates others. The refresh's own percentages count, or the group's maintenance policy if it has none.
// Without a maximum, Auto Scaling terminates machines first. With a maximum, it does so only if the minimum
// permits one less.
func (l *launch) refreshSurge(p intent.Refresh, n int64) int64 {
	least, most := p.MinHealthyPercentage, p.MaxHealthyPercentage
	if m := l.pool.Group.Options.InstanceMaintenancePolicy; m != nil && least == nil && most == nil && intent.Value(m.MaxHealthyPercentage) >= 100 {
		least, most = m.MinHealthyPercentage, m.MaxHealthyPercentage
	}
	if most == nil || n <= 0 || p.Strategy == "ReplaceRootVolume" { // nothing is launched
		return 0
	}
	down := int64(90)
	if least != nil {
		down = int64(*least)
	}
	if up := n*int64(*most)/100 - n; up > 0 {
		return up
	}
	if n-(n*down+99)/100 < 1 {
		return 1
	}
	return 0
}

// surges adds the machines that a rollout launches before it terminates others.
func (l *launch) surges(units int64) {
	before := l.more
	l.grow(units)
	l.surging += l.more - before
}

// onlySurges reports whether all additional machines are for the rollout.
func (l *launch) onlySurges() bool { return l.surging > 0 && l.more == l.surging }

// endsFirst returns the setting that makes the rollout terminate machines before it launches others, and its
// field.
func (l *launch) endsFirst() (object intent.ObjectRef, path intent.Path, advice string) {
	if l.pool.Nodegroup != nil {
		object, path = l.pool.Options, intent.Path{"spec", "nodegroup", "updateConfig", "updateStrategy"}
		if object.Kind == "" {
			object, path = l.pool.Infrastructure, intent.Path{"spec", "updateConfig"}
		}
		return object, path, "or let EKS terminate machines before it launches others: spec.nodegroup.updateConfig.updateStrategy: MINIMAL in the pool's PoolOptions"
	}
	// The largest percentage that permits one machine less.
	least := int64(90)
	if n := int64(l.before.desired); n > 0 {
		least = min(least, (n-1)*100/n)
	}
	advice = ""
	if m := l.pool.Group.MixedInstancesPolicy; m != nil && len(m.Overrides) > 0 && l.before.warm == nil && l.pool.Group.Refresh.Strategy != "ReplaceRootVolume" {
		advice = ", or if only the image changes, let AWS replace root volumes without launching machines: spec.autoScalingGroup.refreshPreferences.strategy: ReplaceRootVolume in the pool's PoolOptions"
	}
	return l.pool.Infrastructure, intent.Path{"spec", "refreshPreferences"}, fmt.Sprintf("or let AWS terminate machines before it launches others: spec.refreshPreferences {minHealthyPercentage: %d, maxHealthyPercentage: 100} in the pool's AWSMachinePool", least) + advice
}
