package awsemu

import (
	"strconv"
	"strings"
)

// groupConfig says what a group launches: a launch template or a mixed instances
// policy.
type groupConfig struct {
	Template *ltSpec
	Mixed    *mixedPolicy
}

// ltSpec names a version of a launch template.
type ltSpec struct {
	ID, Name string
	Version  string // a number, $Latest or $Default
}

// mixedPolicy is a mixed instances policy with its defaults filled in.
type mixedPolicy struct {
	Base         ltSpec
	Overrides    []override
	Distribution distribution
}

// override is one choice of a mixed instances policy.
type override struct {
	InstanceType string
	Weight       string
	Template     *ltSpec
	Requirements ltData
	ImageID      string
}

// distribution says how a mixed instances policy buys.
type distribution struct {
	OnDemandStrategy string
	OnDemandBase     int64
	OnDemandPercent  int64
	SpotStrategy     string
	SpotPools        *int64
	SpotMaxPrice     string
}

// mixedInput is a mixed instances policy of a request; nil parts were not sent.
type mixedInput struct {
	base         *ltSpec
	overrides    []override
	hasOverrides bool
	hasTemplate  bool

	onDemandStrategy, spotStrategy, spotMaxPrice *string
	onDemandBase, onDemandPercent, spotPools     *int64
}

// weightRange is what AWS takes as a weight.
const weightRange = "Weighted capacity must be a number from 1 to 999"

func parseLTSpec(p *params) *ltSpec {
	if p == nil {
		return nil
	}
	s := &ltSpec{ID: p.text("LaunchTemplateId"), Name: p.text("LaunchTemplateName"), Version: first(p.text("Version"), "$Default")}
	if (s.ID == "") == (s.Name == "") {
		p.reject(fail("ValidationError", "Valid requests must contain either launchTemplateId or LaunchTemplateName"))
	}
	return s
}

func parseMixed(p *params) *mixedInput {
	if p == nil {
		return nil
	}
	in := &mixedInput{}
	if t := p.sub("LaunchTemplate"); t != nil {
		in.hasTemplate = true
		in.base = parseLTSpec(t.sub("LaunchTemplateSpecification"))
		in.hasOverrides = t.has("Overrides")
		for _, o := range t.list("Overrides") {
			in.overrides = append(in.overrides, parseOverride(o))
		}
	}
	if d := p.sub("InstancesDistribution"); d != nil {
		in.onDemandStrategy = d.optional("OnDemandAllocationStrategy")
		in.onDemandBase = d.optionalInt("OnDemandBaseCapacity")
		in.onDemandPercent = d.optionalInt("OnDemandPercentageAboveBaseCapacity")
		in.spotStrategy = d.optional("SpotAllocationStrategy")
		in.spotPools = d.optionalInt("SpotInstancePools")
		in.spotMaxPrice = d.optional("SpotMaxPrice")
	}
	return in
}

func parseOverride(p *params) override {
	o := override{
		InstanceType: p.text("InstanceType"), Weight: p.text("WeightedCapacity"),
		Template: parseLTSpec(p.sub("LaunchTemplateSpecification")), ImageID: p.text("ImageId"),
	}
	if o.Requirements = p.data("InstanceRequirements"); o.Requirements != nil {
		if err := checkRequirements(ltData{"InstanceRequirements": map[string]any(o.Requirements)}); err != nil {
			p.reject(fail("ValidationError", "%s", err.Message))
		}
	}
	if n, err := strconv.Atoi(o.Weight); o.Weight != "" && (err != nil || n < 1 || n > 999) {
		p.bad("WeightedCapacity", o.Weight, weightRange)
	}
	if o.InstanceType != "" && o.Requirements != nil {
		p.reject(fail("ValidationError", "An override may specify only one of InstanceType and InstanceRequirements."))
	}
	return o
}

// apply makes a policy out of a request and the policy that was there before,
// nil for none: what was not sent stays.
func (in *mixedInput) apply(before *mixedPolicy) (*mixedPolicy, *apiError) {
	m := &mixedPolicy{Distribution: distribution{OnDemandPercent: 100, SpotStrategy: "lowest-price"}}
	if before != nil {
		*m = *before
	}
	if in.base != nil {
		m.Base = *in.base
	}
	if in.hasOverrides {
		m.Overrides = in.overrides
	}
	if m.Base == (ltSpec{}) {
		return nil, fail("ValidationError", "Mixed instances policy must contain a launch template specification.")
	}
	d := &m.Distribution
	set(&d.OnDemandStrategy, in.onDemandStrategy)
	set(&d.OnDemandBase, in.onDemandBase)
	set(&d.OnDemandPercent, in.onDemandPercent)
	set(&d.SpotStrategy, in.spotStrategy)
	set(&d.SpotMaxPrice, in.spotMaxPrice)
	if in.spotPools != nil || in.spotStrategy != nil && *in.spotStrategy != "lowest-price" {
		d.SpotPools = in.spotPools // those of lowest-price end with it
	}
	if d.OnDemandStrategy == "" {
		d.OnDemandStrategy = "prioritized"
		if m.byRequirements() {
			d.OnDemandStrategy = "lowest-price"
		}
	}
	return m, d.check(m)
}

// set changes a value where a new one was sent.
func set[T any](to *T, value *T) {
	if value != nil {
		*to = *value
	}
}

