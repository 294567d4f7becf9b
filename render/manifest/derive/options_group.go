package derive

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// groupName returns the name of a pool's group: the name in its PoolOptions, or the name of the pool. It
// reports a name that another pool uses.
func (b *Builder) groupName(d *draft, pool intent.ObjectRef) string {
	if o := b.poolOptions[poolID{pool.Namespace, pool.Kind, pool.Name}]; o != nil {
		if g := o.Spec.AutoScalingGroup; g != nil && g.Name != "" {
			b.claimName(d, "Auto Scaling group", g.Name, claim{d.Infrastructure, o.Ref(), kinds.OptionsGroup.Join("name")})
			return g.Name
		}
	}
	b.claimName(d, "Auto Scaling group", pool.Name, claim{d.Infrastructure, pool, path("metadata", "name")})
	return pool.Name
}

// applyGroupOptions adds the group options of a pool's PoolOptions.
func applyGroupOptions(index *kinds.Index, d *draft, o *kinds.Decoded[kinds.PoolOptionsSpec]) {
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
	pool := index.Pools[kinds.KeyOf(d.Infrastructure)]
	if p := g.RefreshPreferences; p != nil {
		d.Group.Refresh = refresh(&pool.Spec, p.Refresh)
	}
	mixOptions(d, pool, g.MixedInstancesPolicy)
	d.CheckWarmPool(pool, g)
	d.CheckCapacityType(g)
	d.CheckRootVolumes(pool, o.Spec)
	if r := d.Group.Refresh; intent.Value(r.AutoRollback) {
		d.CheckRollback()
	}
}

// mixOptions adds options to the pool's mixed instances policy. If the pool has none, they become the policy.
func mixOptions(d *draft, pool *kinds.Decoded[kinds.AWSMachinePoolSpec], m *kinds.MixedOptions) {
	if m == nil {
		return
	}
	at := kinds.OptionsGroup.Join("mixedInstancesPolicy")
	policy := d.Group.MixedInstancesPolicy
	if policy == nil {
		policy = mixed(&kinds.MixedInstancesPolicy{})
		d.Group.MixedInstancesPolicy = policy
		d.CheckMixedMarket(pool, at)
	}
	if v := m.InstancesDistribution; v != nil {
		policy.SpotMaxPrice = v.SpotMaxPrice
		if n := v.SpotInstancePools; n != nil && policy.SpotAllocationStrategy != "lowest-price" {
			d.OptionsExclude(at.Join("instancesDistribution", "spotInstancePools"), path("spec", "mixedInstancesPolicy", "instancesDistribution", "spotAllocationStrategy"),
				"only lowest-price spreads over a number of pools")
		} else if n != nil && *n != 2 { // 2 is the default, which intents omit
			policy.SpotInstancePools = *n
		}
	}
	given := len(policy.Overrides) > 0
	d.Group.TypesOfOptions = !given && len(m.Overrides) > 0
	for i, o := range m.Overrides {
		at := at.Join("overrides", intent.Index(i))
		same := slices.IndexFunc(policy.Overrides, func(v intent.Override) bool { return v.InstanceType == o.InstanceType && o.InstanceType != "" })
		switch {
		case same < 0 && given:
			d.OptionsExclude(at, path("spec", "mixedInstancesPolicy", "overrides"), "the pool names the instance types; an entry here adds to one of them. Name all of them there, or all of them here")
		case given:
			policy.Overrides[same] = o
		default:
			policy.Overrides = append(policy.Overrides, o)
		}
	}
	if slices.ContainsFunc(policy.Overrides, func(o intent.Override) bool { return o.InstanceRequirements != nil }) {
		withoutPriorities(pool, policy)
	}
	d.CheckPolicy(pool, policy, at)
}

// withoutPriorities replaces default strategies that rank instance types. If a policy selects types by
// attributes, Auto Scaling has other defaults.
func withoutPriorities(pool *kinds.Decoded[kinds.AWSMachinePoolSpec], m *intent.MixedInstances) {
	distribution := path("spec", "mixedInstancesPolicy", "instancesDistribution")
	for field, strategy := range map[string]*string{"onDemandAllocationStrategy": &m.OnDemandAllocationStrategy, "spotAllocationStrategy": &m.SpotAllocationStrategy} {
		if strings.HasSuffix(*strategy, "prioritized") && !pool.Source.Has(distribution.Join(field)...) {
			*strategy = "lowest-price"
		}
	}
}
