package derive

import (
	"slices"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// Derived is a pool that is being derived, as far as rules look at it: with the object
// that it comes from, its cluster, and faults of its own, so that one error drops the
// pool and not the others.
type Derived struct {
	intent.Pool
	Source *kinds.Decoded[kinds.MachinePoolSpec]
	// Cluster is nil until the pool's own object was read.
	Cluster *Cluster
	Faults  *kinds.Faults
	// These report at the pool's MachinePool, at its own object and at its PoolOptions.
	AtMachinePool, AtPool, AtOptions kinds.Reporter
}

// Cluster is what rules look at of a pool's cluster.
type Cluster struct {
	// TagName stands in the keys of its tags.
	TagName string
	Region  string
	Network kinds.Network
}

// check checks a derived pool against its cluster and its bootstrap
// configuration. Of a pool that could not be derived, parts are missing.
func (d *Derived) check(x *kinds.Index) {
	if d.Cluster == nil {
		return
	}
	d.checkTagLengths()
	d.checkMetadataTags()
	switch d.Kind {
	case intent.GroupPool:
		o, ok := x.Pools[kinds.KeyOf(d.Infrastructure)]
		if !ok || d.Group == nil {
			return
		}
		d.checkPlacement(o.Spec.AvailabilityZones, o.Spec.AvailabilityZoneSubnetType, len(o.Spec.Subnets) > 0, "spec.subnets")
		d.checkFilterVPC(path("spec", "subnets"), o.Spec.Subnets)
		if d.LaunchTemplate != nil {
			d.checkImageArchitecture(&o.Spec.AWSLaunchTemplate, kinds.GroupTypes(&o.Spec))
			d.checkBootstrapFitsImage(kinds.EKSFamily(d.LaunchTemplate.Image))
		}
	case intent.NodegroupPool:
		o, ok := x.ManagedPools[kinds.KeyOf(d.Infrastructure)]
		if !ok || d.Nodegroup == nil {
			return
		}
		d.checkPlacement(o.Spec.AvailabilityZones, o.Spec.AvailabilityZoneSubnetType, len(o.Spec.SubnetIDs) > 0, "spec.subnetIDs")
		if d.LaunchTemplate != nil && o.Spec.AWSLaunchTemplate != nil {
			if !slices.ContainsFunc(d.Faults.List, func(f kinds.Fault) bool { return f.Code == "too-many-tags" }) {
				d.checkTagCount(d.LaunchTemplate.Tags)
			}
			if kinds.ManagedImage(&o.Spec) {
				d.checkImageArchitecture(o.Spec.AWSLaunchTemplate, kinds.NodegroupTypes(&o.Spec))
				d.checkBootstrapFitsImage(kinds.EKSFamily(d.LaunchTemplate.Image))
			} else {
				d.checkBootstrapFitsImage(o.Spec.AMIType.Family())
			}
		}
	}
}
