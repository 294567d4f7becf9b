package manifest

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"go.yaml.in/yaml/v3"
)

// GroupOptions are members of an Auto Scaling group that AWSMachinePool does not
// have: those of CreateAutoScalingGroup, and of PutWarmPool and
// EnableMetricsCollection below a name each. A member that is not written is not
// weir's: it stays as it is found, also after it was taken out of Git again. The
// types below are those of the intent with other tags.
type GroupOptions struct {
	AvailabilityZoneDistribution     *ZoneDistribution   `json:"availabilityZoneDistribution"`
	AvailabilityZoneImpairmentPolicy *ZoneImpairment     `json:"availabilityZoneImpairmentPolicy"`
	CapacityReservationSpecification *GroupReservation   `json:"capacityReservationSpecification"`
	DeleteWarmPool                   bool                `json:"deleteWarmPool"`
	DeletionProtection               string              `json:"deletionProtection" enum:"none|prevent-force-deletion|prevent-all-deletion"`
	DesiredCapacityType              string              `json:"desiredCapacityType" enum:"units|vcpu|memory-mib"`
	HealthCheckGracePeriod           *int32              `json:"healthCheckGracePeriod" check:"min=0"`
	HealthCheckType                  string              `json:"healthCheckType"`
	InstanceLifecyclePolicy          *LifecyclePolicy    `json:"instanceLifecyclePolicy"`
	InstanceMaintenancePolicy        *HealthyPercentages `json:"instanceMaintenancePolicy"`
	LoadBalancerNames                []string            `json:"loadBalancerNames"`
	MaxInstanceLifetime              *int32              `json:"maxInstanceLifetime" check:"min=0,max=31536000"`
	MetricsCollection                *MetricsCollection  `json:"metricsCollection"`
	MixedInstancesPolicy             *MixedOptions       `json:"mixedInstancesPolicy"`
	NewInstancesProtected            *bool               `json:"newInstancesProtectedFromScaleIn"`
	PlacementGroup                   string              `json:"placementGroup"`
	RefreshPreferences               *RefreshOptions     `json:"refreshPreferences"`
	ServiceLinkedRoleARN             string              `json:"serviceLinkedRoleARN"`
	SkipZonalShiftValidation         *bool               `json:"skipZonalShiftValidation"`
	TargetGroupARNs                  []string            `json:"targetGroupARNs"`
	TerminationPolicies              []string            `json:"terminationPolicies"`
	TrafficSources                   []TrafficSource     `json:"trafficSources"`
	WarmPool                         *WarmPool           `json:"warmPool"`
}

func (GroupOptions) unknownHint(name string) string {
	if at, ok := groupOfPool()[name]; ok {
		return "write spec." + at.String() + " in the pool"
	}
	switch name {
	case "desiredCapacity":
		return "write spec.replicas in the MachinePool"
	case "context":
		return "AWS reserves it"
	case "launchConfigurationName", "instanceId":
		return "weir makes the group from the pool's launch template"
	case "operator":
		return "it names an AWS service that manages the group, and weir is none"
	case "autoScalingGroupName":
		return "the group has the pool's name"
	case "availabilityZoneIds":
		return "write spec.availabilityZones in the pool, or its subnets"
	}
	return ""
}

// groupOfPool are Auto Scaling's members that a pool's own manifests set, with
// the field below spec that does so.
func groupOfPool() map[string]intent.Path {
	return map[string]intent.Path{
		"minSize": path("minSize"), "maxSize": path("maxSize"), "vpcZoneIdentifier": path("subnets"), "availabilityZones": path("availabilityZones"),
		"defaultCooldown": path("defaultCoolDown"), "defaultInstanceWarmup": path("defaultInstanceWarmup"), "capacityRebalance": path("capacityRebalance"),
		"launchTemplate": path("awsLaunchTemplate"), "tags": path("additionalTags"), "lifecycleHookSpecificationList": path("lifecycleHooks"),
		"lifecycleHooks": path("lifecycleHooks"), "suspendProcesses": path("suspendProcesses"),
	}
}

// ZoneDistribution says how instances are spread over zones.
type ZoneDistribution struct {
	CapacityDistributionStrategy string `json:"capacityDistributionStrategy" enum:"balanced-only|balanced-best-effort|reservations-then-balanced" check:"required"`
}

// ZoneImpairment is what happens while a zone is shifted away from.
type ZoneImpairment struct {
	ImpairedZoneHealthCheckBehavior string `json:"impairedZoneHealthCheckBehavior" enum:"ReplaceUnhealthy|IgnoreUnhealthy"`
	ZonalShiftEnabled               *bool  `json:"zonalShiftEnabled"`
}

