package intent

import (
	"cmp"
	"reflect"
	"slices"
	"sort"
)

// MixedInstances is MixedInstancesPolicy without its launch template, with all
// of AWS's defaults filled in.
type MixedInstances struct {
	OnDemandAllocationStrategy          string `json:"onDemandAllocationStrategy"`
	OnDemandBaseCapacity                int32  `json:"onDemandBaseCapacity"`
	OnDemandPercentageAboveBaseCapacity int32  `json:"onDemandPercentageAboveBaseCapacity"`
	SpotAllocationStrategy              string `json:"spotAllocationStrategy"`
	// SpotInstancePools counts for the strategy lowest-price alone; 0 is AWS's
	// default of it, 2, and the value of all other strategies.
	SpotInstancePools int32 `json:"spotInstancePools,omitempty"`
	// SpotMaxPrice is in USD an hour; empty is the on-demand price.
	SpotMaxPrice string     `json:"spotMaxPrice,omitempty"`
	Overrides    []Override `json:"overrides,omitempty"`
}

// Override is one choice of a mixed instances policy: LaunchTemplateOverrides of
// Auto Scaling. It has an instance type, or requirements of one. Order matters:
// it is AWS's priority.
type Override struct {
	ImageID              string                `json:"imageId,omitempty"`
	InstanceRequirements *InstanceRequirements `json:"instanceRequirements,omitempty"`
	InstanceType         string                `json:"instanceType,omitempty"`
	// LaunchTemplate takes the place of the group's own launch template.
	LaunchTemplate *LaunchTemplateSpecification `json:"launchTemplateSpecification,omitempty"`
	// WeightedCapacity is a number from 1 to 999, which AWS has as text.
	WeightedCapacity string `json:"weightedCapacity,omitempty"`
}

// LaunchTemplateSpecification names a version of a launch template, by the
// template's id or its name. Answers of AWS hold both. Version is a number,
// "$Latest" or "$Default"; empty is "$Default".
type LaunchTemplateSpecification struct {
	ID      string `json:"launchTemplateId,omitempty"`
	Name    string `json:"launchTemplateName,omitempty"`
	Version string `json:"version,omitempty" check:"required,minlen=1"`
}

// Same reports whether two specifications mean the same version: one may have
// the id where the other has the name only if either has both.
func (s LaunchTemplateSpecification) Same(o LaunchTemplateSpecification) bool {
	if cmp.Or(s.Version, "$Default") != cmp.Or(o.Version, "$Default") {
		return false
	}
	if s.ID != "" && o.ID != "" {
		return s.ID == o.ID
	}
	return s.Name != "" && s.Name == o.Name
}

// InstanceRequirements are the attributes that instance types must have, member
// for member those of the Auto Scaling API.
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

// Bounds hold a whole number, Range any other; nil is no bound.
type Bounds struct {
	Max *int32 `json:"max,omitempty" check:"min=0"`
	Min *int32 `json:"min,omitempty" check:"min=0"`
}

// Range is Bounds of a number that need not be whole.
type Range struct {
	Max *float64 `json:"max,omitempty"`
	Min *float64 `json:"min,omitempty"`
}

// BaselinePerformanceFactors ask for types that perform like a family does.
type BaselinePerformanceFactors struct {
	CPU *CPUPerformanceFactor `json:"cpu,omitempty" check:"required"`
}

// CPUPerformanceFactor is the performance of the processors. Auto Scaling's answers
// have the list under another name than its documentation.
type CPUPerformanceFactor struct {
	References []PerformanceReference `json:"references,omitempty" xml:"Reference" check:"required"`
}

// PerformanceReference names an instance family.
type PerformanceReference struct {
	InstanceFamily string `json:"instanceFamily,omitempty" check:"required,minlen=1"`
}

// Same reports whether two policies ask AWS for the same: launch templates may be
// named by id or name, lists of requirements may be in any order, and what only
// stands for a default of AWS is no difference.
func (m *MixedInstances) Same(o *MixedInstances) bool {
	if m == nil || o == nil {
		return m == o
	}
	a, b := *m, *o
	a.Overrides, b.Overrides = nil, nil
	return reflect.DeepEqual(a, b) && slices.EqualFunc(m.Overrides, o.Overrides, Override.Same)
}

// Same reports whether two overrides mean the same.
func (v Override) Same(o Override) bool {
	a, b := v.LaunchTemplate, o.LaunchTemplate
	if (a == nil) != (b == nil) || a != nil && !a.Same(*b) {
		return false
	}
	v.InstanceRequirements, o.InstanceRequirements = v.InstanceRequirements.plain(), o.InstanceRequirements.plain()
	v.LaunchTemplate, o.LaunchTemplate = nil, nil
	return reflect.DeepEqual(v, o)
}

// plain leaves out what stands for a default of AWS, and sorts lists.
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
