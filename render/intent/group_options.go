package intent

import (
	"cmp"
	"slices"
	"strings"
)

// GroupSettings are the settings of an Auto Scaling group itself. They do not include sizes, subnets, launch
// configuration and tags. One type serves for the desired settings in Git, the settings that a group has, and
// the settings that a request changes. A missing member is not declared, not set in AWS, or not changed.
// Package field has a row for each member.
type GroupSettings struct {
	DefaultCooldown       *int32 `json:"defaultCooldown,omitzero"`       // seconds
	DefaultInstanceWarmup *int32 `json:"defaultInstanceWarmup,omitzero"` // seconds
	CapacityRebalance     *bool  `json:"capacityRebalance,omitzero"`
	// Options has the settings that the types of Cluster API Provider AWS do not have.
	Options GroupOptions `json:"options,omitzero"`
}

// GroupOptions are settings of an Auto Scaling group that the types of Cluster API Provider AWS do not have.
// A setting that is not declared stays unchanged. Names come from the Auto Scaling API, in lower camel
// case. The type also serves for the settings that a group has; a missing member then has no value in AWS.
type GroupOptions struct {
	AvailabilityZoneDistribution     *ZoneDistribution   `json:"availabilityZoneDistribution,omitzero"`
	AvailabilityZoneImpairmentPolicy *ZoneImpairment     `json:"availabilityZoneImpairmentPolicy,omitzero"`
	CapacityReservationSpecification *GroupReservation   `json:"capacityReservationSpecification,omitzero"`
	DeletionProtection               string              `json:"deletionProtection,omitzero"`
	DesiredCapacityType              string              `json:"desiredCapacityType,omitzero"`
	HealthCheckGracePeriod           *int32              `json:"healthCheckGracePeriod,omitzero"` // seconds
	HealthCheckType                  string              `json:"healthCheckType,omitzero"`        // EC2 and others, comma-separated
	InstanceLifecyclePolicy          *LifecyclePolicy    `json:"instanceLifecyclePolicy,omitzero"`
	InstanceMaintenancePolicy        *HealthyPercentages `json:"instanceMaintenancePolicy,omitzero"`
	LoadBalancerNames                []string            `json:"loadBalancerNames,omitzero"`
	MaxInstanceLifetime              *int32              `json:"maxInstanceLifetime,omitzero"` // seconds; 0 removes the limit
	MetricsCollection                *MetricsCollection  `json:"metricsCollection,omitzero"`
	NewInstancesProtected            *bool               `json:"newInstancesProtectedFromScaleIn,omitzero"`
	PlacementGroup                   string              `json:"placementGroup,omitzero"`
	ServiceLinkedRoleARN             string              `json:"serviceLinkedRoleARN,omitzero"`
	SkipZonalShiftValidation         *bool               `json:"skipZonalShiftValidation,omitzero"` // only in requests; AWS does not return it
	TargetGroupARNs                  []string            `json:"targetGroupARNs,omitzero"`
	TerminationPolicies              []string            `json:"terminationPolicies,omitzero"` // in order
	TrafficSources                   []TrafficSource     `json:"trafficSources,omitzero"`      // of a group: all of its sources, sorted
	WarmPool                         *WarmPool           `json:"warmPool,omitzero"`
	// DeleteWarmPool means that the group must not have a warm pool.
	DeleteWarmPool bool `json:"deleteWarmPool,omitzero"`
}

// ZoneDistribution is AvailabilityZoneDistribution of the Auto Scaling API.
type ZoneDistribution struct {
	CapacityDistributionStrategy string `json:"capacityDistributionStrategy,omitempty"`
}

// ZoneImpairment is AvailabilityZoneImpairmentPolicy of the Auto Scaling API.
type ZoneImpairment struct {
	ImpairedZoneHealthCheckBehavior string `json:"impairedZoneHealthCheckBehavior,omitempty"`
	ZonalShiftEnabled               *bool  `json:"zonalShiftEnabled,omitempty"`
}

// GroupReservation is a group's CapacityReservationSpecification.
type GroupReservation struct {
	CapacityReservationPreference string                  `json:"capacityReservationPreference,omitempty"`
	CapacityReservationTarget     *GroupReservationTarget `json:"capacityReservationTarget,omitempty"`
}

// GroupReservationTarget is a group's CapacityReservationTarget.
type GroupReservationTarget struct {
	CapacityReservationIDs               []string `json:"capacityReservationIds,omitempty"`
	CapacityReservationResourceGroupARNs []string `json:"capacityReservationResourceGroupArns,omitempty"`
}

// LifecyclePolicy is InstanceLifecyclePolicy of the Auto Scaling API.
type LifecyclePolicy struct {
	RetentionTriggers *RetentionTriggers `json:"retentionTriggers,omitempty" check:"required"`
}

// RetentionTriggers are the events after which AWS retains an instance.
type RetentionTriggers struct {
	TerminateHookAbandon string `json:"terminateHookAbandon,omitempty"`
}

// HealthyPercentages is InstanceMaintenancePolicy. If both members are -1, AWS removes the policy.
type HealthyPercentages struct {
	MaxHealthyPercentage *int32 `json:"maxHealthyPercentage,omitempty"`
	MinHealthyPercentage *int32 `json:"minHealthyPercentage,omitempty"`
}

// MetricsCollection is the input of EnableMetricsCollection, with every metric listed. An empty list means
// that the group collects no metrics.
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

// WarmPool is the input of PutWarmPool, with AWS's defaults filled in. MaxGroupPreparedCapacity is -1 if it
// is not set.
type WarmPool struct {
	InstanceReusePolicy      ReusePolicy `json:"instanceReusePolicy"`
	MaxGroupPreparedCapacity int32       `json:"maxGroupPreparedCapacity"`
	MinSize                  int32       `json:"minSize"`
	PoolState                string      `json:"poolState"`
}

// ReusePolicy decides if instances return to the warm pool.
type ReusePolicy struct {
	ReuseOnScaleIn bool `json:"reuseOnScaleIn"`
}

// UsualWarmPool returns a warm pool that has only default values.
func UsualWarmPool() WarmPool { return WarmPool{MaxGroupPreparedCapacity: -1, PoolState: "Stopped"} }

// Sources returns the traffic sources in all members of the options, sorted and without duplicates.
func (o GroupOptions) Sources() []TrafficSource {
	out := slices.Clone(o.TrafficSources)
	for i, s := range out {
		out[i].Type = cmp.Or(s.Type, sourceType(s.Identifier)) // an ARN already shows the type, so the type may be missing
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

// sourceType derives the type of a traffic source from its identifier. Target groups have an ARN, Classic
// Load Balancers a name.
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
