package manifest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
)

var optionsNodegroup = path("spec", "nodegroup")

// NodegroupOptions are the members of EKS's CreateNodegroup, UpdateNodegroupConfig
// and UpdateNodegroupVersion that AWSManagedMachinePool does not have.
type NodegroupOptions struct {
	// Force is UpdateNodegroupVersion's: an update ends pods that a disruption
	// budget protects.
	Force            bool                      `json:"force"`
	InstanceTypes    []string                  `json:"instanceTypes"`
	NodeRepairConfig *RepairOptions            `json:"nodeRepairConfig"`
	UpdateConfig     *UpdateOptions            `json:"updateConfig"`
	WarmPoolConfig   *intent.NodegroupWarmPool `json:"warmPoolConfig"`
}

func (NodegroupOptions) unknownHint(name string) string {
	at, ofPool := nodegroupOfPool()[name]
	switch {
	case ofPool:
		return "write spec." + at + " in the pool"
	case name == "version":
		return "write spec.template.spec.version in the MachinePool"
	}
	return ""
}

// nodegroupOfPool are EKS's members that a pool's own manifests set, with the
// field below spec that does so.
func nodegroupOfPool() map[string]string {
	return map[string]string{
		"amiType": "amiType", "capacityType": "capacityType", "diskSize": "diskSize", "labels": "labels", "launchTemplate": "awsLaunchTemplate",
		"nodeRole": "roleName", "nodegroupName": "eksNodegroupName", "releaseVersion": "amiVersion", "remoteAccess": "remoteAccess",
		"scalingConfig": "scaling", "subnets": "subnetIDs", "tags": "additionalTags", "taints": "taints",
	}
}

// RepairOptions are EKS's node repair beyond switching it on.
type RepairOptions struct{ intent.RepairOptions }

func (RepairOptions) unknownHint(name string) string {
	if name == "enabled" {
		return "write spec.nodeRepairConfig.enabled in the pool"
	}
	return ""
}

// UpdateOptions are EKS's update configuration beyond how many nodes may be away.
type UpdateOptions struct{ intent.UpdateConfig }

func (UpdateOptions) unknownHint(name string) string {
	switch name {
	case "maxUnavailable", "maxUnavailablePercentage":
		return "write spec.updateConfig." + name + " in the pool"
	}
	return ""
}

// maxNodegroupTypes is how many instance types EKS takes: instanceTypes of
// CreateNodegroup in its API reference.
const maxNodegroupTypes = 20

// checkNodegroupOptions applies the rules of EKS that can be told from the options
// by themselves.
func checkNodegroupOptions(r reporter, n *NodegroupOptions) {
	if n == nil {
		return
	}
	at := optionsNodegroup.Join("instanceTypes")
	if len(n.InstanceTypes) > maxNodegroupTypes {
		r.error(at, "out-of-range", fmt.Sprintf("%s has %d instance types; EKS takes %d", at, len(n.InstanceTypes), maxNodegroupTypes), "")
	}
	types := n.types()
	for i, t := range n.InstanceTypes {
		if j := slices.Index(n.InstanceTypes, t); j < i {
			r.to.add(Fault{Code: "duplicate", Summary: fmt.Sprintf("instance type %q is written twice", t), Ref: r.ref, Path: types[i].at,
				Related: []RelatedField{{Ref: r.ref, Path: types[j].at, Message: "the other one"}}})
		}
	}
	checkKnownTypes(r, types)
	checkOneArchitecture(r, types)
	if p := n.NodeRepairConfig; p != nil {
		at := optionsNodegroup.Join("nodeRepairConfig")
		for _, pair := range []struct {
			count, percentage int32
			field             string
		}{{p.MaxParallelNodesRepairedCount, p.MaxParallelNodesRepairedPercentage, "maxParallelNodesRepaired"}, {p.MaxUnhealthyNodeThresholdCount, p.MaxUnhealthyNodeThresholdPercentage, "maxUnhealthyNodeThreshold"}} {
			if pair.count > 0 && pair.percentage > 0 {
				r.error(at.Join(pair.field+"Percentage"), "exclusive", at.Join(pair.field+"Percentage").String()+" excludes "+pair.field+"Count", "")
			}
		}
	}
	if w := n.WarmPoolConfig; w != nil && w.MaxGroupPreparedCapacity != nil && w.MinSize != nil && *w.MaxGroupPreparedCapacity >= 0 && *w.MinSize > *w.MaxGroupPreparedCapacity {
		at := optionsNodegroup.Join("warmPoolConfig", "minSize")
		r.error(at, "out-of-range", fmt.Sprintf("%s is %d, above maxGroupPreparedCapacity %d", at, *w.MinSize, *w.MaxGroupPreparedCapacity), "")
	}
}

