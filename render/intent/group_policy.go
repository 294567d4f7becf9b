package intent

import (
	"cmp"
	"reflect"
	"slices"
	"sort"
)

// MixedInstances is MixedInstancesPolicy without its launch template. All defaults of AWS are filled in.
type MixedInstances struct {
	OnDemandAllocationStrategy          string `json:"onDemandAllocationStrategy"`
	OnDemandBaseCapacity                int32  `json:"onDemandBaseCapacity"`
	OnDemandPercentageAboveBaseCapacity int32  `json:"onDemandPercentageAboveBaseCapacity"`
	SpotAllocationStrategy              string `json:"spotAllocationStrategy"`
	// SpotInstancePools matters only for the strategy lowest-price. 0 stands for AWS's default of that
	// strategy, which is 2. It is 0 for all other strategies.
	SpotInstancePools int32 `json:"spotInstancePools,omitempty"`
	// SpotMaxPrice is in USD per hour. Empty means the on-demand price.
	SpotMaxPrice string     `json:"spotMaxPrice,omitempty"`
	Overrides    []Override `json:"overrides,omitempty"`
}

// Override is an entry of a mixed instances policy: LaunchTemplateOverrides of the Auto Scaling API. It has
// either an instance type or instance requirements. The order of overrides is AWS's priority.
type Override struct {
	ImageID              string                `json:"imageId,omitempty"`
	InstanceRequirements *InstanceRequirements `json:"instanceRequirements,omitempty"`
	InstanceType         string                `json:"instanceType,omitempty"`
	// LaunchTemplate replaces the group's own launch template.
	LaunchTemplate *LaunchTemplateSpecification `json:"launchTemplateSpecification,omitempty"`
	// WeightedCapacity is a number from 1 to 999. The AWS API represents it as a string.
	WeightedCapacity string `json:"weightedCapacity,omitempty"`
}

// LaunchTemplateSpecification identifies a version of a launch template by the template's id or name.
// Responses of AWS have both. Version is a number, "$Latest" or "$Default"; empty means "$Default".
type LaunchTemplateSpecification struct {
	ID      string `json:"launchTemplateId,omitempty"`
	Name    string `json:"launchTemplateName,omitempty"`
	Version string `json:"version,omitempty" check:"required,minlen=1"`
}

// Same reports whether two specifications identify the same version. It compares ids if both have one, and
// otherwise names.
func (s LaunchTemplateSpecification) Same(o LaunchTemplateSpecification) bool {
	if cmp.Or(s.Version, "$Default") != cmp.Or(o.Version, "$Default") {
		return false
	}
	if s.ID != "" && o.ID != "" {
		return s.ID == o.ID
	}
	return s.Name != "" && s.Name == o.Name
}

// InstanceRequirements are the attributes that instance types must have. Its members are exactly those of the
// Auto Scaling API.
type InstanceRequirements struct {
	AcceleratorCount           *Bounds                     `json:"acceleratorCount,omitempty"`
	AcceleratorManufacturers   []string                    `json:"acceleratorManufacturers,omitempty"`
	AcceleratorNames           []string                    `json:"acceleratorNames,omitempty"`
	AcceleratorTotalMemoryMiB  *Bounds                     `json:"acceleratorTotalMemoryMiB,omitempty"`
	AcceleratorTypes           []string                    `json:"acceleratorTypes,omitempty"`
	AllowedInstanceTypes       []string                    `json:"allowedInstanceTypes,omitempty"`
	BareMetal                  string                      `json:"bareMetal,omitempty" enum:"included|excluded|required"`
	BaselineEBSBandwidthMbps   *Bounds                     `json:"baselineEbsBandwidthMbps,omitempty"`
	BaselinePerformanceFactors *BaselinePerformanceFactors `json:"baselinePerformanceFactors,omitempty"`
	BurstablePerformance       string                      `json:"burstablePerformance,omitempty" enum:"included|excluded|required"`
	CPUManufacturers           []string                    `json:"cpuManufacturers,omitempty"`
	ExcludedInstanceTypes      []string                    `json:"excludedInstanceTypes,omitempty"`
	InstanceGenerations        []string                    `json:"instanceGenerations,omitempty"`
	LocalStorage               string                      `json:"localStorage,omitempty" enum:"included|excluded|required"`
	LocalStorageTypes          []string                    `json:"localStorageTypes,omitempty"`
	MaxSpotPrice               *int32                      `json:"maxSpotPriceAsPercentageOfOptimalOnDemandPrice,omitempty" check:"min=0"`
	MemoryGiBPerVCPU           *Range                      `json:"memoryGiBPerVCpu,omitempty"`
	MemoryMiB                  *Bounds                     `json:"memoryMiB,omitempty" check:"required"`
	NetworkBandwidthGbps       *Range                      `json:"networkBandwidthGbps,omitempty"`
	NetworkInterfaceCount      *Bounds                     `json:"networkInterfaceCount,omitempty"`
	OnDemandMaxPrice           *int32                      `json:"onDemandMaxPricePercentageOverLowestPrice,omitempty" check:"min=0"`
	RequireHibernateSupport    *bool                       `json:"requireHibernateSupport,omitempty"`
	SpotMaxPrice               *int32                      `json:"spotMaxPricePercentageOverLowestPrice,omitempty" check:"min=0"`
	TotalLocalStorageGB        *Range                      `json:"totalLocalStorageGB,omitempty"`
	VCPUCount                  *Bounds                     `json:"vCpuCount,omitempty" check:"required"`
}