// GroupReservation says which capacity reservations are used.
type GroupReservation struct {
	CapacityReservationPreference string                  `json:"capacityReservationPreference" enum:"capacity-reservations-only|capacity-reservations-first|none|default"`
	CapacityReservationTarget     *GroupReservationTarget `json:"capacityReservationTarget"`
}

// GroupReservationTarget names reservations or groups of them.
type GroupReservationTarget struct {
	CapacityReservationIDs               []string `json:"capacityReservationIds"`
	CapacityReservationResourceGroupARNs []string `json:"capacityReservationResourceGroupArns"`
}

// LifecyclePolicy retains instances whose terminating hook was abandoned.
type LifecyclePolicy struct {
	RetentionTriggers *RetentionTriggers `json:"retentionTriggers" check:"required"`
}

// RetentionTriggers say when an instance is retained.
type RetentionTriggers struct {
	TerminateHookAbandon string `json:"terminateHookAbandon" enum:"retain|terminate" check:"required"`
}

// HealthyPercentages bound how much of a group is replaced at once; -1 in both
// removes them.
type HealthyPercentages struct {
	MaxHealthyPercentage *int32 `json:"maxHealthyPercentage" check:"required,min=-1,max=200"`
	MinHealthyPercentage *int32 `json:"minHealthyPercentage" check:"required,min=-1,max=100"`
}

// MetricsCollection has the group send metrics to CloudWatch: all of them where
// metrics is not written, none where it is an empty list.
type MetricsCollection struct {
	Granularity string   `json:"granularity" enum:"1Minute" default:"1Minute"`
	Metrics     []string `json:"metrics"`
}

// MixedOptions add to the pool's mixedInstancesPolicy.
type MixedOptions struct {
	InstancesDistribution *DistributionOptions `json:"instancesDistribution"`
	Overrides             []OverrideOptions    `json:"overrides"`
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
		return "the order of kinds of capacity is not carried by this version; write capacityReservationSpecification"
	}
	return ""
}

// OverrideOptions are one choice of a mixed instances policy. Where the pool has
// overrides, each here names one of them by its instance type and adds to it;
// otherwise they are the policy's.
type OverrideOptions struct {
	ImageID                     string              `json:"imageId"`
	InstanceRequirements        *Requirements       `json:"instanceRequirements"`
	InstanceType                string              `json:"instanceType"`
	LaunchTemplateSpecification *TemplateOfOverride `json:"launchTemplateSpecification"`
	WeightedCapacity            string              `json:"weightedCapacity"`
}

// TemplateOfOverride names a launch template that is not weir's to change.
type TemplateOfOverride struct {
	ID      string `json:"launchTemplateId"`
	Name    string `json:"launchTemplateName"`
	Version string `json:"version" check:"required,minlen=1"`
}

// Requirements are InstanceRequirements of the Auto Scaling API.
type Requirements struct {
	AcceleratorCount           *Bounds             `json:"acceleratorCount"`
	AcceleratorManufacturers   []string            `json:"acceleratorManufacturers"`
	AcceleratorNames           []string            `json:"acceleratorNames"`
	AcceleratorTotalMemoryMiB  *Bounds             `json:"acceleratorTotalMemoryMiB"`
	AcceleratorTypes           []string            `json:"acceleratorTypes"`
	AllowedInstanceTypes       []string            `json:"allowedInstanceTypes"`
	BareMetal                  string              `json:"bareMetal" enum:"included|excluded|required"`
	BaselineEBSBandwidthMbps   *Bounds             `json:"baselineEbsBandwidthMbps"`
	BaselinePerformanceFactors *PerformanceFactors `json:"baselinePerformanceFactors"`
	BurstablePerformance       string              `json:"burstablePerformance" enum:"included|excluded|required"`
	CPUManufacturers           []string            `json:"cpuManufacturers"`
	ExcludedInstanceTypes      []string            `json:"excludedInstanceTypes"`
	InstanceGenerations        []string            `json:"instanceGenerations"`
	LocalStorage               string              `json:"localStorage" enum:"included|excluded|required"`
	LocalStorageTypes          []string            `json:"localStorageTypes"`
	MaxSpotPrice               *int32              `json:"maxSpotPriceAsPercentageOfOptimalOnDemandPrice" check:"min=0"`
	MemoryGiBPerVCPU           *Range              `json:"memoryGiBPerVCpu"`
	MemoryMiB                  *Bounds             `json:"memoryMiB" check:"required"`
	NetworkBandwidthGbps       *Range              `json:"networkBandwidthGbps"`
	NetworkInterfaceCount      *Bounds             `json:"networkInterfaceCount"`
	OnDemandMaxPrice           *int32              `json:"onDemandMaxPricePercentageOverLowestPrice" check:"min=0"`
	RequireHibernateSupport    *bool               `json:"requireHibernateSupport"`
	SpotMaxPrice               *int32              `json:"spotMaxPricePercentageOverLowestPrice" check:"min=0"`
	TotalLocalStorageGB        *Range              `json:"totalLocalStorageGB"`
	VCPUCount                  *Bounds             `json:"vCpuCount" check:"required"`
}

