package convert

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// Group converts a group as DescribeAutoScalingGroups tells it.
func Group(g types.AutoScalingGroup) observed.Group {
	out := observed.Group{
		Name: aws.ToString(g.AutoScalingGroupName), ARN: aws.ToString(g.AutoScalingGroupARN),
		// Status is set while a group is being deleted, and at no other time.
		Deleting: aws.ToString(g.Status) != "",
		MinSize:  aws.ToInt32(g.MinSize), MaxSize: aws.ToInt32(g.MaxSize), DesiredCapacity: aws.ToInt32(g.DesiredCapacity),
		SubnetIDs: SplitSubnets(aws.ToString(g.VPCZoneIdentifier)), Template: TemplateRef(g.LaunchTemplate), CreatedAt: aws.ToTime(g.CreatedTime),
	}
	if p := g.MixedInstancesPolicy; p != nil {
		out.MixedInstancesPolicy, out.Template, out.UnknownPolicy = Policy(p)
	}
	for _, p := range g.SuspendedProcesses {
		out.SuspendedProcesses = append(out.SuspendedProcesses, aws.ToString(p.ProcessName))
	}
	slices.Sort(out.SuspendedProcesses)
	Carry(g, &out.GroupSettings)
	Carry(g, &out.Options)
	SettleOptions(&out.Options, g.WarmPoolConfiguration, metricsOf(g.EnabledMetrics))
	out.Tags = make(map[string]observed.GroupTag, len(g.Tags))
	for _, t := range g.Tags {
		out.Tags[aws.ToString(t.Key)] = observed.GroupTag{Value: aws.ToString(t.Value), PropagateAtLaunch: aws.ToBool(t.PropagateAtLaunch)}
	}
	if len(g.Instances) > 0 {
		out.Instances = make([]observed.Instance, len(g.Instances))
		for i, in := range g.Instances {
			out.Instances[i] = observed.Instance{
				ID: aws.ToString(in.InstanceId), Type: aws.ToString(in.InstanceType), Zone: aws.ToString(in.AvailabilityZone),
				LifecycleState: string(in.LifecycleState), Health: aws.ToString(in.HealthStatus), Template: TemplateRef(in.LaunchTemplate),
				Protected: aws.ToBool(in.ProtectedFromScaleIn),
			}
		}
		slices.SortFunc(out.Instances, func(a, b observed.Instance) int { return strings.Compare(a.ID, b.ID) })
	}
	return out
}

// SplitSubnets reads VPCZoneIdentifier, which some tools write with spaces.
func SplitSubnets(zones string) []string {
	var out []string
	for part := range strings.SplitSeq(zones, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	slices.Sort(out)
	return out
}

// SettleOptions brings what was read of a group into the form that the planner
// has: all traffic sources in one list, the warm pool whole.
func SettleOptions(o *intent.GroupOptions, pond *types.WarmPoolConfiguration, metrics []string) {
	if len(o.TargetGroupARNs)+len(o.LoadBalancerNames)+len(o.TrafficSources) > 0 {
		o.TrafficSources = o.Sources()
		o.TargetGroupARNs, o.LoadBalancerNames = nil, nil
	}
	if pond != nil {
		w := intent.UsualWarmPool()
		w.MinSize = aws.ToInt32(pond.MinSize)
		if pond.MaxGroupPreparedCapacity != nil {
			w.MaxGroupPreparedCapacity = *pond.MaxGroupPreparedCapacity
		}
		if pond.PoolState != "" {
			w.PoolState = string(pond.PoolState)
		}
		if p := pond.InstanceReusePolicy; p != nil {
			w.InstanceReusePolicy.ReuseOnScaleIn = aws.ToBool(p.ReuseOnScaleIn)
		}
		o.WarmPool, o.DeleteWarmPool = &w, pond.Status == types.WarmPoolStatusPendingDelete
	}
	if len(metrics) > 0 {
		slices.Sort(metrics)
		o.MetricsCollection = &intent.MetricsCollection{Metrics: metrics}
	}
}

func metricsOf(list []types.EnabledMetric) []string {
	var out []string
	for _, m := range list {
		out = append(out, aws.ToString(m.Metric))
	}
	return out
}

func TemplateRef(s *types.LaunchTemplateSpecification) observed.TemplateRef {
	if s == nil {
		return observed.TemplateRef{}
	}
	return observed.TemplateRef{ID: aws.ToString(s.LaunchTemplateId), Name: aws.ToString(s.LaunchTemplateName), Version: aws.ToString(s.Version)}
}

// TemplateSpec names a template version in a request: by id if it is known, for
// the two together are refused.
func TemplateSpec(r observed.TemplateRef) *types.LaunchTemplateSpecification {
	out := &types.LaunchTemplateSpecification{Version: StringOrNil(r.Version)}
	if r.ID != "" {
		out.LaunchTemplateId = aws.String(r.ID)
	} else {
		out.LaunchTemplateName = StringOrNil(r.Name)
	}
	return out
}

// CarrySettings writes the members of a group's settings into a request. Those of
// PoolOptions are a level deeper in the intent.
func CarrySettings(s *intent.GroupSettings, in any) {
	Carry(s, in)
	Carry(&s.Options, in)
}

func TrafficSources(list []intent.TrafficSource) []types.TrafficSourceIdentifier {
	var out []types.TrafficSourceIdentifier
	for _, s := range list {
		out = append(out, types.TrafficSourceIdentifier{Identifier: aws.String(s.Identifier), Type: StringOrNil(s.Type)})
	}
	return out
}

func Hook(h types.LifecycleHook) intent.LifecycleHook {
	return observed.HookDefaults(intent.LifecycleHook{
		Name: aws.ToString(h.LifecycleHookName), LifecycleTransition: aws.ToString(h.LifecycleTransition),
		NotificationTargetARN: aws.ToString(h.NotificationTargetARN), RoleARN: aws.ToString(h.RoleARN),
		HeartbeatTimeout: aws.ToInt32(h.HeartbeatTimeout), DefaultResult: aws.ToString(h.DefaultResult),
		NotificationMetadata: aws.ToString(h.NotificationMetadata),
	})
}

// HookRequests writes hooks for CreateAutoScalingGroup.
func HookRequests(in []intent.LifecycleHook) []types.LifecycleHookSpecification {
	var out []types.LifecycleHookSpecification
	for _, h := range in {
		out = append(out, types.LifecycleHookSpecification{
			LifecycleHookName: aws.String(h.Name), LifecycleTransition: aws.String(h.LifecycleTransition),
			NotificationTargetARN: StringOrNil(h.NotificationTargetARN), RoleARN: StringOrNil(h.RoleARN),
			HeartbeatTimeout: numberOrNil(h.HeartbeatTimeout), DefaultResult: StringOrNil(h.DefaultResult),
			NotificationMetadata: StringOrNil(h.NotificationMetadata),
		})
	}
	return out
}
