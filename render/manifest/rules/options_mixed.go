package rules

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/render/instancetypes"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// checkMixedOptions applies the rules that concern only the options of a mixed instances policy.
func checkMixedOptions(r kinds.Reporter, p intent.Path, m *kinds.MixedOptions) {
	if m == nil {
		return
	}
	if d := m.InstancesDistribution; d != nil {
		checkSpotPrice(r, p.Join("instancesDistribution", "spotMaxPrice"), d.SpotMaxPrice)
	}
	seen := map[string]bool{}
	for i := range m.Overrides {
		at, o := p.Join("overrides", intent.Index(i)), &m.Overrides[i]
		checkOverrideOptions(r, at, o)
		if seen[o.InstanceType] && o.InstanceType != "" {
			r.Error(at.Join("instanceType"), "duplicate", fmt.Sprintf("%s is %q, which another entry has", at.Join("instanceType"), o.InstanceType), "")
		}
		seen[o.InstanceType] = true
	}
}

// checkOverrideOptions checks one override of a mixed instances policy by the rules of EC2 Auto Scaling.
func checkOverrideOptions(r kinds.Reporter, at intent.Path, o *intent.Override) {
	switch {
	case o.InstanceType == "" && o.InstanceRequirements == nil:
		r.Error(at, "missing-required", at.String()+" needs instanceType or instanceRequirements", "")
	case o.InstanceType != "" && o.InstanceRequirements != nil:
		r.Error(at.Join("instanceRequirements"), "exclusive", at.Join("instanceRequirements").String()+" excludes instanceType", "allowedInstanceTypes narrows requirements to types")
	}
	if n, err := strconv.Atoi(o.WeightedCapacity); o.WeightedCapacity != "" && (err != nil || n < 1 || n > 999) {
		r.Error(at.Join("weightedCapacity"), "bad-value", fmt.Sprintf("%s is %q; it is a number from 1 to 999 in quotes", at.Join("weightedCapacity"), o.WeightedCapacity), "")
	}
	if t := o.LaunchTemplate; t != nil {
		at := at.Join("launchTemplateSpecification")
		switch {
		case t.ID == "" && t.Name == "":
			r.Error(at, "missing-required", at.String()+" needs launchTemplateId or launchTemplateName", "")
		case t.ID != "" && t.Name != "":
			r.Error(at.Join("launchTemplateName"), "exclusive", at.Join("launchTemplateName").String()+" excludes launchTemplateId", "")
		}
		if t.Version != "" && !versionOrAlias.MatchString(t.Version) {
			r.Error(at.Join("version"), "bad-value", fmt.Sprintf("%s is %q; it is a number in quotes, $Latest or $Default", at.Join("version"), t.Version), "")
		}
	}
	checkRequirements(r, at.Join("instanceRequirements"), o.InstanceRequirements)
}

// CheckMixedMarket applies the rule of checkMixedPolicy to a policy that the options create.
func (d *Derived) CheckMixedMarket(pool *kinds.Decoded[kinds.AWSMachinePoolSpec], at intent.Path) {
	lt := &pool.Spec.AWSLaunchTemplate
	for field, written := range map[string]bool{"marketType": lt.MarketType == "Spot", "spotMarketOptions": lt.SpotMarketOptions != nil} {
		if written {
			d.OptionsExclude(at, path("spec", "awsLaunchTemplate", field), "write the share of spot instances in mixedInstancesPolicy.instancesDistribution of the pool")
		}
	}
}

// CheckPolicy checks the complete policy: LaunchTemplateOverrides and InstancesDistribution in the API
// reference of Auto Scaling.
func (d *Derived) CheckPolicy(pool *kinds.Decoded[kinds.AWSMachinePoolSpec], m *intent.MixedInstances, at intent.Path) {
	overrides := at.Join("overrides")
	weights, requirements := 0, 0
	templates := map[intent.LaunchTemplateSpecification]bool{}
	for _, o := range m.Overrides {
		if o.WeightedCapacity != "" {
			weights++
		}
		if o.InstanceRequirements != nil {
			requirements++
		}
		if t := o.LaunchTemplate; t != nil {
			templates[intent.LaunchTemplateSpecification{ID: t.ID, Name: t.Name}] = true
		}
	}
	n := len(m.Overrides)
	switch {
	case n > maxOverrides:
		d.AtOptions.Error(overrides, "too-many-overrides", fmt.Sprintf("the policy has %d overrides; Auto Scaling allows %d", n, maxOverrides), "")
	case weights > 0 && weights < n:
		d.AtOptions.Error(overrides, "incomplete", fmt.Sprintf("%d of %d instance types have a weightedCapacity; all of them need one, or none", weights, n), "")
	case weights > 0 && requirements > 0:
		d.AtOptions.Error(overrides, "exclusive", "weightedCapacity excludes instanceRequirements", "write desiredCapacityType: vcpu or memory-mib in place of weights")
	case requirements > 0 && requirements < n:
		d.AtOptions.Error(overrides, "incomplete", "overrides have instanceRequirements, all of them, or none", "allowedInstanceTypes narrows requirements to types")
	case requirements > 4:
		d.AtOptions.Error(overrides, "out-of-range", fmt.Sprintf("the policy has %d sets of instanceRequirements; Auto Scaling allows 4", requirements), "")
	case len(templates) > 19:
		d.AtOptions.Error(overrides, "out-of-range", fmt.Sprintf("the overrides name %d launch templates; Auto Scaling allows 20 with the pool's own", len(templates)), "")
	}
	if requirements > 0 {
		d.checkStrategies(pool, m, overrides)
	}
	d.checkOverrideTypes(m, overrides)
}

// checkStrategies refuses strategies with priorities if AWS selects instance types by attributes, because
// such types have no priorities.
func (d *Derived) checkStrategies(pool *kinds.Decoded[kinds.AWSMachinePoolSpec], m *intent.MixedInstances, at intent.Path) {
	distribution := path("spec", "mixedInstancesPolicy", "instancesDistribution")
	for field, strategy := range map[string]string{"onDemandAllocationStrategy": m.OnDemandAllocationStrategy, "spotAllocationStrategy": m.SpotAllocationStrategy} {
		if strings.HasSuffix(strategy, "prioritized") && pool.Source.Has(distribution.Join(field)...) {
			d.OptionsExclude(at, distribution.Join(field), "types that are found by their attributes have no priorities")
		}
	}
}

// checkOverrideTypes checks the instance types of overrides that use the pool's image, like
// checkOneArchitecture for the pool's types.
func (d *Derived) checkOverrideTypes(m *intent.MixedInstances, at intent.Path) {
	want, first := "", ""
	if d.LaunchTemplate != nil {
		first = cmp.Or(d.LaunchTemplate.Image.InstanceType, d.LaunchTemplate.Data.InstanceType)
		want = instancetypes.Architecture(first)
	}
	for i, o := range m.Overrides {
		p := at.Join(intent.Index(i), "instanceType")
		if o.InstanceType != "" {
			checkKnownTypes(d.AtOptions, []kinds.TypeField{{At: p, Name: o.InstanceType}})
		}
		if got := instancetypes.Architecture(o.InstanceType); want != "" && got != "" && got != want && o.LaunchTemplate == nil && o.ImageID == "" {
			d.AtOptions.Error(p, "mixed-architectures", fmt.Sprintf("%s %s is %s, but %s is %s: both start from the same image, and an image has one architecture", p, o.InstanceType, got, first, want),
				"name a launch template or an image together with the type")
		}
	}
}
