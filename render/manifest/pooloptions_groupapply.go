package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/instancetypes"
	"github.com/weir-gitops/weir/render/intent"
)

// applyGroupOptions adds to a pool what its PoolOptions says of its group.
func (b *builder) applyGroupOptions(d *draft, o *object[PoolOptionsSpec]) {
	g := o.Spec.AutoScalingGroup
	if g == nil {
		return
	}
	d.options = o.reporter(d.faults)
	if d.Group == nil {
		d.options.error(optionsGroup, "not-allowed", optionsGroup.String()+" is not allowed for a managed pool: the group behind it is EKS's", "use an AWSMachinePool")
		return
	}
	d.Group.Options = g.whole()
	if p := g.RefreshPreferences; p != nil {
		own := d.Group.Refresh
		d.Group.Refresh = p.Refresh
		r := &d.Group.Refresh
		r.Disable, r.Strategy, r.InstanceWarmup, r.MinHealthyPercentage, r.MaxHealthyPercentage = own.Disable, own.Strategy, own.InstanceWarmup, own.MinHealthyPercentage, own.MaxHealthyPercentage
	}
	pool := b.index.pools[keyOf(d.Infrastructure)]
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
func (d *draft) checkRetention() {
	p := d.Group.Options.InstanceLifecyclePolicy
	if p == nil || p.RetentionTriggers == nil || p.RetentionTriggers.TerminateHookAbandon != "retain" {
		return
	}
	const terminating = "autoscaling:EC2_INSTANCE_TERMINATING"
	if !slices.ContainsFunc(d.Group.LifecycleHooks, func(h intent.LifecycleHook) bool { return h.LifecycleTransition == terminating }) {
		at := optionsGroup.Join("instanceLifecyclePolicy", "retentionTriggers", "terminateHookAbandon")
		d.options.warn(at, "retains-nothing", at.String()+" is retain, and the pool has no lifecycle hook for terminations that could be abandoned",
			"add one to spec.lifecycleHooks of the pool, with lifecycleTransition "+terminating)
	}
}

// whole has AWS's defaults filled in where a member is sent whole.
func (g *GroupOptions) whole() intent.GroupOptions {
	out := g.GroupOptions
	if m := out.MetricsCollection; m != nil && m.Metrics == nil {
		m.Metrics = groupMetrics()
	}
	for i, s := range out.TrafficSources {
		out.TrafficSources[i].Type = cmp.Or(s.Type, sourceType(s.Identifier))
	}
	return out
}

// mixOptions adds to the pool's mixed instances policy. Where the pool has none,
// the options make one.
func (b *builder) mixOptions(d *draft, pool *object[AWSMachinePoolSpec], m *MixedOptions) {
	if m == nil {
		return
	}
	at := optionsGroup.Join("mixedInstancesPolicy")
	policy := d.Group.MixedInstancesPolicy
	if policy == nil {
		policy = mixed(&MixedInstancesPolicy{})
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
	d.checkPolicy(pool, policy, at)
}

// checkMixedMarket is checkMixedPolicy's rule for a policy that the options make.
func (d *draft) checkMixedMarket(pool *object[AWSMachinePoolSpec], at intent.Path) {
	lt := &pool.Spec.AWSLaunchTemplate
	for field, written := range map[string]bool{"marketType": lt.MarketType == "Spot", "spotMarketOptions": lt.SpotMarketOptions != nil} {
		if written {
			d.optionsExclude(at, path("spec", "awsLaunchTemplate", field), "say the share of spot instances in mixedInstancesPolicy.instancesDistribution of the pool")
		}
	}
}

// checkPolicy checks a whole policy: LaunchTemplateOverrides and
// InstancesDistribution in the API reference of Auto Scaling.
func (d *draft) checkPolicy(pool *object[AWSMachinePoolSpec], m *intent.MixedInstances, at intent.Path) {
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
		d.options.error(overrides, "too-many-overrides", fmt.Sprintf("the policy has %d overrides; Auto Scaling takes %d", n, maxOverrides), "")
	case weights > 0 && weights < n:
		d.options.error(overrides, "incomplete", fmt.Sprintf("%d of %d instance types have a weightedCapacity; all of them need one, or none", weights, n), "")
	case weights > 0 && requirements > 0:
		d.options.error(overrides, "exclusive", "weightedCapacity excludes instanceRequirements", "write desiredCapacityType: vcpu or memory-mib in place of weights")
	case requirements > 0 && requirements < n:
		d.options.error(overrides, "incomplete", "overrides have instanceRequirements, all of them, or none", "allowedInstanceTypes narrows requirements to types")
	case requirements > 4:
		d.options.error(overrides, "out-of-range", fmt.Sprintf("the policy has %d sets of instanceRequirements; Auto Scaling takes 4", requirements), "")
	case len(templates) > 19:
		d.options.error(overrides, "out-of-range", fmt.Sprintf("the overrides name %d launch templates; Auto Scaling takes 20 with the pool's own", len(templates)), "")
	}
	if requirements > 0 {
		d.checkStrategies(pool, m, overrides)
	}
	d.checkOverrideTypes(m, overrides)
}

// checkStrategies: what is found by its attributes has no priorities, and the
// default of Auto Scaling is another then.
func (d *draft) checkStrategies(pool *object[AWSMachinePoolSpec], m *intent.MixedInstances, at intent.Path) {
	distribution := path("spec", "mixedInstancesPolicy", "instancesDistribution")
	for field, strategy := range map[string]*string{"onDemandAllocationStrategy": &m.OnDemandAllocationStrategy, "spotAllocationStrategy": &m.SpotAllocationStrategy} {
		if !strings.HasSuffix(*strategy, "prioritized") {
			continue
		}
		if pool.source.has(distribution.Join(field)...) {
			d.optionsExclude(at, distribution.Join(field), "types that are found by their attributes have no priorities")
		} else {
			*strategy = "lowest-price"
		}
	}
}

// checkOverrideTypes checks the instance types of overrides that have the pool's
// image, as checkOneArchitecture does for those of the pool.
func (d *draft) checkOverrideTypes(m *intent.MixedInstances, at intent.Path) {
	want, first := "", ""
	if d.LaunchTemplate != nil {
		first = cmp.Or(d.LaunchTemplate.Image.InstanceType, d.LaunchTemplate.Data.InstanceType)
		want = instancetypes.Architecture(first)
	}
	for i, o := range m.Overrides {
		p := at.Join(intent.Index(i), "instanceType")
		if o.InstanceType != "" {
			checkKnownTypes(d.options, []typeField{{at: p, name: o.InstanceType}})
		}
		if got := instancetypes.Architecture(o.InstanceType); want != "" && got != "" && got != want && o.LaunchTemplate == nil && o.ImageID == "" {
			d.options.error(p, "mixed-architectures", fmt.Sprintf("%s %s is %s, but %s is %s: they have one image, which has one architecture", p, o.InstanceType, got, first, want),
				"name a launch template or an image for it beside the type")
		}
	}
}

// checkWarmPool: "Warm pools" in the user guide of Auto Scaling.
func (d *draft) checkWarmPool(pool *object[AWSMachinePoolSpec], g *GroupOptions) {
	w, at := g.WarmPool, optionsGroup.Join("warmPool")
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
		d.options.warn(p, "incomplete", p.String()+" Hibernated needs instances that can hibernate", "write spec.launchTemplate.hibernationOptions.configured: true")
	}
}

