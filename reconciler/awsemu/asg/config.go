package asg

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// GroupConfig is the launch source of a group: a launch template, a mixed instances policy or a launch
// configuration.
type GroupConfig struct {
	LaunchConfig string // by name
	Template     *TemplateSpec
	Mixed        *MixedPolicy
}

// TemplateSpec names a version of a launch template.
type TemplateSpec struct {
	ID, Name string
	Version  string // a number, $Latest or $Default
}

// MixedPolicy is a mixed instances policy with its defaults filled in.
type MixedPolicy struct {
	Base         TemplateSpec
	Overrides    []Override
	Distribution Distribution
}

// Override is one choice of a mixed instances policy.
type Override struct {
	InstanceType string
	Weight       string
	Template     *TemplateSpec
	Requirements wire.Data
	ImageID      string
}

// Distribution is the purchase options of a mixed instances policy.
type Distribution struct {
	OnDemandStrategy string
	OnDemandBase     int64
	OnDemandPercent  int64
	SpotStrategy     string
	SpotPools        *int64
	SpotMaxPrice     string
}

// SpecInput names a version of a launch template in a request.
type SpecInput struct {
	LaunchTemplateID, LaunchTemplateName, Version string
}

// PolicyInput is a mixed instances policy in a request. Parts that were not sent are nil.
type PolicyInput struct {
	LaunchTemplate        *PolicyTemplate
	InstancesDistribution *struct {
		OnDemandAllocationStrategy, SpotAllocationStrategy, SpotMaxPrice             *string
		OnDemandBaseCapacity, OnDemandPercentageAboveBaseCapacity, SpotInstancePools *int64
	}
}

// PolicyTemplate is the launch template and the types of a mixed instances policy.
type PolicyTemplate struct {
	LaunchTemplateSpecification *SpecInput
	Overrides                   []overrideInput
}

type overrideInput struct {
	InstanceType, WeightedCapacity, ImageID string
	LaunchTemplateSpecification             *SpecInput
	InstanceRequirements                    wire.Data
}

// weightRange is AWS's message about a weight out of range.
const weightRange = "Weighted capacity must be a number from 1 to 999"

func (in *SpecInput) check() error {
	if in != nil && (in.LaunchTemplateID == "") == (in.LaunchTemplateName == "") {
		return invalid("Valid requests must contain either launchTemplateId or LaunchTemplateName")
	}
	return nil
}

// spec returns the launch template in the request, or nil.
func (in *SpecInput) spec() *TemplateSpec {
	if in == nil {
		return nil
	}
	return &TemplateSpec{ID: in.LaunchTemplateID, Name: in.LaunchTemplateName, Version: cmp.Or(in.Version, "$Default")}
}

func (in *PolicyInput) check() error {
	if in == nil || in.LaunchTemplate == nil {
		return nil
	}
	err := in.LaunchTemplate.LaunchTemplateSpecification.check()
	for _, o := range in.LaunchTemplate.Overrides {
		err = cmp.Or(err, o.check())
	}
	return err
}

func (in *overrideInput) check() error {
	if err := in.LaunchTemplateSpecification.check(); err != nil {
		return err
	}
	if in.InstanceRequirements != nil {
		if err := ec2.CheckRequirements(wire.Data{"InstanceRequirements": map[string]any(in.InstanceRequirements)}); err != nil {
			return invalid("%s", err.Message)
		}
	}
	if n, err := strconv.Atoi(in.WeightedCapacity); in.WeightedCapacity != "" && (err != nil || n < 1 || n > 999) {
		return badValue("WeightedCapacity", in.WeightedCapacity, weightRange)
	}
	if in.InstanceType != "" && in.InstanceRequirements != nil {
		return invalid("An override may specify only one of InstanceType and InstanceRequirements.")
	}
	return nil
}

