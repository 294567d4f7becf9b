package awscloud

import (
	"cmp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// Auto Scaling's defaults for a mixed instances policy (API reference,
// InstancesDistribution). Intents hold them filled in, so observed policies do too.
const (
	defaultOnDemandStrategy   = "prioritized"
	defaultSpotStrategy       = "lowest-price"
	defaultSpotPools          = 2
	defaultOnDemandPercentage = 100
)

// group converts a group as DescribeAutoScalingGroups tells it.
func group(g types.AutoScalingGroup) observed.Group {
	out := observed.Group{
		Name: aws.ToString(g.AutoScalingGroupName), ARN: aws.ToString(g.AutoScalingGroupARN),
		// Status is set while a group is being deleted, and at no other time.
		Deleting: aws.ToString(g.Status) != "",
		MinSize:  aws.ToInt32(g.MinSize), MaxSize: aws.ToInt32(g.MaxSize), DesiredCapacity: aws.ToInt32(g.DesiredCapacity),
		SubnetIDs: splitSubnets(aws.ToString(g.VPCZoneIdentifier)), Template: templateRef(g.LaunchTemplate), CreatedAt: aws.ToTime(g.CreatedTime),
	}
	if p := g.MixedInstancesPolicy; p != nil {
		out.MixedInstancesPolicy, out.Template, out.UnknownPolicy = mixedInstances(p)
	}
	for _, p := range g.SuspendedProcesses {
		out.SuspendedProcesses = append(out.SuspendedProcesses, aws.ToString(p.ProcessName))
	}
	slices.Sort(out.SuspendedProcesses)
	carry(g, &out.GroupSettings)
	carry(g, &out.Options)
	settleOptions(&out.Options, g.WarmPoolConfiguration, metricsOf(g.EnabledMetrics))
	out.Tags = make(map[string]observed.GroupTag, len(g.Tags))
	for _, t := range g.Tags {
		out.Tags[aws.ToString(t.Key)] = observed.GroupTag{Value: aws.ToString(t.Value), PropagateAtLaunch: aws.ToBool(t.PropagateAtLaunch)}
	}
	if len(g.Instances) > 0 {
		out.Instances = make([]observed.Instance, len(g.Instances))
		for i, in := range g.Instances {
			out.Instances[i] = observed.Instance{
				ID: aws.ToString(in.InstanceId), Type: aws.ToString(in.InstanceType), Zone: aws.ToString(in.AvailabilityZone),
				LifecycleState: string(in.LifecycleState), Health: aws.ToString(in.HealthStatus), Template: templateRef(in.LaunchTemplate),
				Protected: aws.ToBool(in.ProtectedFromScaleIn),
			}
		}
		slices.SortFunc(out.Instances, func(a, b observed.Instance) int { return strings.Compare(a.ID, b.ID) })
	}
	return out
}

// splitSubnets reads VPCZoneIdentifier, which some tools write with spaces.
func splitSubnets(zones string) []string {
	var out []string
	for part := range strings.SplitSeq(zones, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	slices.Sort(out)
	return out
}

func templateRef(s *types.LaunchTemplateSpecification) observed.TemplateRef {
	if s == nil {
		return observed.TemplateRef{}
	}
	return observed.TemplateRef{ID: aws.ToString(s.LaunchTemplateId), Name: aws.ToString(s.LaunchTemplateName), Version: aws.ToString(s.Version)}
}

// templateSpec names a template version in a request: by id if it is known, for
// the two together are refused.
func templateSpec(r observed.TemplateRef) *types.LaunchTemplateSpecification {
	out := &types.LaunchTemplateSpecification{Version: stringOrNil(r.Version)}
	if r.ID != "" {
		out.LaunchTemplateId = aws.String(r.ID)
	} else {
		out.LaunchTemplateName = stringOrNil(r.Name)
	}
	return out
}

// mixedInstances reads a policy with AWS's defaults filled in. unknown says that
// it holds more than intent.MixedInstances can say.
func mixedInstances(p *types.MixedInstancesPolicy) (m *intent.MixedInstances, ref observed.TemplateRef, unknown bool) {
	m = usualPolicy()
	if d := p.InstancesDistribution; d != nil {
		carry(*d, m)
		unknown = len(d.DistributionSegments) > 0
	}
	if t := p.LaunchTemplate; t != nil {
		ref = templateRef(t.LaunchTemplateSpecification)
		carry(t.Overrides, &m.Overrides)
	}
	tidyPolicy(m)
	return m, ref, unknown
}

// usualPolicy holds what Auto Scaling takes a policy's distribution for where it
// does not say.
func usualPolicy() *intent.MixedInstances {
	return &intent.MixedInstances{
		OnDemandAllocationStrategy: defaultOnDemandStrategy, SpotAllocationStrategy: defaultSpotStrategy,
		OnDemandPercentageAboveBaseCapacity: defaultOnDemandPercentage,
	}
}

// tidyPolicy gives members of a distribution that mean nothing their one value.
func tidyPolicy(m *intent.MixedInstances) {
	if m.OnDemandAllocationStrategy == "" {
		m.OnDemandAllocationStrategy = defaultOnDemandStrategy
	}
	if m.SpotAllocationStrategy == "" {
		m.SpotAllocationStrategy = defaultSpotStrategy
	}
	if m.SpotAllocationStrategy != defaultSpotStrategy || m.SpotInstancePools == defaultSpotPools {
		m.SpotInstancePools = 0
	}
}

// mixedPolicy writes a policy for a request. change says that it takes the place
// of another: then an empty text removes a maximum spot price, and an empty list
// overrides, for absent ones would stay.
func mixedPolicy(m *intent.MixedInstances, ref observed.TemplateRef, change bool) *types.MixedInstancesPolicy {
	out := &types.MixedInstancesPolicy{
		InstancesDistribution: &types.InstancesDistribution{
			OnDemandAllocationStrategy:          stringOrNil(m.OnDemandAllocationStrategy),
			OnDemandBaseCapacity:                aws.Int32(m.OnDemandBaseCapacity),
			OnDemandPercentageAboveBaseCapacity: aws.Int32(m.OnDemandPercentageAboveBaseCapacity),
			SpotAllocationStrategy:              stringOrNil(m.SpotAllocationStrategy),
			SpotMaxPrice:                        stringOrNil(m.SpotMaxPrice),
		},
		LaunchTemplate: &types.LaunchTemplate{LaunchTemplateSpecification: templateSpec(ref)},
	}
	d := out.InstancesDistribution
	if change && m.SpotMaxPrice == "" {
		d.SpotMaxPrice = aws.String("")
	}
	if m.SpotAllocationStrategy == defaultSpotStrategy {
		d.SpotInstancePools = aws.Int32(cmp.Or(m.SpotInstancePools, defaultSpotPools))
	}
	// Assumed of AWS: empty-overrides.
	if change {
		out.LaunchTemplate.Overrides = []types.LaunchTemplateOverrides{} // an absent list would stay as it is
	}
	for _, o := range m.Overrides {
		var to types.LaunchTemplateOverrides
		carry(o, &to)
		if t := to.LaunchTemplateSpecification; t != nil && t.LaunchTemplateId != nil {
			t.LaunchTemplateName = nil // the two together are refused
		}
		out.LaunchTemplate.Overrides = append(out.LaunchTemplate.Overrides, to)
	}
	return out
}

// refresh converts an instance refresh.
func refresh(r types.InstanceRefresh) observed.Refresh {
	out := observed.Refresh{
		ID: aws.ToString(r.InstanceRefreshId), Status: string(r.Status), Reason: aws.ToString(r.StatusReason),
		Percentage: aws.ToInt32(r.PercentageComplete), InstancesLeft: aws.ToInt32(r.InstancesToUpdate),
		StartedAt: aws.ToTime(r.StartTime), EndedAt: aws.ToTime(r.EndTime),
	}
	if p := r.Preferences; p != nil {
		carry(p, &out.Preferences)
	}
	if d := r.DesiredConfiguration; d != nil {
		out.Template = templateRef(d.LaunchTemplate)
		if d.MixedInstancesPolicy != nil {
			var unknown bool
			out.MixedInstancesPolicy, out.Template, unknown = mixedInstances(d.MixedInstancesPolicy)
			if unknown {
				// It is none that weir would start, so it must not look like one.
				out.Template = observed.TemplateRef{}
			}
		}
	}
	return out
}

// lifecycleHooks writes hooks for CreateAutoScalingGroup.
func lifecycleHooks(in []intent.LifecycleHook) []types.LifecycleHookSpecification {
	var out []types.LifecycleHookSpecification
	for _, h := range in {
		out = append(out, types.LifecycleHookSpecification{
			LifecycleHookName: aws.String(h.Name), LifecycleTransition: aws.String(h.LifecycleTransition),
			NotificationTargetARN: stringOrNil(h.NotificationTargetARN), RoleARN: stringOrNil(h.RoleARN),
			HeartbeatTimeout: numberOrNil(h.HeartbeatTimeout), DefaultResult: stringOrNil(h.DefaultResult),
			NotificationMetadata: stringOrNil(h.NotificationMetadata),
		})
	}
	return out
}