// checkCapacityType: DesiredCapacityType in the API reference of Auto Scaling.
func (d *draft) checkCapacityType(g *GroupOptions) {
	m := d.Group.MixedInstancesPolicy
	byAttributes := m != nil && slices.ContainsFunc(m.Overrides, func(o intent.Override) bool { return o.InstanceRequirements != nil })
	if at := optionsGroup.Join("desiredCapacityType"); g.DesiredCapacityType != "" && g.DesiredCapacityType != "units" && !byAttributes {
		d.options.error(at, "incomplete", fmt.Sprintf("%s %s needs instanceRequirements in mixedInstancesPolicy.overrides", at, g.DesiredCapacityType), "other groups count instances")
	}
}

// checkRollback: AutoRollback of RefreshPreferences in the API reference.
func (d *draft) checkRollback() {
	if d.Group.MixedInstancesPolicy == nil {
		return
	}
	for _, o := range d.Group.MixedInstancesPolicy.Overrides {
		if t := o.LaunchTemplate; t != nil && strings.HasPrefix(t.Version, "$") {
			at := optionsGroup.Join("refreshPreferences", "autoRollback")
			d.options.error(at, "exclusive", fmt.Sprintf("%s excludes a launch template by %s", at, t.Version), "a refresh is rolled back only where each version is a number")
			return
		}
	}
}
