package convert

import (
	"cmp"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// The defaults of Auto Scaling for a mixed instances policy (API reference, InstancesDistribution). Intents
// contain them, so observed policies do too.
const (
	defaultOnDemandStrategy   = "prioritized"
	usualSpotStrategy         = "lowest-price"
	usualSpotPools            = 2
	defaultOnDemandPercentage = 100
)

// Policy converts a policy and fills in AWS's defaults. unknown says that it has more content than
// intent.MixedInstances can express.
func Policy(p *types.MixedInstancesPolicy) (m *intent.MixedInstances, ref observed.TemplateRef, unknown bool) {
	m = UsualPolicy()
	if d := p.InstancesDistribution; d != nil {
		Carry(*d, m)
		unknown = len(d.DistributionSegments) > 0
	}
	if t := p.LaunchTemplate; t != nil {
		ref = TemplateRef(t.LaunchTemplateSpecification)
		Carry(t.Overrides, &m.Overrides)
	}
	TidyPolicy(m)
	return m, ref, unknown
}

// UsualPolicy returns Auto Scaling's defaults for the distribution of a policy.
func UsualPolicy() *intent.MixedInstances {
	return &intent.MixedInstances{
		OnDemandAllocationStrategy: defaultOnDemandStrategy, SpotAllocationStrategy: usualSpotStrategy,
		OnDemandPercentageAboveBaseCapacity: defaultOnDemandPercentage,
	}
}

// TidyPolicy normalizes members of a distribution that have no effect.
func TidyPolicy(m *intent.MixedInstances) {
	if m.OnDemandAllocationStrategy == "" {
		m.OnDemandAllocationStrategy = defaultOnDemandStrategy
	}
	if m.SpotAllocationStrategy == "" {
		m.SpotAllocationStrategy = usualSpotStrategy
	}
	if m.SpotAllocationStrategy != usualSpotStrategy || m.SpotInstancePools == usualSpotPools {
		m.SpotInstancePools = 0
	}
}

// Use is the request for which a policy is written.
type Use int

// Uses.
const (
	Creates Use = iota
	// Updates replace a policy: an absent member would stay as it was.
	Updates
	// Refreshes replace a policy by an instance refresh. AWS has left refreshes with an empty list in the
	// state Pending, so requests contain none. If AWS then keeps overrides, the following update of the
	// group removes them.
	// Assumed of AWS: empty-overrides-in-refresh.
	Refreshes
)

// PolicyRequest converts a policy for a request. If it replaces another policy, an empty text removes a
// maximum spot price, and in an update an empty list removes overrides.
func PolicyRequest(m *intent.MixedInstances, ref observed.TemplateRef, use Use) *types.MixedInstancesPolicy {
	out := &types.MixedInstancesPolicy{
		InstancesDistribution: &types.InstancesDistribution{
			OnDemandAllocationStrategy:          StringOrNil(m.OnDemandAllocationStrategy),
			OnDemandBaseCapacity:                aws.Int32(m.OnDemandBaseCapacity),
			OnDemandPercentageAboveBaseCapacity: aws.Int32(m.OnDemandPercentageAboveBaseCapacity),
			SpotAllocationStrategy:              StringOrNil(m.SpotAllocationStrategy),
			SpotMaxPrice:                        StringOrNil(m.SpotMaxPrice),
		},
		LaunchTemplate: &types.LaunchTemplate{LaunchTemplateSpecification: TemplateSpec(ref)},
	}
	d := out.InstancesDistribution
	if use != Creates && m.SpotMaxPrice == "" {
		d.SpotMaxPrice = aws.String("")
	}
	if m.SpotAllocationStrategy == usualSpotStrategy {
		d.SpotInstancePools = aws.Int32(cmp.Or(m.SpotInstancePools, usualSpotPools))
	}
	// Assumed of AWS: empty-overrides.
	if use == Updates {
		out.LaunchTemplate.Overrides = []types.LaunchTemplateOverrides{} // without a list, AWS keeps the overrides
	}
	for _, o := range m.Overrides {
		var to types.LaunchTemplateOverrides
		Carry(o, &to)
		if t := to.LaunchTemplateSpecification; t != nil && t.LaunchTemplateId != nil {
			t.LaunchTemplateName = nil // AWS refuses both together
		}
		out.LaunchTemplate.Overrides = append(out.LaunchTemplate.Overrides, to)
	}
	return out
}
