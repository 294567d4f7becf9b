package derive

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/manifest/rules"
)

// applyNodegroupOptions adds the nodegroup options of a pool's PoolOptions.
func applyNodegroupOptions(index *kinds.Index, d *draft, o *kinds.Decoded[kinds.PoolOptionsSpec]) {
	n := o.Spec.Nodegroup
	if n == nil {
		return
	}
	d.AtOptions = o.Reporter(d.Faults)
	if d.Nodegroup == nil {
		d.AtOptions.Error(kinds.OptionsNodegroup, "not-allowed", kinds.OptionsNodegroup.String()+" is not allowed for an AWSMachinePool, which has no nodegroup", "write spec.autoScalingGroup, or use an AWSManagedMachinePool")
		return
	}
	pool := index.ManagedPools[kinds.KeyOf(d.Infrastructure)]
	d.Nodegroup.Force = n.Force
	d.nodegroupTypes(pool, n)
	if p := n.NodeRepairConfig; p != nil {
		d.Nodegroup.RepairOptions = &p.RepairOptions
		if !intent.Value(d.Nodegroup.NodeRepair) {
			d.AtOptions.Info(kinds.OptionsNodegroup.Join("nodeRepairConfig"), "not-carried", kinds.OptionsNodegroup.Join("nodeRepairConfig").String()+" has no effect while node repair is off",
				"write spec.nodeRepairConfig.enabled: true in the pool")
		}
	}
	if n.UpdateConfig != nil {
		d.Nodegroup.UpdateConfig.UpdateStrategy = n.UpdateConfig.UpdateStrategy
	}
	d.nodegroupWarming(pool, n.WarmPoolConfig)
}

// nodegroupTypes sets the list of instance types, which excludes spec.instanceType.
func (d *draft) nodegroupTypes(pool *kinds.Decoded[kinds.AWSManagedMachinePoolSpec], n *kinds.NodegroupOptions) {
	if len(n.InstanceTypes) == 0 {
		return
	}
	at := kinds.OptionsNodegroup.Join("instanceTypes")
	for _, one := range []struct {
		at   intent.Path
		name string
	}{{path("spec", "instanceType"), intent.Value(pool.Spec.InstanceType)}, {path("spec", "awsLaunchTemplate", "instanceType"), templateTypeName(pool.Spec.AWSLaunchTemplate)}} {
		if one.name != "" {
			d.OptionsExclude(at, one.at, "write all instance types in the options, and none in the pool")
			return
		}
	}
	if f := d.LaunchTemplate; f != nil && f.Data.InstanceType != "" {
		d.AtOptions.Error(at, "exclusive", at.String()+" excludes an instance type in the pool's launch template", "remove the one in the launch template")
		return
	}
	d.Nodegroup.InstanceTypes = slices.Clone(n.InstanceTypes)
	rules.CheckAMIType(d.AtOptions, d.Infrastructure, &pool.Spec, n.Types(), pool.Source.Has("spec", "amiType"))
}

func templateTypeName(lt *kinds.LaunchTemplate) string {
	if lt == nil {
		return ""
	}
	return lt.InstanceType
}

// nodegroupWarming sets the warm pool: "Use warm pools with managed node groups" in EKS's user guide, and
// WarmPoolConfig in its API reference.
func (d *draft) nodegroupWarming(pool *kinds.Decoded[kinds.AWSManagedMachinePoolSpec], w *intent.NodegroupWarmPool) {
	if w == nil {
		return
	}
	at := kinds.OptionsNodegroup.Join("warmPoolConfig")
	d.Nodegroup.WarmPool = w
	if !intent.Value(w.Enabled) {
		return
	}
	bottlerocket := strings.HasPrefix(string(pool.Spec.AMIType), "BOTTLEROCKET_")
	switch {
	case kinds.ManagedImage(&pool.Spec):
		d.AtOptions.Error(at, "exclusive", at.String()+" is not possible with your own image", "EKS has warm pools for its own images only")
	case bottlerocket && w.PoolState == "HIBERNATED":
		d.AtOptions.Error(at.Join("poolState"), "exclusive", at.Join("poolState").String()+" HIBERNATED is not possible with Bottlerocket", "write STOPPED or RUNNING")
	case bottlerocket && intent.Value(w.ReuseOnScaleIn):
		d.AtOptions.Error(at.Join("reuseOnScaleIn"), "exclusive", at.Join("reuseOnScaleIn").String()+" is not possible with Bottlerocket", "")
	}
	if pool.Spec.CapacityType == "spot" {
		d.AtOptions.Warn(at, "exclusive", at.String()+": Auto Scaling has no warm pools of spot instances", "write spec.capacityType: onDemand in the pool")
	}
}
