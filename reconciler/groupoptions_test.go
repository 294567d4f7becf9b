package reconciler_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/tree"
)

const (
	targetGroup  = "arn:aws:elasticloadbalancing:eu-west-1:000000000000:targetgroup/%s/1"
	latticeGroup = "arn:aws:vpc-lattice:eu-west-1:000000000000:targetgroup/tg-1"
)

// groupOptions are the members of spec.autoScalingGroup, each with what Auto
// Scaling then holds. A new group takes two writes, and those in more.
var groupOptions = []struct {
	name, pool, options, want string
	more                      int
}{
	{name: "health", options: "healthCheckType: ELB,EBS\nhealthCheckGracePeriod: 45", want: `{"HealthCheckType": "ELB,EBS", "HealthCheckGracePeriod": 45}`},
	{name: "target groups", options: "targetGroupARNs: [$TA, $TB]", want: `{"TargetGroupARNs": ["$TA", "$TB"]}`},
	{name: "load balancers", options: "loadBalancerNames: [old]", want: `{"LoadBalancerNames": ["old"]}`},
	{name: "traffic sources", options: "trafficSources: [{identifier: $TA}, {identifier: $L}, {identifier: old, type: elb}]",
		want: `{"TrafficSources": [{"Identifier": "$TA", "Type": "elbv2"}, {"Identifier": "$L", "Type": "vpc-lattice"}, {"Identifier": "old", "Type": "elb"}]}`},
	{name: "termination", options: "terminationPolicies: [OldestLaunchTemplate, Default]\nmaxInstanceLifetime: 604800",
		want: `{"TerminationPolicies": ["OldestLaunchTemplate", "Default"], "MaxInstanceLifetime": 604800}`},
	{name: "protection", options: "newInstancesProtectedFromScaleIn: true\ndeletionProtection: prevent-all-deletion",
		want: `{"NewInstancesProtectedFromScaleIn": true, "DeletionProtection": "prevent-all-deletion"}`},
	{name: "maintenance", options: "instanceMaintenancePolicy: {minHealthyPercentage: 100, maxHealthyPercentage: 120}",
		want: `{"InstanceMaintenancePolicy": {"MinHealthyPercentage": 100, "MaxHealthyPercentage": 120}}`},
	{name: "what is the default", options: "instanceMaintenancePolicy: {minHealthyPercentage: -1, maxHealthyPercentage: -1}\nmaxInstanceLifetime: 0\nhealthCheckType: EC2\nnewInstancesProtectedFromScaleIn: false\n" +
		"deletionProtection: none\ndesiredCapacityType: units\ncapacityReservationSpecification: {capacityReservationPreference: default}\ntargetGroupARNs: []\nmetricsCollection: {metrics: []}\ndeleteWarmPool: true",
		want: `{"InstanceMaintenancePolicy": null, "HealthCheckType": "EC2", "WarmPoolConfiguration": null}`},
	{name: "zones", options: "availabilityZoneDistribution: {capacityDistributionStrategy: balanced-only}\navailabilityZoneImpairmentPolicy: {zonalShiftEnabled: true}\nskipZonalShiftValidation: true",
		want: `{"AvailabilityZoneDistribution": {"CapacityDistributionStrategy": "balanced-only"}, "AvailabilityZoneImpairmentPolicy": {"ZonalShiftEnabled": true}}`},
	{name: "impaired zones", options: "availabilityZoneImpairmentPolicy: {zonalShiftEnabled: true, impairedZoneHealthCheckBehavior: IgnoreUnhealthy}",
		want: `{"AvailabilityZoneImpairmentPolicy": {"ZonalShiftEnabled": true, "ImpairedZoneHealthCheckBehavior": "IgnoreUnhealthy"}}`},
	{name: "reservations", options: "capacityReservationSpecification: {capacityReservationPreference: capacity-reservations-first, capacityReservationTarget: {capacityReservationIds: [cr-00000002, cr-00000001]}}",
		want: `{"CapacityReservationSpecification": {"CapacityReservationPreference": "capacity-reservations-first", "CapacityReservationTarget": {"CapacityReservationIds": ["cr-00000002", "cr-00000001"]}}}`},
	{name: "retention", options: "instanceLifecyclePolicy: {retentionTriggers: {terminateHookAbandon: retain}}",
		want: `{"InstanceLifecyclePolicy": {"RetentionTriggers": {"TerminateHookAbandon": "retain"}}}`},
	{name: "places", options: "placementGroup: close\nserviceLinkedRoleARN: arn:aws:iam::000000000000:role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling_mine",
		want: `{"PlacementGroup": "close", "ServiceLinkedRoleARN": "arn:aws:iam::000000000000:role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling_mine"}`},
	{name: "a warm pool", options: "warmPool: {minSize: 2, maxGroupPreparedCapacity: 6, poolState: Running, instanceReusePolicy: {reuseOnScaleIn: true}}", more: 1,
		want: `{"WarmPoolConfiguration": {"MinSize": 2, "MaxGroupPreparedCapacity": 6, "PoolState": "Running", "InstanceReusePolicy": {"ReuseOnScaleIn": true}}}`},
	{name: "the usual warm pool", options: "warmPool: {}", more: 1, want: `{"WarmPoolConfiguration": {"MinSize": 0, "PoolState": "Stopped", "InstanceReusePolicy": {"ReuseOnScaleIn": false}}}`},
	{name: "some metrics", options: "metricsCollection: {metrics: [GroupTotalInstances, GroupMinSize]}", more: 1,
		want: `{"EnabledMetrics": [{"Metric": "GroupMinSize", "Granularity": "1Minute"}, {"Metric": "GroupTotalInstances", "Granularity": "1Minute"}]}`},
	{name: "everything that takes a call", pool: "suspendProcesses: {processes: {azRebalance: true}}", options: "metricsCollection: {}\nwarmPool: {}\ntargetGroupARNs: [$TA]", more: 3, want: `{"TargetGroupARNs": ["$TA"]}`},
	{name: "weights", pool: "mixedInstancesPolicy: {overrides: [{instanceType: m5.large}, {instanceType: m5.xlarge}]}",
		options: "mixedInstancesPolicy: {overrides: [{instanceType: m5.xlarge, weightedCapacity: '2'}, {instanceType: m5.large, weightedCapacity: '1'}]}",
		want:    `{"MixedInstancesPolicy.LaunchTemplate.Overrides": [{"InstanceType": "m5.large", "WeightedCapacity": "1"}, {"InstanceType": "m5.xlarge", "WeightedCapacity": "2"}]}`},
	{name: "spot", pool: "mixedInstancesPolicy: {instancesDistribution: {onDemandPercentageAboveBaseCapacity: 0}}",
		options: "mixedInstancesPolicy: {instancesDistribution: {spotInstancePools: 4, spotMaxPrice: '0.05'}, overrides: [{instanceType: m5.large}, {instanceType: m5.xlarge}]}",
		want:    `{"MixedInstancesPolicy.InstancesDistribution.SpotInstancePools": 4, "MixedInstancesPolicy.InstancesDistribution.SpotMaxPrice": "0.05"}`},
	{name: "requirements", options: "mixedInstancesPolicy:\n  overrides:\n  - instanceRequirements: {vCpuCount: {min: 2, max: 4}, memoryMiB: {min: 4096}, memoryGiBPerVCpu: {min: 1.5},\n" +
		"      cpuManufacturers: [intel, amd], burstablePerformance: excluded, requireHibernateSupport: false, spotMaxPricePercentageOverLowestPrice: 50}",
		want: `{"MixedInstancesPolicy.InstancesDistribution.OnDemandAllocationStrategy": "lowest-price"}`},
	{name: "vCPUs", options: "desiredCapacityType: vcpu\nmixedInstancesPolicy: {overrides: [{instanceRequirements: {vCpuCount: {min: 2}, memoryMiB: {min: 0}}}]}", want: `{"DesiredCapacityType": "vcpu"}`},
	{name: "weights that reach further", pool: "", options: "mixedInstancesPolicy: {overrides: [{instanceType: m5.large, weightedCapacity: '2'}]}", want: `{"DesiredCapacity": 2}`},
	{name: "a template and an image for a type", options: "mixedInstancesPolicy: {overrides: [{instanceType: m5.large}, {instanceType: m6g.large, launchTemplateSpecification: {launchTemplateName: theirs, version: '1'}}, {instanceType: m5.xlarge, imageId: $I}]}",
		want: `{"MixedInstancesPolicy.LaunchTemplate.Overrides": [{"InstanceType": "m5.large"}, {"InstanceType": "m6g.large", "LaunchTemplateSpecification": {"LaunchTemplateName": "theirs", "Version": "1"}}, {"InstanceType": "m5.xlarge", "ImageId": "$I"}]}`},
}

