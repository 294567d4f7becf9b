package derive

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/instancetypes"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/manifest/rules"
)

// applyGroupOptions adds to a pool what its PoolOptions says of its group.
func (b *Builder) applyGroupOptions(d *draft, o *kinds.Decoded[kinds.PoolOptionsSpec]) {
	g := o.Spec.AutoScalingGroup
	if g == nil {
		return
	}
	d.AtOptions = o.Reporter(d.Faults)
	if d.Group == nil {
		d.AtOptions.Error(kinds.OptionsGroup, "not-allowed", kinds.OptionsGroup.String()+" is not allowed for a managed pool: the group behind it is EKS's", "use an AWSMachinePool")
		return
	}
	d.Group.Options = g.Whole()
	if p := g.RefreshPreferences; p != nil {
		own := d.Group.Refresh
		d.Group.Refresh = p.Refresh
		r := &d.Group.Refresh
		r.Disable, r.Strategy, r.InstanceWarmup, r.MinHealthyPercentage, r.MaxHealthyPercentage = own.Disable, own.Strategy, own.InstanceWarmup, own.MinHealthyPercentage, own.MaxHealthyPercentage
	}
	pool := b.index.Pools[kinds.KeyOf(d.Infrastructure)]
	b.mixOptions(d, pool, g.MixedInstancesPolicy)
	d.checkWarmPool(pool, g)
	d.checkCapacityType(g)
	d.checkRetention()
	if r := d.Group.Refresh; intent.Value(r.AutoRollback) {
		d.checkRollback()
	}
}

// checkRetention: machines are retained when a termination hook is abandoned, and only
// then ("Configure instance retention" in the user guide of Auto Scaling).
func (d *Derived) checkRetention() {
	p := d.Group.Options.InstanceLifecyclePolicy
	if p == nil || p.RetentionTriggers == nil || p.RetentionTriggers.TerminateHookAbandon != "retain" {
		return
	}
	const terminating = "autoscaling:EC2_INSTANCE_TERMINATING"
	if !slices.ContainsFunc(d.Group.LifecycleHooks, func(h intent.LifecycleHook) bool { return h.LifecycleTransition == terminating }) {
		at := kinds.OptionsGroup.Join("instanceLifecyclePolicy", "retentionTriggers", "terminateHookAbandon")
		d.AtOptions.Warn(at, "retains-nothing", at.String()+" is retain, and the pool has no lifecycle hook for terminations that could be abandoned",
			"add one to spec.lifecycleHooks of the pool, with lifecycleTransition "+terminating)
	}
}

// mixOptions adds to the pool's mixed instances policy. Where the pool has none,
// the options make one.
func (b *Builder) mixOptions(d *draft, pool *kinds.Decoded[kinds.AWSMachinePoolSpec], m *kinds.MixedOptions) {
	if m == nil {
		return
	}
	at := kinds.OptionsGroup.Join("mixedInstancesPolicy")
	policy := d.Group.MixedInstancesPolicy
	if policy == nil {
		policy = mixed(&kinds.MixedInstancesPolicy{})
		d.Group.MixedInstancesPolicy = policy
		d.checkMixedMarket(pool, at)
	}
	if v := m.InstancesDistribution; v != nil {
		policy.SpotMaxPrice = v.SpotMaxPrice
		if n := v.SpotInstancePools; n != nil && policy.SpotAllocationStrategy != "lowest-price" {
			d.optionsExclude(at.Join("instancesDistribution", "spotInstancePools"), path("spec", "mixedInstancesPolicy", "instancesDistribution", "spotAllocationStrategy"),
				"only lowest-price spreads over a number of pools")
		} else if n != nil && *n != 2 { // the default, which intents leave out
			policy.SpotInstancePools = *n
		}
	}
	given := len(policy.Overrides) > 0
	for i, o := range m.Overrides {
		at := at.Join("overrides", intent.Index(i))
		same := slices.IndexFunc(policy.Overrides, func(v intent.Override) bool { return v.InstanceType == o.InstanceType && o.InstanceType != "" })
		switch {
		case same < 0 && given:
			d.optionsExclude(at, path("spec", "mixedInstancesPolicy", "overrides"), "the pool names the instance types; an entry here adds to one of them. Name all of them there, or all of them here")
		case given:
			policy.Overrides[same] = o
		default:
			policy.Overrides = append(policy.Overrides, o)
		}
	}
	if slices.ContainsFunc(policy.Overrides, func(o intent.Override) bool { return o.InstanceRequirements != nil }) {
		withoutPriorities(pool, policy)
	}
	d.checkPolicy(pool, policy, at)
}

