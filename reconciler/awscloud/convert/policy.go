package convert

import (
	"cmp"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// Auto Scaling's defaults for a mixed instances policy (API reference,
// InstancesDistribution). Intents hold them filled in, so observed policies do too.
const (
	defaultOnDemandStrategy   = "prioritized"
	usualSpotStrategy         = "lowest-price"
	usualSpotPools            = 2
	defaultOnDemandPercentage = 100
)

// Policy reads a policy with AWS's defaults filled in. unknown says that
// it holds more than intent.MixedInstances can say.
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

// UsualPolicy holds what Auto Scaling takes a policy's distribution for where it
// does not say.
func UsualPolicy() *intent.MixedInstances {
	return &intent.MixedInstances{
		OnDemandAllocationStrategy: defaultOnDemandStrategy, SpotAllocationStrategy: usualSpotStrategy,
		OnDemandPercentageAboveBaseCapacity: defaultOnDemandPercentage,
	}
}

// TidyPolicy gives members of a distribution that mean nothing their one value.
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

// Use is the request that a policy is written for.
type Use int

// Uses.
const (
	Creates Use = iota
	// Updates replace a policy: an absent member would stay as it was.
	Updates
	// Refreshes replace a policy by an instance refresh. AWS has left refreshes Pending that
	// hold an empty list, so they hold none. Overrides that AWS then keeps are removed by the
	// update of the group that follows.
	// Assumed of AWS: empty-overrides-in-refresh.
	Refreshes
)

// PolicyRequest writes a policy for a request. Where it replaces another policy, an empty text
// removes a maximum spot price, and in an update an empty list removes overrides.
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
		out.LaunchTemplate.Overrides = []types.LaunchTemplateOverrides{} // an absent list would stay as it is
	}
	for _, o := range m.Overrides {
		var to types.LaunchTemplateOverrides
		Carry(o, &to)
		if t := to.LaunchTemplateSpecification; t != nil && t.LaunchTemplateId != nil {
			t.LaunchTemplateName = nil // the two together are refused
		}
		out.LaunchTemplate.Overrides = append(out.LaunchTemplate.Overrides, to)
	}
	return out
}