// fill puts in what the options cannot know.
func (w *world) fill(text string) string {
	w.t.Helper()
	if strings.Contains(text, "$I") {
		text = strings.ReplaceAll(text, "$I", w.someImage())
	}
	return strings.NewReplacer("$TA", fmt.Sprintf(targetGroup, "a"), "$TB", fmt.Sprintf(targetGroup, "b"), "$L", latticeGroup).Replace(text)
}

// withGroupOptions renders a pool with a PoolOptions for its group.
func (w *world) withGroupOptions(pool, options string) intent.Pool {
	w.t.Helper()
	text := writtenText("web", "", "awsLaunchTemplate: {instanceType: m5.large}\n"+pool)
	if options != "" {
		text += "\n---\napiVersion: weir.dev/v1alpha1\nkind: PoolOptions\nmetadata: {name: extra}\nspec:\n  poolRef: {kind: AWSMachinePool, name: web}\n  autoScalingGroup:\n    " +
			strings.ReplaceAll(w.fill(options), "\n", "\n    ") + "\n"
	}
	r, err := render.Render(context.Background(), tree.Map{"pool.yaml": text}, "pool.yaml", render.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	if len(r.Set.Pools) != 1 || len(r.Set.Pools[0].Blocked) > 0 {
		w.t.Fatalf("the manifests give %d pools: %v\n%s", len(r.Set.Pools), r.Diags, text)
	}
	return r.Set.Pools[0]
}

// theirTemplate makes a launch template of somebody else's, for ARM.
func (w *world) theirTemplate() {
	w.t.Helper()
	images, err := w.ec2().DescribeImages(context.Background(), &ec2.DescribeImagesInput{Owners: []string{"amazon"}, Filters: []types.Filter{{Name: aws.String("architecture"), Values: []string{"arm64"}}}})
	if err != nil || len(images.Images) == 0 {
		w.t.Fatalf("no image for ARM: %v", err)
	}
	w.check(w.ec2().CreateLaunchTemplate(context.Background(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("theirs"), LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: images.Images[0].ImageId},
	}))
}

