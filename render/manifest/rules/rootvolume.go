package rules

import (
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// CheckRootVolumes checks the refresh strategy ReplaceRootVolume: "Replace root volumes during instance
// refresh" in the user guide of Auto Scaling. weir sets the image of overrides that have none.
func (d *Derived) CheckRootVolumes(pool *kinds.Decoded[kinds.AWSMachinePoolSpec], o kinds.PoolOptionsSpec) {
	if d.Group.Refresh.Strategy != "ReplaceRootVolume" {
		return
	}
	at := kinds.OptionsGroup.Join("refreshPreferences", "strategy")
	refuse := func(code, why, advice string) {
		d.AtOptions.Error(at, code, at.String()+" ReplaceRootVolume "+why, advice)
	}
	if p := pool.Spec.RefreshPreferences; p != nil && intent.Value(p.Strategy) != "" {
		refuse("exclusive", "excludes spec.refreshPreferences.strategy in the pool", "write it in one place")
	}
	if o.Drainer != nil {
		refuse("exclusive", "excludes spec.drainer", "AWS asks the drainer's hook about machines that stay, and weir does not complete it for them")
	}
	if o.AutoScalingGroup.WarmPool != nil {
		refuse("exclusive", "excludes warmPool", "AWS replaces no root volumes in a group with a warm pool")
	}
	m := d.Group.MixedInstancesPolicy
	if m == nil || len(m.Overrides) == 0 {
		refuse("incomplete", "needs mixedInstancesPolicy.overrides, one at least", "AWS takes the image from the overrides alone; one with the pool's instance type will do")
		return
	}
	for _, o := range m.Overrides {
		if o.InstanceType == "" || o.LaunchTemplate != nil {
			refuse("exclusive", "excludes overrides without instanceType or with a launch template of their own", "name instance types, and images where they differ from the pool's")
			return
		}
	}
}