// check applies the rules of a distribution and settles its pools.
func (d *distribution) check(m *mixedPolicy) *apiError {
	switch {
	case !contains([]string{"prioritized", "lowest-price"}, d.OnDemandStrategy):
		return fail("ValidationError", "The specified on-demand allocation strategy %s is not valid. Valid values are: prioritized, lowest-price.", d.OnDemandStrategy)
	case !contains([]string{"lowest-price", "capacity-optimized", "capacity-optimized-prioritized", "price-capacity-optimized"}, d.SpotStrategy):
		return fail("ValidationError", "The specified spot allocation strategy %s is not valid. Valid values are: lowest-price, capacity-optimized, capacity-optimized-prioritized, price-capacity-optimized.", d.SpotStrategy)
	case m.byRequirements() && (d.OnDemandStrategy == "prioritized" || d.SpotStrategy == "capacity-optimized-prioritized"):
		return fail("ValidationError", "Prioritized allocation strategies cannot be used with InstanceRequirements.")
	case d.OnDemandBase < 0:
		return fail("ValidationError", "OnDemandBaseCapacity must be greater than or equal to 0.")
	case d.OnDemandPercent < 0 || d.OnDemandPercent > 100:
		return fail("ValidationError", "OnDemandPercentageAboveBaseCapacity must be between 0 and 100.")
	}
	if d.SpotStrategy != "lowest-price" {
		if d.SpotPools != nil && *d.SpotPools != 0 {
			return fail("ValidationError", "SpotInstancePools option is only available with the lowest-price allocation strategy.")
		}
		d.SpotPools = nil
		return nil
	}
	if d.SpotPools == nil {
		two := int64(2)
		d.SpotPools = &two
	}
	if *d.SpotPools < 1 || *d.SpotPools > 20 {
		return fail("ValidationError", "SpotInstancePools must be between 1 and 20.")
	}
	return nil
}

func (m *mixedPolicy) byRequirements() bool {
	for _, o := range m.Overrides {
		if o.Requirements != nil {
			return true
		}
	}
	return false
}

// specs are all launch template specifications of the configuration, to be
// changed in place.
func (c *groupConfig) specs() []*ltSpec {
	if c.Template != nil {
		return []*ltSpec{c.Template}
	}
	if c.Mixed == nil {
		return nil
	}
	all := []*ltSpec{&c.Mixed.Base}
	for i := range c.Mixed.Overrides {
		if t := c.Mixed.Overrides[i].Template; t != nil {
			all = append(all, t)
		}
	}
	return all
}

// pinned says whether every launch template is named by a number and none takes
// its image from a parameter: only then can a refresh be rolled back.
func (c groupConfig) pinned(r *region) bool {
	for _, s := range c.specs() {
		if strings.HasPrefix(s.Version, "$") {
			return false
		}
		if _, v, err := r.ltResolve(s.ID, "", s.Version); err == nil && strings.HasPrefix(v.Data.text("ImageId"), "resolve:ssm:") {
			return false
		}
	}
	return true
}

// checkConfig applies Auto Scaling's rules to a configuration and fills in both
// id and name of its templates. With trial, the templates are tried as EC2's
// dry run does, which finds images, types and profiles that are not there.
func (r *region) checkConfig(c groupConfig, trial bool, subnets []string) *apiError {
	if err := r.checkPolicy(c.Mixed); err != nil {
		return err
	}
	for _, s := range c.specs() {
		t, v, err := r.ltResolve(s.ID, s.Name, s.Version)
		if err != nil {
			return malformedTemplate(err)
		}
		s.ID, s.Name = t.ID, t.Name
		if c.Mixed != nil && v.Data.sub("InstanceMarketOptions").text("MarketType") == "spot" {
			return fail("ValidationError", "Incompatible launch template: the launch template of a mixed instances policy must not request Spot Instances. Remove InstanceMarketOptions and try again.")
		}
	}
	choices, err := r.choices(c)
	if err != nil || !trial {
		return err
	}
	return r.tryLaunch(choices[0], subnets)
}

// checkPolicy applies the limits of a mixed instances policy.
func (r *region) checkPolicy(m *mixedPolicy) *apiError {
	if m == nil {
		return nil
	}
	if n := r.quota("overrides"); len(m.Overrides) > n {
		return fail("ValidationError", "The number of instance type overrides must not exceed %d.", n)
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
		if o.InstanceType != "" && types[o.InstanceType] {
			return fail("ValidationError", "The instance type %s is specified in more than one override.", o.InstanceType)
		}
		types[o.InstanceType] = true
	}
	switch {
	case weights > 0 && weights < len(m.Overrides):
		return fail("ValidationError", "If you specify a weighted capacity for one instance type, you must specify it for all instance types.")
	case weights > 0 && requirements > 0:
		return fail("ValidationError", "Weighted capacity cannot be used with InstanceRequirements.")
	case requirements > 0 && requirements < len(m.Overrides):
		return fail("ValidationError", "All overrides must specify InstanceRequirements if one of them does.")
	case requirements > 4:
		return fail("ValidationError", "A mixed instances policy may hold at most 4 sets of InstanceRequirements.")
	case len(templates) > r.quota("launch-templates-per-group"):
		return fail("ValidationError", "A mixed instances policy may name at most %d launch templates.", r.quota("launch-templates-per-group"))
	}
	return nil
}

// malformedTemplate wraps EC2's fault as Auto Scaling does.
func malformedTemplate(err *apiError) *apiError {
	return fail("ValidationError", "You must use a valid fully-formed launch template. %s", err.Message)
}