// groupHolds compares members of a group with the wanted ones; a path leads into
// structures.
func (w *world) groupHolds(name, members string) {
	w.t.Helper()
	got, want := map[string]any{}, map[string]any{}
	remarshal(w.t, w.group(name), &got)
	if err := json.Unmarshal([]byte(w.fill(members)), &want); err != nil {
		w.t.Fatal(err)
	}
	for member := range want {
		var at any = got
		for _, e := range strings.Split(member, ".") {
			at = at.(map[string]any)[e]
		}
		at = compact(at)
		if list, ok := at.([]any); ok {
			for _, item := range list {
				if m, ok := item.(map[string]any); ok {
					if spec, ok := m["LaunchTemplateSpecification"].(map[string]any); ok {
						delete(spec, "LaunchTemplateId") // Auto Scaling adds it
					}
				}
			}
		}
		if d := cmp.Diff(want[member], at); d != "" {
			w.t.Errorf("%s (-want +got):\n%s", member, d)
		}
	}
}

// A group that is made with options has them, with no more writes than they
// need, and nothing follows, also for a process that remembers nothing.
func TestGroupOptionsAtCreation(t *testing.T) {
	t.Parallel()
	for _, tt := range groupOptions {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.theirTemplate()
			blue := target("blue", w.withGroupOptions(tt.pool, tt.options))
			w.srv.ResetCalls()
			w.must(reconciler.Apply, blue)
			if _, writes := w.calls(); writes != 2+tt.more {
				t.Errorf("%d writes, want %d: %v", writes, 2+tt.more, w.srv.CallCounts())
			}
			w.settle(blue)
			if _, writes := w.calls(); writes != 2+tt.more {
				t.Errorf("%d writes until converged, want %d: %v", writes, 2+tt.more, w.srv.CallCounts())
			}
			w.stillAndSilent(blue)
			w.groupHolds("web", tt.want)
		})
	}
}