// withoutPriorities makes other strategies of the defaults that rank instance types:
// where these are found by their attributes, Auto Scaling has other defaults.
func withoutPriorities(pool *kinds.Decoded[kinds.AWSMachinePoolSpec], m *intent.MixedInstances) {
	distribution := path("spec", "mixedInstancesPolicy", "instancesDistribution")
	for field, strategy := range map[string]*string{"onDemandAllocationStrategy": &m.OnDemandAllocationStrategy, "spotAllocationStrategy": &m.SpotAllocationStrategy} {
		if strings.HasSuffix(*strategy, "prioritized") && !pool.Source.Has(distribution.Join(field)...) {
			*strategy = "lowest-price"
		}
	}
}

// checkMixedMarket is checkMixedPolicy's rule for a policy that the options make.
func (d *Derived) checkMixedMarket(pool *kinds.Decoded[kinds.AWSMachinePoolSpec], at intent.Path) {
	lt := &pool.Spec.AWSLaunchTemplate
	for field, written := range map[string]bool{"marketType": lt.MarketType == "Spot", "spotMarketOptions": lt.SpotMarketOptions != nil} {
		if written {
			d.optionsExclude(at, path("spec", "awsLaunchTemplate", field), "say the share of spot instances in mixedInstancesPolicy.instancesDistribution of the pool")
		}
	}
}

// checkPolicy checks a whole policy: LaunchTemplateOverrides and
// InstancesDistribution in the API reference of Auto Scaling.
func (d *Derived) checkPolicy(pool *kinds.Decoded[kinds.AWSMachinePoolSpec], m *intent.MixedInstances, at intent.Path) {
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
	case n > rules.MaxOverrides:
		d.AtOptions.Error(overrides, "too-many-overrides", fmt.Sprintf("the policy has %d overrides; Auto Scaling takes %d", n, rules.MaxOverrides), "")
	case weights > 0 && weights < n:
		d.AtOptions.Error(overrides, "incomplete", fmt.Sprintf("%d of %d instance types have a weightedCapacity; all of them need one, or none", weights, n), "")
	case weights > 0 && requirements > 0:
		d.AtOptions.Error(overrides, "exclusive", "weightedCapacity excludes instanceRequirements", "write desiredCapacityType: vcpu or memory-mib in place of weights")
	case requirements > 0 && requirements < n:
		d.AtOptions.Error(overrides, "incomplete", "overrides have instanceRequirements, all of them, or none", "allowedInstanceTypes narrows requirements to types")
	case requirements > 4:
		d.AtOptions.Error(overrides, "out-of-range", fmt.Sprintf("the policy has %d sets of instanceRequirements; Auto Scaling takes 4", requirements), "")
	case len(templates) > 19:
		d.AtOptions.Error(overrides, "out-of-range", fmt.Sprintf("the overrides name %d launch templates; Auto Scaling takes 20 with the pool's own", len(templates)), "")
	}
	if requirements > 0 {
		d.checkStrategies(pool, m, overrides)
	}
	d.checkOverrideTypes(m, overrides)
}

// checkStrategies: what is found by its attributes has no priorities.
func (d *Derived) checkStrategies(pool *kinds.Decoded[kinds.AWSMachinePoolSpec], m *intent.MixedInstances, at intent.Path) {
	distribution := path("spec", "mixedInstancesPolicy", "instancesDistribution")
	for field, strategy := range map[string]string{"onDemandAllocationStrategy": m.OnDemandAllocationStrategy, "spotAllocationStrategy": m.SpotAllocationStrategy} {
		if strings.HasSuffix(strategy, "prioritized") && pool.Source.Has(distribution.Join(field)...) {
			d.optionsExclude(at, distribution.Join(field), "types that are found by their attributes have no priorities")
		}
	}
}