// Bounds are limits for an integer, and Range limits for any number. A nil limit means none.
type Bounds struct {
	Max *int32 `json:"max,omitempty" check:"min=0"`
	Min *int32 `json:"min,omitempty" check:"min=0"`
}

// Range is like Bounds, for a number with decimals.
type Range struct {
	Max *float64 `json:"max,omitempty"`
	Min *float64 `json:"min,omitempty"`
}

// BaselinePerformanceFactors select types that perform at least like a given instance family.
type BaselinePerformanceFactors struct {
	CPU *CPUPerformanceFactor `json:"cpu,omitempty" check:"required"`
}

// CPUPerformanceFactor is the CPU performance. In responses of Auto Scaling, the list has another name than
// in its documentation.
type CPUPerformanceFactor struct {
	References []PerformanceReference `json:"references,omitempty" xml:"Reference" check:"required"`
}

// PerformanceReference names an instance family.
type PerformanceReference struct {
	InstanceFamily string `json:"instanceFamily,omitempty" check:"required,minlen=1"`
}

// Same reports whether AWS treats two policies alike. A launch template may be given by id or name, lists of
// requirements may differ in order, and an explicit default equals a missing value.
func (m *MixedInstances) Same(o *MixedInstances) bool {
	if m == nil || o == nil {
		return m == o
	}
	a, b := *m, *o
	a.Overrides, b.Overrides = nil, nil
	return reflect.DeepEqual(a, b) && slices.EqualFunc(m.Overrides, o.Overrides, Override.Same)
}

// Same reports whether AWS treats two overrides alike.
func (v Override) Same(o Override) bool {
	a, b := v.LaunchTemplate, o.LaunchTemplate
	if (a == nil) != (b == nil) || a != nil && !a.Same(*b) {
		return false
	}
	v.InstanceRequirements, o.InstanceRequirements = v.InstanceRequirements.plain(), o.InstanceRequirements.plain()
	v.LaunchTemplate, o.LaunchTemplate = nil, nil
	return reflect.DeepEqual(v, o)
}

// plain returns the requirements without explicit defaults of AWS, and with sorted lists.
func (r *InstanceRequirements) plain() *InstanceRequirements {
	if r == nil {
		return nil
	}
	p := *r
	for _, list := range []*[]string{&p.AcceleratorManufacturers, &p.AcceleratorNames, &p.AcceleratorTypes, &p.AllowedInstanceTypes,
		&p.CPUManufacturers, &p.ExcludedInstanceTypes, &p.InstanceGenerations, &p.LocalStorageTypes} {
		if *list = slices.Clone(*list); len(*list) == 0 {
			*list = nil
		}
		sort.Strings(*list)
	}
	for text, usual := range map[*string]string{&p.BareMetal: "excluded", &p.BurstablePerformance: "excluded", &p.LocalStorage: "included"} {
		if *text == usual {
			*text = ""
		}
	}
	if p.RequireHibernateSupport != nil && !*p.RequireHibernateSupport {
		p.RequireHibernateSupport = nil
	}
	for _, b := range []**Bounds{&p.AcceleratorCount, &p.AcceleratorTotalMemoryMiB, &p.BaselineEBSBandwidthMbps, &p.MemoryMiB, &p.NetworkInterfaceCount, &p.VCPUCount} {
		if *b != nil && **b == (Bounds{}) {
			*b = nil
		}
	}
	for _, b := range []**Range{&p.MemoryGiBPerVCPU, &p.NetworkBandwidthGbps, &p.TotalLocalStorageGB} {
		if *b != nil && **b == (Range{}) {
			*b = nil
		}
	}
	return &p
}