// A group that gets options later, or loses them by hand, gets them in the end;
// instances are replaced for a mixed instances policy only.
func TestGroupOptionsLater(t *testing.T) {
	t.Parallel()
	for _, tt := range groupOptions {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.theirTemplate()
			w.settle(target("blue", w.withGroupOptions("", "")))
			before := w.group("web").Instances
			blue := target("blue", w.withGroupOptions(tt.pool, tt.options))
			for _, s := range w.must(reconciler.PlanOnly, blue)[0].Plan.Steps {
				if s.Resource != step.AutoScalingGroup {
					t.Errorf("a step for %s %s", s.Resource, s.Name)
				}
				for _, ch := range s.Changes {
					if strings.HasPrefix(ch.Field, "autoScalingGroup.") && (ch.Object.Kind != "PoolOptions" || len(ch.Path) != 3) {
						t.Errorf("%s comes from %s %s", ch.Field, ch.Object, ch.Path)
					}
				}
			}
			w.settle(blue)
			w.stillAndSilent(blue)
			w.groupHolds("web", tt.want)
			if mixed := strings.Contains(tt.pool+tt.options, "mixedInstancesPolicy"); !mixed && aws.ToString(before[0].InstanceId) != aws.ToString(w.group("web").Instances[0].InstanceId) {
				t.Error("instances were replaced")
			}
		})
	}
}

// A rollout sends the preferences as Git has them, and weir retries a refresh that was tried with others.
func TestRefreshOptions(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", w.withGroupOptions("", "")))
	const options = "refreshPreferences: {checkpointPercentages: [50, 100], checkpointDelay: 10, bakeTime: 5, autoRollback: true, scaleInProtectedInstances: Refresh, standbyInstances: Terminate, skipMatching: true}"
	const instanceTypes = "mixedInstancesPolicy: {overrides: [{instanceType: m5.large}, {instanceType: m5.xlarge}]}"
	blue := target("blue", w.withGroupOptions("", options+"\n"+instanceTypes))
	for _, o := range w.must(reconciler.Apply, blue)[0].Outcomes {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
	}
	out, err := w.groups().DescribeInstanceRefreshes(context.Background(), &autoscaling.DescribeInstanceRefreshesInput{AutoScalingGroupName: aws.String("web")})
	if err != nil || len(out.InstanceRefreshes) != 1 {
		t.Fatalf("refreshes %v, %v", out, err)
	}
	var got, want any
	remarshal(t, out.InstanceRefreshes[0].Preferences, &got)
	if err := json.Unmarshal([]byte(`{"CheckpointPercentages": [50, 100], "CheckpointDelay": 10, "MinHealthyPercentage": 90, "BakeTime": 5, "AutoRollback": true, "ScaleInProtectedInstances": "Refresh",
		"StandbyInstances": "Terminate", "SkipMatching": true}`), &want); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, compact(got)); d != "" {
		t.Errorf("preferences (-want +got):\n%s", d)
	}
	w.settle(blue)
	w.stillAndSilent(blue)
}