func (n *NodegroupOptions) types() []typeField {
	out := make([]typeField, 0, len(n.InstanceTypes))
	for i, t := range n.InstanceTypes {
		out = append(out, typeField{at: optionsNodegroup.Join("instanceTypes", intent.Index(i)), name: t})
	}
	return out
}

// applyNodegroupOptions adds to a pool what its PoolOptions says of its nodegroup.
func (b *builder) applyNodegroupOptions(d *draft, o *object[PoolOptionsSpec]) {
	n := o.Spec.Nodegroup
	if n == nil {
		return
	}
	d.options = o.reporter(d.faults)
	if d.Nodegroup == nil {
		d.options.error(optionsNodegroup, "not-allowed", optionsNodegroup.String()+" is not allowed for an AWSMachinePool, which has no nodegroup", "write spec.autoScalingGroup, or use an AWSManagedMachinePool")
		return
	}
	pool := b.index.managedPools[keyOf(d.Infrastructure)]
	d.Nodegroup.Force = n.Force
	d.nodegroupTypes(pool, n)
	if p := n.NodeRepairConfig; p != nil {
		d.Nodegroup.RepairOptions = &p.RepairOptions
		if !intent.Value(d.Nodegroup.NodeRepair) {
			d.options.info(optionsNodegroup.Join("nodeRepairConfig"), "not-carried", optionsNodegroup.Join("nodeRepairConfig").String()+" has no effect while node repair is off",
				"write spec.nodeRepairConfig.enabled: true in the pool")
		}
	}
	if n.UpdateConfig != nil {
		d.Nodegroup.UpdateConfig.UpdateStrategy = n.UpdateConfig.UpdateStrategy
	}
	d.nodegroupWarming(pool, n.WarmPoolConfig)
}

// nodegroupTypes takes the list of instance types, which excludes a single one.
func (d *draft) nodegroupTypes(pool *object[AWSManagedMachinePoolSpec], n *NodegroupOptions) {
	if len(n.InstanceTypes) == 0 {
		return
	}
	at := optionsNodegroup.Join("instanceTypes")
	for _, one := range []struct {
		at   intent.Path
		name string
	}{{path("spec", "instanceType"), intent.Value(pool.Spec.InstanceType)}, {path("spec", "awsLaunchTemplate", "instanceType"), templateTypeName(pool.Spec.AWSLaunchTemplate)}} {
		if one.name != "" {
			d.optionsExclude(at, one.at, "write all instance types in the options, and none in the pool")
			return
		}
	}
	if f := d.LaunchTemplate; f != nil && f.Data.InstanceType != "" {
		d.options.error(at, "exclusive", at.String()+" excludes an instance type in the pool's launch template", "remove the one of the launch template")
		return
	}
	d.Nodegroup.InstanceTypes = slices.Clone(n.InstanceTypes)
	checkAMIType(d.options, d.Infrastructure, &pool.Spec, n.types(), pool.source.has("spec", "amiType"))
}

func templateTypeName(lt *LaunchTemplate) string {
	if lt == nil {
		return ""
	}
	return lt.InstanceType
}

// nodegroupWarming takes the warm pool: "Use warm pools with managed node groups"
// in EKS's user guide, and WarmPoolConfig in its API reference.
func (d *draft) nodegroupWarming(pool *object[AWSManagedMachinePoolSpec], w *intent.NodegroupWarmPool) {
	if w == nil {
		return
	}
	at := optionsNodegroup.Join("warmPoolConfig")
	d.Nodegroup.WarmPool = w
	if !intent.Value(w.Enabled) {
		return
	}
	bottlerocket := strings.HasPrefix(string(pool.Spec.AMIType), "BOTTLEROCKET_")
	switch {
	case managedImage(&pool.Spec):
		d.options.error(at, "exclusive", at.String()+" is not possible with an image of one's own", "EKS has warm pools for its own images only")
	case bottlerocket && w.PoolState == "HIBERNATED":
		d.options.error(at.Join("poolState"), "exclusive", at.Join("poolState").String()+" HIBERNATED is not possible with Bottlerocket", "write STOPPED or RUNNING")
	case bottlerocket && intent.Value(w.ReuseOnScaleIn):
		d.options.error(at.Join("reuseOnScaleIn"), "exclusive", at.Join("reuseOnScaleIn").String()+" is not possible with Bottlerocket", "")
	}
	if pool.Spec.CapacityType == "spot" {
		d.options.warn(at, "exclusive", at.String()+": Auto Scaling has no warm pools of spot instances", "write spec.capacityType: onDemand in the pool")
	}
}