// checkOverrideTypes checks the instance types of overrides that have the pool's
// image, as checkOneArchitecture does for those of the pool.
func (d *Derived) checkOverrideTypes(m *intent.MixedInstances, at intent.Path) {
	want, first := "", ""
	if d.LaunchTemplate != nil {
		first = cmp.Or(d.LaunchTemplate.Image.InstanceType, d.LaunchTemplate.Data.InstanceType)
		want = instancetypes.Architecture(first)
	}
	for i, o := range m.Overrides {
		p := at.Join(intent.Index(i), "instanceType")
		if o.InstanceType != "" {
			rules.CheckKnownTypes(d.AtOptions, []kinds.TypeField{{At: p, Name: o.InstanceType}})
		}
		if got := instancetypes.Architecture(o.InstanceType); want != "" && got != "" && got != want && o.LaunchTemplate == nil && o.ImageID == "" {
			d.AtOptions.Error(p, "mixed-architectures", fmt.Sprintf("%s %s is %s, but %s is %s: they have one image, which has one architecture", p, o.InstanceType, got, first, want),
				"name a launch template or an image for it beside the type")
		}
	}
}

// checkWarmPool: "Warm pools" in the user guide of Auto Scaling.
func (d *Derived) checkWarmPool(pool *kinds.Decoded[kinds.AWSMachinePoolSpec], g *kinds.GroupOptions) {
	w, at := g.WarmPool, kinds.OptionsGroup.Join("warmPool")
	if w == nil {
		return
	}
	lt, template := &pool.Spec.AWSLaunchTemplate, path("spec", "awsLaunchTemplate")
	const spot = "a warm pool holds on-demand instances only"
	switch m := d.Group.MixedInstancesPolicy; {
	case lt.SpotMarketOptions != nil:
		d.optionsExclude(at, template.Join("spotMarketOptions"), spot)
	case lt.MarketType == "Spot":
		d.optionsExclude(at, template.Join("marketType"), spot)
	case m != nil && m.OnDemandPercentageAboveBaseCapacity < 100:
		d.optionsExclude(at, path("spec", "mixedInstancesPolicy", "instancesDistribution", "onDemandPercentageAboveBaseCapacity"), spot)
	}
	if t := d.LaunchTemplate; w.PoolState == "Hibernated" && t != nil && (t.Data.HibernationOptions == nil || !intent.Value(t.Data.HibernationOptions.Configured)) {
		p := at.Join("poolState")
		d.AtOptions.Warn(p, "incomplete", p.String()+" Hibernated needs instances that can hibernate", "write spec.launchTemplate.hibernationOptions.configured: true")
	}
}

// checkCapacityType: DesiredCapacityType in the API reference of Auto Scaling.
func (d *Derived) checkCapacityType(g *kinds.GroupOptions) {
	m := d.Group.MixedInstancesPolicy
	byAttributes := m != nil && slices.ContainsFunc(m.Overrides, func(o intent.Override) bool { return o.InstanceRequirements != nil })
	if at := kinds.OptionsGroup.Join("desiredCapacityType"); g.DesiredCapacityType != "" && g.DesiredCapacityType != "units" && !byAttributes {
		d.AtOptions.Error(at, "incomplete", fmt.Sprintf("%s %s needs instanceRequirements in mixedInstancesPolicy.overrides", at, g.DesiredCapacityType), "other groups count instances")
	}
}

// checkRollback: AutoRollback of RefreshPreferences in the API reference.
func (d *Derived) checkRollback() {
	if d.Group.MixedInstancesPolicy == nil {
		return
	}
	for _, o := range d.Group.MixedInstancesPolicy.Overrides {
		if t := o.LaunchTemplate; t != nil && strings.HasPrefix(t.Version, "$") {
			at := kinds.OptionsGroup.Join("refreshPreferences", "autoRollback")
			d.AtOptions.Error(at, "exclusive", fmt.Sprintf("%s excludes a launch template by %s", at, t.Version), "a refresh is rolled back only where each version is a number")
			return
		}
	}
}
