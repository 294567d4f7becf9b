package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// Derived is a pool during derivation, with the values that rules need: its MachinePool, its cluster, and its
// own faults, so that an error drops only this pool.
type Derived struct {
	intent.Pool
	Source *kinds.Decoded[kinds.MachinePoolSpec]
	// Cluster is nil until the pool's own object is read.
	Cluster *Cluster
	Faults  *kinds.Faults
	// Reporters for the pool's MachinePool, its own object and its PoolOptions.
	AtMachinePool, AtPool, AtOptions kinds.Reporter
}

// Cluster has the values of a pool's cluster that rules check.
type Cluster struct {
	// TagName is a part of the keys of the cluster's tags.
	TagName string
	Region  string
	Network kinds.Network
}

// Check checks a derived pool against its cluster and its bootstrap configuration. Parts are missing if the
// pool could not be derived.
func (d *Derived) Check(x *kinds.Index) {
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
			d.checkLookedUpVolumes(&o.Spec.AWSLaunchTemplate)
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
				d.CheckTagCount(d.LaunchTemplate.Tags)
			}
			if kinds.ManagedImage(&o.Spec) {
				d.checkLookedUpVolumes(o.Spec.AWSLaunchTemplate)
				d.checkImageArchitecture(o.Spec.AWSLaunchTemplate, kinds.NodegroupTypes(&o.Spec))
				d.checkBootstrapFitsImage(kinds.EKSFamily(d.LaunchTemplate.Image))
			} else {
				d.checkBootstrapFitsImage(o.Spec.AMIType.Family())
			}
		}
	}
}

// CheckTagCount reports a resource with more tags than AWS allows.
func (d *Derived) CheckTagCount(tags map[string]string) {
	n := len(tags) + ownTags
	for _, more := range []bool{d.PruneDisabled, d.Drain, hooks(d.Group, d.Nodegroup) > 0, suspends(d.Group), d.Group != nil && d.Group.Drainer != nil, d.KeepVersions > 0, d.Nodegroup != nil} {
		if more { // weir.dev/prune, weir.dev/delete, weir.dev/hooks, weir.dev/suspended, weir.dev/drainer, weir.dev/keep-versions, weir.dev/cluster
			n++
		}
	}
	if n > 50 {
		d.AtPool.Error(path("spec", "additionalTags"), "too-many-tags",
			fmt.Sprintf("the pool's resources would carry %d tags, its cluster's and weir's included; AWS allows 50", n), "")
	}
}

// hooks returns the number of lifecycle hooks of the pool.
func hooks(group *intent.Group, nodegroup *intent.Nodegroup) int {
	switch {
	case group != nil:
		return len(group.LifecycleHooks)
	case nodegroup != nil:
		return len(nodegroup.LifecycleHooks)
	}
	return 0
}

// suspends reports whether the pool's group gets the tag weir.dev/suspended.
func suspends(group *intent.Group) bool {
	return group != nil && slices.ContainsFunc(group.SuspendedProcesses, func(p intent.Process) bool { return p.Suspended })
}

// Declares returns the object and the path of a pool's field. For a field of a shared launch template, the
// object is the one that declares the template.
func (d *Derived) Declares(ofPool intent.Path) (ref intent.ObjectRef, at intent.Path) {
	if d.LaunchConfig != nil {
		if at, ok := d.LaunchConfig.Field(ofPool); ok {
			return d.LaunchConfig.Source, at
		}
	}
	return d.Infrastructure, ofPool
}

// OptionsExclude reports that a field of the options and a field of the pool exclude each other.
func (d *Derived) OptionsExclude(at, ofPool intent.Path, detail string) {
	ref, field := d.Declares(ofPool)
	d.Faults.Add(kinds.Fault{Code: "exclusive", Summary: fmt.Sprintf("%s excludes %s of %s", at, field, ref), Detail: detail, Ref: d.AtOptions.Ref, Path: at,
		Related: []kinds.RelatedField{{Ref: ref, Path: field, Message: "the pool's field"}}})
}

// Limits of tags: "Tag restrictions" in the user guide of EC2.
const (
	maxTagKey   = 128
	maxTagValue = 256
)

// checkTagLengths reports names of clusters and pools that are too long for the tags that CAPA and weir make
// from them. The name of an Auto Scaling group needs no check, because its launch template has the same name
// and a lower limit.
func (d *Derived) checkTagLengths() {
	prefix := kinds.TagCloudCluster
	if d.LaunchTemplate != nil {
		prefix = kinds.TagCAPACluster // the longer prefix, which nodegroups do not have
	}
	if key := prefix + d.Cluster.TagName; len(key) > maxTagKey {
		d.AtMachinePool.Error(path("spec", "clusterName"), "bad-tag", fmt.Sprintf("the tag key %q has %d characters; AWS allows %d", key, len(key), maxTagKey),
			fmt.Sprintf("the cluster's name may have %d characters", maxTagKey-len(prefix)))
	}
	if n := len(d.Key.String()); n > maxTagValue {
		d.AtMachinePool.Error(path("metadata", "name"), "bad-tag", fmt.Sprintf("namespace and name have %d characters; the tag weir.dev/pool takes %d", n, maxTagValue), "shorten one of them")
	}
}

// ownTags is the number of tags that weir adds to the manifests' tags: owner, target, source, pool and the
// list of weir's own keys.
const ownTags = 5

// checkMetadataTags refuses tags that instance metadata cannot show. EC2 would refuse every launch, and EKS
// the nodegroup. Instances always have such a tag: the cluster's tag, which the cloud provider uses to find
// them.
func (d *Derived) checkMetadataTags() {
	if d.LaunchTemplate == nil {
		return
	}
	if keys := d.LaunchTemplate.Data.HiddenTags(); len(keys) > 0 {
		at := path("spec", "awsLaunchTemplate", "instanceMetadataOptions", "instanceMetadataTags")
		d.AtPool.Error(at, "metadata-tags", fmt.Sprintf("%s is enabled, and EC2 then launches no machine that has the tags %s", at, strings.Join(keys, ", ")),
			"write disabled: metadata shows only keys of letters, digits and -_+=,.@:, and the machines of a cluster need tags with a slash. "+
				"Give a machine what it must know in its user data, or allow its role ec2:DescribeTags")
	}
}