// A warm pool goes where Git says so, and stays where Git says nothing any more.
func TestWarmPoolGoesByWordOnly(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", w.withGroupOptions("", "warmPool: {minSize: 1}\nhealthCheckType: ELB")))
	plain := target("blue", w.withGroupOptions("", ""))
	w.settle(plain)
	w.groupHolds("web", `{"WarmPoolConfiguration.MinSize": 1, "HealthCheckType": "ELB"}`)
	none := target("blue", w.withGroupOptions("", "deleteWarmPool: true"))
	w.settle(none)
	w.clock.Advance(time.Minute)
	w.stillAndSilent(none)
	w.groupHolds("web", `{"WarmPoolConfiguration": null}`)
}

// The settings of the pool itself are held as well.
func TestPoolSettingsAreUpdated(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", w.withGroupOptions("defaultCoolDown: 60s\ndefaultInstanceWarmup: 30s", "")))
	w.groupHolds("web", `{"DefaultCooldown": 60, "DefaultInstanceWarmup": 30, "CapacityRebalance": false}`)
	blue := target("blue", w.withGroupOptions("defaultCoolDown: 90s\ndefaultInstanceWarmup: 45s\ncapacityRebalance: true", ""))
	w.srv.ResetCalls()
	w.settle(blue)
	if _, writes := w.calls(); writes != 1 {
		t.Errorf("writes %v, want one", w.srv.CallCounts())
	}
	w.stillAndSilent(blue)
	w.groupHolds("web", `{"DefaultCooldown": 90, "DefaultInstanceWarmup": 45, "CapacityRebalance": true}`)
}

// weir puts a setting by hand right where Git declares it, and leaves it alone where
// Git does not.
func TestGroupOptionsDrift(t *testing.T) {
	w := newWorld(t)
	blue := target("blue", w.withGroupOptions("", "healthCheckType: ELB\ntargetGroupARNs: [$TA]\nterminationPolicies: [OldestInstance]\nmetricsCollection: {metrics: [GroupMinSize]}\nwarmPool: {minSize: 1}"))
	w.settle(blue)
	ctx, name := context.Background(), aws.String("web")
	w.check(w.groups().UpdateAutoScalingGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{
		AutoScalingGroupName: name, HealthCheckType: aws.String("EC2"), TerminationPolicies: []string{"Default"}, HealthCheckGracePeriod: aws.Int32(77),
	}))
	w.check(w.groups().AttachTrafficSources(ctx, &autoscaling.AttachTrafficSourcesInput{AutoScalingGroupName: name, TrafficSources: []astypes.TrafficSourceIdentifier{
		{Identifier: aws.String(w.fill("$TB"))}, {Identifier: aws.String(latticeGroup)},
	}}))
	w.check(w.groups().EnableMetricsCollection(ctx, &autoscaling.EnableMetricsCollectionInput{AutoScalingGroupName: name, Granularity: aws.String("1Minute")}))
	w.check(w.groups().PutWarmPool(ctx, &autoscaling.PutWarmPoolInput{AutoScalingGroupName: name, MinSize: aws.Int32(3)}))
	w.settle(blue)
	w.stillAndSilent(blue)
	w.groupHolds("web", `{"HealthCheckType": "ELB", "TerminationPolicies": ["OldestInstance"], "HealthCheckGracePeriod": 77, "TargetGroupARNs": ["$TA"], "WarmPoolConfiguration.MinSize": 1,
		"EnabledMetrics": [{"Metric": "GroupMinSize", "Granularity": "1Minute"}],
		"TrafficSources": [{"Identifier": "$TA", "Type": "elbv2"}, {"Identifier": "$L", "Type": "vpc-lattice"}]}`)
}
