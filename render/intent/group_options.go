package intent

import (
	"cmp"
	"slices"
	"strings"
)

// GroupSettings are the members of an Auto Scaling group that are its own: sizes,
// subnets, launch configuration and tags aside. The same type says what Git declares,
// what a group has and what a request changes. An absent member was not declared, is
// not set in AWS, or stays as it is. Package field has a row for each.
type GroupSettings struct {
	DefaultCooldown       *int32 `json:"defaultCooldown,omitzero"`       // seconds
	DefaultInstanceWarmup *int32 `json:"defaultInstanceWarmup,omitzero"` // seconds
	CapacityRebalance     *bool  `json:"capacityRebalance,omitzero"`
	// Options holds the options that Cluster API Provider AWS's types cannot express.
	Options GroupOptions `json:"options,omitzero"`
}

// GroupOptions are members of an Auto Scaling group that Cluster API Provider
// AWS's types cannot say. An absent member was not declared, and stays as it is
// found. Names are those of the Auto Scaling API in lower camel case. The same
// type holds what a group has, where absent means that AWS has no value.
type GroupOptions struct {
	AvailabilityZoneDistribution     *ZoneDistribution   `json:"availabilityZoneDistribution,omitzero"`
	AvailabilityZoneImpairmentPolicy *ZoneImpairment     `json:"availabilityZoneImpairmentPolicy,omitzero"`
	CapacityReservationSpecification *GroupReservation   `json:"capacityReservationSpecification,omitzero"`
	DeletionProtection               string              `json:"deletionProtection,omitzero"`
	DesiredCapacityType              string              `json:"desiredCapacityType,omitzero"`
	HealthCheckGracePeriod           *int32              `json:"healthCheckGracePeriod,omitzero"` // seconds
	HealthCheckType                  string              `json:"healthCheckType,omitzero"`        // EC2 and others, with commas
	InstanceLifecyclePolicy          *LifecyclePolicy    `json:"instanceLifecyclePolicy,omitzero"`
	InstanceMaintenancePolicy        *HealthyPercentages `json:"instanceMaintenancePolicy,omitzero"`
	LoadBalancerNames                []string            `json:"loadBalancerNames,omitzero"`
	MaxInstanceLifetime              *int32              `json:"maxInstanceLifetime,omitzero"` // seconds, 0 for no cooldown
	MetricsCollection                *MetricsCollection  `json:"metricsCollection,omitzero"`
	NewInstancesProtected            *bool               `json:"newInstancesProtectedFromScaleIn,omitzero"`
	PlacementGroup                   string              `json:"placementGroup,omitzero"`
	ServiceLinkedRoleARN             string              `json:"serviceLinkedRoleARN,omitzero"`
	SkipZonalShiftValidation         *bool               `json:"skipZonalShiftValidation,omitzero"` // of requests; groups have none
	TargetGroupARNs                  []string            `json:"targetGroupARNs,omitzero"`
	TerminationPolicies              []string            `json:"terminationPolicies,omitzero"` // in order
	TrafficSources                   []TrafficSource     `json:"trafficSources,omitzero"`      // of a group: all that it has, sorted
	WarmPool                         *WarmPool           `json:"warmPool,omitzero"`
	// DeleteWarmPool says that the group has no warm pool.
	DeleteWarmPool bool `json:"deleteWarmPool,omitzero"`
}

// ZoneDistribution is AvailabilityZoneDistribution.
type ZoneDistribution struct {
	CapacityDistributionStrategy string `json:"capacityDistributionStrategy,omitempty"`
}

// ZoneImpairment is AvailabilityZoneImpairmentPolicy.
type ZoneImpairment struct {
	ImpairedZoneHealthCheckBehavior string `json:"impairedZoneHealthCheckBehavior,omitempty"`
	ZonalShiftEnabled               *bool  `json:"zonalShiftEnabled,omitempty"`
}

// GroupReservation is CapacityReservationSpecification of a group.
type GroupReservation struct {
	CapacityReservationPreference string                  `json:"capacityReservationPreference,omitempty"`
	CapacityReservationTarget     *GroupReservationTarget `json:"capacityReservationTarget,omitempty"`
}

// GroupReservationTarget is CapacityReservationTarget of a group.
type GroupReservationTarget struct {
	CapacityReservationIDs               []string `json:"capacityReservationIds,omitempty"`
	CapacityReservationResourceGroupARNs []string `json:"capacityReservationResourceGroupArns,omitempty"`
}

// LifecyclePolicy is InstanceLifecyclePolicy.
type LifecyclePolicy struct {
	RetentionTriggers *RetentionTriggers `json:"retentionTriggers,omitempty" check:"required"`
}

// RetentionTriggers say when an instance is retained.
type RetentionTriggers struct {
	TerminateHookAbandon string `json:"terminateHookAbandon,omitempty"`
}

// HealthyPercentages is InstanceMaintenancePolicy. Two times -1 removes the policy.
type HealthyPercentages struct {
	MaxHealthyPercentage *int32 `json:"maxHealthyPercentage,omitempty"`
	MinHealthyPercentage *int32 `json:"minHealthyPercentage,omitempty"`
}

// MetricsCollection is the input of EnableMetricsCollection, with all metrics named; without any
// metrics it means a group without metrics.
type MetricsCollection struct {
	Granularity string   `json:"granularity,omitempty"`
	Metrics     []string `json:"metrics"`
}

// TrafficSource is a load balancer or target group. Type is elb, elbv2 or
// vpc-lattice.
type TrafficSource struct {
	Identifier string `json:"identifier" check:"minlen=1"`
	Type       string `json:"type"`
}

// WarmPool is the input of PutWarmPool, with AWS's defaults filled in. MaxGroupPreparedCapacity is
// -1 if none is set.
type WarmPool struct {
	InstanceReusePolicy      ReusePolicy `json:"instanceReusePolicy"`
	MaxGroupPreparedCapacity int32       `json:"maxGroupPreparedCapacity"`
	MinSize                  int32       `json:"minSize"`
	PoolState                string      `json:"poolState"`
}

// ReusePolicy says whether instances return to a warm pool.
type ReusePolicy struct {
	ReuseOnScaleIn bool `json:"reuseOnScaleIn"`
}

// UsualWarmPool returns a warm pool with only default values.
func UsualWarmPool() WarmPool { return WarmPool{MaxGroupPreparedCapacity: -1, PoolState: "Stopped"} }

// Sources are the traffic sources that the options name in any of their members,
// sorted and without repetition.
func (o GroupOptions) Sources() []TrafficSource {
	out := slices.Clone(o.TrafficSources)
	for i, s := range out {
		out[i].Type = cmp.Or(s.Type, sourceType(s.Identifier)) // which may be left out of an ARN
	}
	for _, arn := range o.TargetGroupARNs {
		out = append(out, TrafficSource{Identifier: arn, Type: "elbv2"})
	}
	for _, name := range o.LoadBalancerNames {
		out = append(out, TrafficSource{Identifier: name, Type: "elb"})
	}
	slices.SortFunc(out, func(a, b TrafficSource) int { return strings.Compare(a.Identifier, b.Identifier) })
	return slices.Compact(out)
}

// sourceType returns the type of a traffic source by its identifier: target groups have an ARN,
// Classic Load Balancers a name.
// Assumed of AWS: traffic-source-type.
func sourceType(identifier string) string {
	service := strings.SplitN(identifier, ":", 4)
	switch {
	case len(service) < 4 || service[0] != "arn":
		return "elb"
	case service[2] == "vpc-lattice":
		return "vpc-lattice"
	}
	return "elbv2"
}