// Bounds hold a whole number.
type Bounds struct {
	Max *int32 `json:"max" check:"min=0"`
	Min *int32 `json:"min" check:"min=0"`
}

// Range holds any number.
type Range struct {
	Max *Decimal `json:"max"`
	Min *Decimal `json:"min"`
}

// PerformanceFactors ask for types that perform like a family does.
type PerformanceFactors struct {
	CPU *CPUFactor `json:"cpu" check:"required"`
}

// CPUFactor is the performance of the processors.
type CPUFactor struct {
	References []PerformanceReference `json:"references" check:"required"`
}

// PerformanceReference names an instance family.
type PerformanceReference struct {
	InstanceFamily string `json:"instanceFamily" check:"required,minlen=1"`
}

// RefreshOptions are members of RefreshPreferences that the pool's
// refreshPreferences do not have.
type RefreshOptions struct {
	AlarmSpecification        *AlarmSpecification `json:"alarmSpecification"`
	AutoRollback              *bool               `json:"autoRollback"`
	BakeTime                  *int32              `json:"bakeTime" check:"min=0,max=172800"`
	CheckpointDelay           *int32              `json:"checkpointDelay" check:"min=0,max=172800"`
	CheckpointPercentages     []int32             `json:"checkpointPercentages"`
	ScaleInProtectedInstances string              `json:"scaleInProtectedInstances" enum:"Refresh|Ignore|Wait"`
	SkipMatching              *bool               `json:"skipMatching"`
	StandbyInstances          string              `json:"standbyInstances" enum:"Terminate|Ignore|Wait"`
}

func (RefreshOptions) unknownHint(name string) string {
	switch name {
	case "disable", "strategy", "instanceWarmup", "minHealthyPercentage", "maxHealthyPercentage":
		return "write spec.refreshPreferences." + name + " in the pool"
	}
	return ""
}

// AlarmSpecification names CloudWatch alarms that end a refresh.
type AlarmSpecification struct {
	Alarms []string `json:"alarms" check:"required"`
}

// TrafficSource is a load balancer or target group.
type TrafficSource struct {
	Identifier string `json:"identifier" check:"required,minlen=1"`
	Type       string `json:"type" enum:"elb|elbv2|vpc-lattice"`
}

// WarmPool are instances that are ready before they are needed.
type WarmPool struct {
	InstanceReusePolicy      ReusePolicy `json:"instanceReusePolicy"`
	MaxGroupPreparedCapacity int32       `json:"maxGroupPreparedCapacity" check:"min=-1" default:"-1"`
	MinSize                  int32       `json:"minSize" check:"min=0" default:"0"`
	PoolState                string      `json:"poolState" enum:"Stopped|Running|Hibernated" default:"Stopped"`
}

// ReusePolicy says whether instances return to a warm pool.
type ReusePolicy struct {
	ReuseOnScaleIn bool `json:"reuseOnScaleIn"`
}

// Decimal is a number that need not be whole.
type Decimal float64

func (n *Decimal) decodeNode(d *decoder, node *yaml.Node, p intent.Path) {
	v, err := strconv.ParseFloat(strings.ReplaceAll(node.Value, "_", ""), 64)
	if tag := node.ShortTag(); node.Kind != yaml.ScalarNode || tag != "!!int" && tag != "!!float" || err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		d.wrongType(node, p, "a number")
		return
	}
	if v < 0 {
		d.error(p, "out-of-range", p.String()+" is below 0", "")
	}
	*n = Decimal(v)
}

func (*Decimal) schema(*decoder) *Schema {
	least := int64(0)
	return &Schema{Type: "number", Minimum: &least}
}

// recast copies a value into the type of the intent with members of the same
// names.
func recast(from, to any) {
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		panic("recast: " + err.Error()) // texts, numbers and booleans under the same names
	}
}
