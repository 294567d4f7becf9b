package read

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/awscloud/convert"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// group is what the scanner has to make of a group, from what the SDK decodes.
func group(g types.AutoScalingGroup) observed.Group {
	out := observed.Group{
		Name: aws.ToString(g.AutoScalingGroupName), ARN: aws.ToString(g.AutoScalingGroupARN),
		// Status is set while a group is being deleted, and at no other time.
		Deleting: aws.ToString(g.Status) != "",
		MinSize:  aws.ToInt32(g.MinSize), MaxSize: aws.ToInt32(g.MaxSize), DesiredCapacity: aws.ToInt32(g.DesiredCapacity),
		SubnetIDs: splitSubnets(aws.ToString(g.VPCZoneIdentifier)), Template: convert.TemplateRef(g.LaunchTemplate), CreatedAt: aws.ToTime(g.CreatedTime),
		LaunchConfiguration: aws.ToString(g.LaunchConfigurationName),
	}
	if p := g.MixedInstancesPolicy; p != nil {
		out.MixedInstancesPolicy, out.Template, out.UnknownPolicy = convert.Policy(p)
	}
	for _, p := range g.SuspendedProcesses {
		out.SuspendedProcesses = append(out.SuspendedProcesses, aws.ToString(p.ProcessName))
	}
	slices.Sort(out.SuspendedProcesses)
	convert.Carry(g, &out.GroupSettings)
	convert.Carry(g, &out.Options)
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
				LifecycleState: string(in.LifecycleState), Health: aws.ToString(in.HealthStatus), Template: convert.TemplateRef(in.LaunchTemplate),
				Protected: aws.ToBool(in.ProtectedFromScaleIn), ImageID: aws.ToString(in.ImageId),
				LaunchConfiguration: aws.ToString(in.LaunchConfigurationName),
			}
		}
		slices.SortFunc(out.Instances, func(a, b observed.Instance) int { return strings.Compare(a.ID, b.ID) })
	}
	return out
}

// settleOptions brings what was read of a group into the form that the planner
// has: all traffic sources in one list, the warm pool whole.
func settleOptions(o *intent.GroupOptions, warm *types.WarmPoolConfiguration, metrics []string) {
	if len(o.TargetGroupARNs)+len(o.LoadBalancerNames)+len(o.TrafficSources) > 0 {
		o.TrafficSources = o.Sources()
		o.TargetGroupARNs, o.LoadBalancerNames = nil, nil
	}
	if warm != nil {
		w := intent.UsualWarmPool()
		w.MinSize = aws.ToInt32(warm.MinSize)
		if warm.MaxGroupPreparedCapacity != nil {
			w.MaxGroupPreparedCapacity = *warm.MaxGroupPreparedCapacity
		}
		if warm.PoolState != "" {
			w.PoolState = string(warm.PoolState)
		}
		if p := warm.InstanceReusePolicy; p != nil {
			w.InstanceReusePolicy.ReuseOnScaleIn = aws.ToBool(p.ReuseOnScaleIn)
		}
		o.WarmPool, o.DeleteWarmPool = &w, warm.Status == types.WarmPoolStatusPendingDelete
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

// template is what the scanner has to make of a launch template.
func template(t ec2types.LaunchTemplate) observed.Template {
	return observed.Template{
		ID: aws.ToString(t.LaunchTemplateId), Name: aws.ToString(t.LaunchTemplateName),
		DefaultVersion: aws.ToInt64(t.DefaultVersionNumber), LatestVersion: aws.ToInt64(t.LatestVersionNumber),
		Tags: Tags(t.Tags),
	}
}

func p[T any](v T) *T { return &v }

func TestGroupOfTheSDK(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	spec := &types.LaunchTemplateSpecification{LaunchTemplateId: p("lt-1"), LaunchTemplateName: p("web"), Version: p("3")}
	ref := observed.TemplateRef{ID: "lt-1", Name: "web", Version: "3"}
	tests := map[string]struct {
		in   types.AutoScalingGroup
		want observed.Group
	}{
		"bare": {
			in:   types.AutoScalingGroup{AutoScalingGroupName: p("web")},
			want: observed.Group{Name: "web", Tags: map[string]observed.GroupTag{}},
		},
		"whole": {
			in: types.AutoScalingGroup{
				AutoScalingGroupName: p("web"), AutoScalingGroupARN: p("arn"), Status: p("Delete in progress"), MinSize: p[int32](1), MaxSize: p[int32](9),
				DesiredCapacity: p[int32](2), VPCZoneIdentifier: p("subnet-b, subnet-a"), DefaultCooldown: p[int32](0), DefaultInstanceWarmup: p[int32](0),
				CapacityRebalance: p(true), LaunchTemplate: spec, CreatedTime: &created,
				SuspendedProcesses: []types.SuspendedProcess{{ProcessName: p("Launch")}, {ProcessName: p("AZRebalance")}},
				Tags:               []types.TagDescription{{Key: p("k"), Value: p("v"), PropagateAtLaunch: p(true)}},
				Instances: []types.Instance{
					{InstanceId: p("i-2"), InstanceType: p("m5.large"), AvailabilityZone: p("eu-west-1a"), LifecycleState: "InService", HealthStatus: p("Healthy"), LaunchTemplate: spec},
					{InstanceId: p("i-1")},
				},
			},
			want: observed.Group{
				Name: "web", ARN: "arn", Deleting: true, MinSize: 1, MaxSize: 9, DesiredCapacity: 2, SubnetIDs: []string{"subnet-a", "subnet-b"},
				GroupSettings: intent.GroupSettings{DefaultCooldown: p[int32](0), DefaultInstanceWarmup: p[int32](0), CapacityRebalance: p(true)}, Template: ref, CreatedAt: created, SuspendedProcesses: []string{"AZRebalance", "Launch"},
				Tags: map[string]observed.GroupTag{"k": {Value: "v", PropagateAtLaunch: true}},
				Instances: []observed.Instance{{ID: "i-1"},
					{ID: "i-2", Type: "m5.large", Zone: "eu-west-1a", LifecycleState: "InService", Health: "Healthy", Template: ref}},
			},
		},
		"policy with defaults": {
			in: types.AutoScalingGroup{AutoScalingGroupName: p("web"), MixedInstancesPolicy: &types.MixedInstancesPolicy{
				LaunchTemplate:        &types.LaunchTemplate{LaunchTemplateSpecification: spec, Overrides: []types.LaunchTemplateOverrides{{InstanceType: p("m5.large")}, {InstanceType: p("a1.large")}}},
				InstancesDistribution: &types.InstancesDistribution{SpotInstancePools: p[int32](2), SpotMaxPrice: p("")},
			}},
			want: observed.Group{Name: "web", Tags: map[string]observed.GroupTag{}, Template: ref,
				MixedInstancesPolicy: &intent.MixedInstances{OnDemandAllocationStrategy: "prioritized", OnDemandPercentageAboveBaseCapacity: 100,
					SpotAllocationStrategy: "lowest-price", Overrides: []intent.Override{{InstanceType: "m5.large"}, {InstanceType: "a1.large"}}}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, group(tt.in)); d != "" {
				t.Errorf("group (-want +got):\n%s", d)
			}
		})
	}
}