// apply returns a policy from a request and the earlier policy, which may be nil. Members that were not sent
// stay unchanged.
func (in *PolicyInput) apply(before *MixedPolicy) (*MixedPolicy, *wire.Error) {
	m := &MixedPolicy{Distribution: Distribution{OnDemandPercent: 100, SpotStrategy: "lowest-price"}}
	if before != nil {
		*m = *before
	}
	if sent := in.LaunchTemplate; sent != nil {
		if base := sent.LaunchTemplateSpecification.spec(); base != nil {
			m.Base = *base
		}
		if sent.Overrides != nil {
			m.Overrides = nil
			for _, o := range sent.Overrides {
				m.Overrides = append(m.Overrides, Override{
					InstanceType: o.InstanceType, Weight: o.WeightedCapacity, Template: o.LaunchTemplateSpecification.spec(),
					Requirements: o.InstanceRequirements, ImageID: o.ImageID,
				})
			}
		}
	}
	if m.Base == (TemplateSpec{}) {
		return nil, invalid("Mixed instances policy must contain a launch template specification.")
	}
	d := &m.Distribution
	if sent := in.InstancesDistribution; sent != nil {
		Set(&d.OnDemandStrategy, sent.OnDemandAllocationStrategy)
		Set(&d.OnDemandBase, sent.OnDemandBaseCapacity)
		Set(&d.OnDemandPercent, sent.OnDemandPercentageAboveBaseCapacity)
		Set(&d.SpotStrategy, sent.SpotAllocationStrategy)
		Set(&d.SpotMaxPrice, sent.SpotMaxPrice)
		if sent.SpotInstancePools != nil || sent.SpotAllocationStrategy != nil && *sent.SpotAllocationStrategy != "lowest-price" {
			d.SpotPools = sent.SpotInstancePools // pools of lowest-price end with it
		}
	}
	if d.OnDemandStrategy == "" {
		d.OnDemandStrategy = "prioritized"
		if m.byRequirements() {
			d.OnDemandStrategy = "lowest-price"
		}
	}
	return m, d.check(m)
}

// Set changes a value if a new one was sent.
func Set[T any](to *T, value *T) {
	if value != nil {
		*to = *value
	}
}

// check applies the rules of a distribution and sets its pools.
func (d *Distribution) check(m *MixedPolicy) *wire.Error {
	switch {
	case !slices.Contains([]string{"prioritized", "lowest-price"}, d.OnDemandStrategy):
		return invalid("The specified on-demand allocation strategy %s is not valid. Valid values are: prioritized, lowest-price.", d.OnDemandStrategy)
	case !slices.Contains([]string{"lowest-price", "capacity-optimized", "capacity-optimized-prioritized", "price-capacity-optimized"}, d.SpotStrategy):
		return invalid("The specified spot allocation strategy %s is not valid. Valid values are: lowest-price, capacity-optimized, capacity-optimized-prioritized, price-capacity-optimized.", d.SpotStrategy)
	case m.byRequirements() && (d.OnDemandStrategy == "prioritized" || d.SpotStrategy == "capacity-optimized-prioritized"):
		return invalid("Prioritized allocation strategies cannot be used with InstanceRequirements.")
	case d.OnDemandBase < 0:
		return invalid("OnDemandBaseCapacity must be greater than or equal to 0.")
	case d.OnDemandPercent < 0 || d.OnDemandPercent > 100:
		return invalid("OnDemandPercentageAboveBaseCapacity must be between 0 and 100.")
	}
	if d.SpotStrategy != "lowest-price" {
		if d.SpotPools != nil && *d.SpotPools != 0 {
			return invalid("SpotInstancePools option is only available with the lowest-price allocation strategy.")
		}
		d.SpotPools = nil
		return nil
	}
	if d.SpotPools == nil {
		two := int64(2)
		d.SpotPools = &two
	}
	if *d.SpotPools < 1 || *d.SpotPools > 20 {
		return invalid("SpotInstancePools must be between 1 and 20.")
	}
	return nil
}

func (m *MixedPolicy) byRequirements() bool {
	for _, o := range m.Overrides {
		if o.Requirements != nil {
			return true
		}
	}
	return false
}

