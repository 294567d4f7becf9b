package kinds

import (
	"cmp"

	rows "github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/lazyregexp"
)

// GroupOptions are members of an Auto Scaling group that AWSMachinePool does not
// have: those of CreateAutoScalingGroup, and of PutWarmPool and
// EnableMetricsCollection below a name each. A member that is not written is not
// weir's: it stays as it is found, also after it was taken out of Git again.
type GroupOptions struct {
	// Name is the group's name in AWS. Default: the name of the AWSMachinePool. It is for
	// groups whose names Kubernetes does not accept.
	Name string `json:"name" check:"minlen=1"`
	intent.GroupOptions
	MixedInstancesPolicy *MixedOptions   `json:"mixedInstancesPolicy"`
	RefreshPreferences   *RefreshOptions `json:"refreshPreferences"`
}

// unknownHint returns the hint for an unknown field of spec.group, or "" if weir knows no better place for
// it.
func (GroupOptions) unknownHint(name string) string {
	if said := inPool(rows.Group, name); said != "" {
		return said
	}
	switch name {
	case "desiredCapacity":
		return "write spec.replicas in the MachinePool"
	case "context":
		return "AWS reserves it"
	case "launchConfigurationName", "instanceId":
		return "weir makes the group from the pool's launch template"
	case "operator":
		return "it names an AWS service that manages the group, and weir is not one"
	case "autoScalingGroupName":
		return "write name; without it the group has the pool's name"
	case "availabilityZoneIds":
		return "write spec.availabilityZones in the pool, or its subnets"
	}
	return ""
}

// MixedOptions add to the pool's mixedInstancesPolicy.
type MixedOptions struct {
	InstancesDistribution *DistributionOptions `json:"instancesDistribution"`
	// Overrides each name one of the pool's by its instance type and add to it; where
	// the pool has none, they are the policy's.
	Overrides []intent.Override `json:"overrides"`
}

func (MixedOptions) unknownHint(name string) string {
	if name == "launchTemplate" {
		return "the policy has the pool's launch template; write overrides below mixedInstancesPolicy"
	}
	return ""
}

// DistributionOptions add to the pool's instancesDistribution.
type DistributionOptions struct {
	SpotInstancePools *int32 `json:"spotInstancePools" check:"min=1,max=20"`
	SpotMaxPrice      string `json:"spotMaxPrice"`
}

func (DistributionOptions) unknownHint(name string) string {
	switch name {
	case "onDemandAllocationStrategy", "spotAllocationStrategy", "onDemandBaseCapacity", "onDemandPercentageAboveBaseCapacity":
		return "write spec.mixedInstancesPolicy.instancesDistribution." + name + " in the pool"
	case "distributionSegments":
		return "the order of kinds of capacity is not supported by this version; write capacityReservationSpecification"
	}
	return ""
}

// RefreshOptions are members of RefreshPreferences that the pool's
// refreshPreferences do not have.
type RefreshOptions struct{ intent.Refresh }

func (RefreshOptions) unknownHint(name string) string {
	return inPool(rows.Refresh, name)
}

// Whole returns the options with AWS's defaults in members that are sent as a whole.
func (g *GroupOptions) Whole() intent.GroupOptions {
	out := g.GroupOptions
	if m := out.MetricsCollection; m != nil && m.Metrics == nil {
		m.Metrics = GroupMetrics()
	}
	for i, s := range out.TrafficSources {
		out.TrafficSources[i].Type = cmp.Or(s.Type, SourceType(s.Identifier))
	}
	return out
}

var OptionsGroup = path("spec", "autoScalingGroup")

// GroupMetrics returns the metrics of a group: EnableMetricsCollection in the API reference of Auto Scaling.
func GroupMetrics() []string {
	return []string{
		"GroupAndWarmPoolDesiredCapacity", "GroupAndWarmPoolTotalCapacity", "GroupDesiredCapacity", "GroupInServiceCapacity", "GroupInServiceInstances",
		"GroupMaxSize", "GroupMinSize", "GroupPendingCapacity", "GroupPendingInstances", "GroupStandbyCapacity", "GroupStandbyInstances",
		"GroupTerminatingCapacity", "GroupTerminatingInstances", "GroupTotalCapacity", "GroupTotalInstances", "WarmPoolDesiredCapacity",
		"WarmPoolPendingCapacity", "WarmPoolTerminatingCapacity", "WarmPoolTotalCapacity", "WarmPoolWarmedCapacity",
	}
}

var (
	targetGroupARN  = lazyregexp.New(`^arn:[^:]+:elasticloadbalancing:[^:]*:[^:]*:targetgroup/.+`)
	latticeGroupARN = lazyregexp.New(`^arn:[^:]+:vpc-lattice:[^:]*:[^:]*:targetgroup/.+`)
)

// SourceType derives the type of a traffic source from its identifier.
func SourceType(identifier string) string {
	switch {
	case targetGroupARN.MatchString(identifier):
		return "elbv2"
	case latticeGroupARN.MatchString(identifier):
		return "vpc-lattice"
	}
	return "elb"
}