// specs returns all launch template specifications of the configuration, for changes in place.
func (c *GroupConfig) specs() []*TemplateSpec {
	if c.Template != nil {
		return []*TemplateSpec{c.Template}
	}
	if c.Mixed == nil {
		return nil
	}
	all := []*TemplateSpec{&c.Mixed.Base}
	for i := range c.Mixed.Overrides {
		if t := c.Mixed.Overrides[i].Template; t != nil {
			all = append(all, t)
		}
	}
	return all
}

// pinned reports whether every launch template has a version number and no image from a parameter. Only then
// can a refresh be rolled back.
func (c GroupConfig) pinned(r *Region) bool {
	for _, s := range c.specs() {
		if strings.HasPrefix(s.Version, "$") {
			return false
		}
		if _, v, err := r.ec2.Resolve(s.ID, "", s.Version); err == nil && strings.HasPrefix(v.Data.Text("ImageId"), "resolve:ssm:") {
			return false
		}
	}
	return true
}

// checkConfig applies Auto Scaling's rules to a configuration and fills in id and name of its templates.
// With trial, it tries the templates like EC2's dry run, which detects missing images, types and profiles.
func (r *Region) checkConfig(c GroupConfig, trial bool, subnets []string) *wire.Error {
	if err := checkPolicy(r.ec2, c.Mixed); err != nil {
		return err
	}
	for _, s := range c.specs() {
		t, v, err := r.ec2.Resolve(s.ID, s.Name, s.Version)
		if err != nil {
			return malformedTemplate(err)
		}
		s.ID, s.Name = t.ID, t.Name
		if c.Mixed != nil && v.Data.Sub("InstanceMarketOptions").Text("MarketType") == "spot" {
			return invalid("Incompatible launch template: the launch template of a mixed instances policy must not request Spot Instances. Remove InstanceMarketOptions and try again.")
		}
	}
	choices, err := r.choices(c)
	if err != nil || !trial {
		return err
	}
	return TryLaunch(r.ec2, choices[0], subnets)
}

// checkPolicy applies the limits of a mixed instances policy.
func checkPolicy(r *ec2.Region, m *MixedPolicy) *wire.Error {
	if m == nil {
		return nil
	}
	if n := r.Quota("overrides"); len(m.Overrides) > n {
		return invalid("The number of instance type overrides must not exceed %d.", n)
	}
	weights, requirements := 0, 0
	types, templates := map[string]bool{}, map[string]bool{m.Base.ID + m.Base.Name: true}
	for _, o := range m.Overrides {
		if o.Weight != "" {
			weights++
		}
		if o.Requirements != nil {
			requirements++
		}
		if o.Template != nil {
			templates[o.Template.ID+o.Template.Name] = true
		}
		if _, known := ec2.InstanceTypes()[o.InstanceType]; o.InstanceType != "" && !known && !r.Trusting {
			return invalid("The specified instance type %s is not valid.", o.InstanceType)
		}
		if o.InstanceType != "" && types[o.InstanceType] {
			return invalid("The instance type %s is specified in more than one override.", o.InstanceType)
		}
		types[o.InstanceType] = true
	}
	switch {
	case weights > 0 && weights < len(m.Overrides):
		return invalid("If you specify a weighted capacity for one instance type, you must specify it for all instance types.")
	case weights > 0 && requirements > 0:
		return invalid("Weighted capacity cannot be used with InstanceRequirements.")
	case requirements > 0 && requirements < len(m.Overrides):
		return invalid("All overrides must specify InstanceRequirements if one of them does.")
	case requirements > 4:
		return invalid("A mixed instances policy may hold at most 4 sets of InstanceRequirements.")
	case len(templates) > r.Quota("launch-templates-per-group"):
		return invalid("A mixed instances policy may name at most %d launch templates.", r.Quota("launch-templates-per-group"))
	}
	return nil
}

// malformedTemplate wraps EC2's error like Auto Scaling.
func malformedTemplate(err *wire.Error) *wire.Error {
	return invalid("You must use a valid fully-formed launch template. %s", err.Message)
}
