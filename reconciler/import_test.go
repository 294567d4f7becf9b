package reconciler_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/importer"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/tree"
)

// TestImportedFleetsStayAsTheyAre makes groups and nodegroups as people make them by hand,
// with any members that AWS takes together, imports and adopts them. Afterwards there is
// nothing to do but what every manifest says and AWS had not, and no machine is replaced.
func TestImportedFleetsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	conversions := []string{"defaultInstanceWarmup"}
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		handmadeFleet(rt, w)
		w.clock.Advance(10 * time.Minute)
		w.srv.ResetCalls()
		state := w.surveyed(rt)
		pools := importer.Make(state, importer.Options{})
		files, err := importer.Files(state, pools)
		if err != nil {
			rt.Fatal(err)
		}
		for _, p := range pools {
			if p.State == importer.Refused {
				rt.Fatalf("%s is refused: %s", p.Name, p.Reason)
			}
		}
		var text strings.Builder
		in := tree.Map{}
		for name, body := range files {
			in[name] = string(body)
			fmt.Fprintf(&text, "## %s\n%s", name, body)
		}
		r, err := render.Render(context.Background(), in, ".", render.Options{})
		if err != nil || r.Diags.HasErrors() || len(r.Set.Pools) != len(pools) {
			rt.Fatalf("%v %v\n%s", err, r.Diags, text.String())
		}
		for i := range r.Set.Pools {
			if pool := &r.Set.Pools[i]; pool.Group != nil {
				saysAll(rt, state.Groups[pool.Group.Name], state.Hooks[pool.Group.Name], pool.Group)
			}
		}
		d := target("imported", r.Set.Pools...)
		d.Set, d.Diagnostics = &r.Set, r.Diags
		w.restart()
		report := w.must(reconciler.Apply, adopting(d, ""))[0]
		for _, call := range w.wrote() {
			if call != "CreateOrUpdateTags" && call != "TagResource" && call != "CreateTags" {
				rt.Fatalf("adopting called %s", call)
			}
		}
		if report.Diagnostics.HasErrors() {
			rt.Fatalf("adopting: %v\n%s", report.Diagnostics, text.String())
		}
		report = w.must(reconciler.PlanOnly, d)[0]
		if report.Plan == nil || report.Diagnostics.HasErrors() {
			rt.Fatalf("no plan: %v\n%s", report.Diagnostics, text.String())
		}
		if len(report.Diagnostics) > 0 {
			rt.Fatalf("the plan finds %v\n%s", report.Diagnostics, text.String())
		}
		for _, st := range report.Plan.Steps {
			for _, ch := range st.Changes {
				if st.Verb != step.Update || st.Disruptive || !slices.Contains(conversions, ch.Field) {
					rt.Fatalf("the plan has %s %s %s: %s %v → %v\n%s", st.Verb, st.Resource, st.Name, ch.Field, ch.From, ch.To, text.String())
				}
			}
		}
	})
}

// saysAll compares what a group has with what manifests say of it: what they leave out
// stays as it is, so that no plan would show it.
func saysAll(rt *rapid.T, g observed.Group, hooks observed.GroupHooks, said *intent.Group) {
	var have, got map[string]any
	for in, out := range map[*intent.GroupOptions]*map[string]any{&g.Options: &have, &said.Options: &got} {
		text, err := json.Marshal(in)
		if err != nil {
			rt.Fatal(err)
		}
		if err := json.Unmarshal(text, out); err != nil {
			rt.Fatal(err)
		}
	}
	if m, ok := got["metricsCollection"].(map[string]any); ok && m["granularity"] == "1Minute" {
		delete(m, "granularity") // the one that there is
	}
	usual := map[string]string{"availabilityZoneImpairmentPolicy": "map[zonalShiftEnabled:false]", "capacityReservationSpecification": "map[capacityReservationPreference:default]", "terminationPolicies": "[Default]", "availabilityZoneDistribution": "map[capacityDistributionStrategy:balanced-best-effort]", "healthCheckGracePeriod": "0",
		"healthCheckType": "EC2", "newInstancesProtectedFromScaleIn": "false", "deletionProtection": "none", "maxInstanceLifetime": "0", "desiredCapacityType": "units",
		"serviceLinkedRoleARN": "arn:aws:iam::000000000000:role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"}
	for key, v := range have {
		if now, ok := got[key]; ok && fmt.Sprint(v) != fmt.Sprint(now) || !ok && fmt.Sprint(v) != usual[key] {
			rt.Fatalf("%s of %s is %v, and manifests say %v", key, g.Name, v, now)
		}
	}
	if !reflect.DeepEqual(hooks.Hooks, said.LifecycleHooks) && len(hooks.Hooks)+len(said.LifecycleHooks) > 0 {
		rt.Fatalf("hooks are %+v, and manifests say %+v", hooks.Hooks, said.LifecycleHooks)
	}
	var suspended []string
	for _, p := range said.SuspendedProcesses {
		suspended = append(suspended, p.Name)
	}
	if !slices.Equal(suspended, g.SuspendedProcesses) || !said.MixedInstancesPolicy.Same(g.MixedInstancesPolicy) {
		rt.Fatalf("%s: suspended %v, said %v; policy %+v, said %+v", g.Name, g.SuspendedProcesses, suspended, g.MixedInstancesPolicy, said.MixedInstancesPolicy)
	}
}

// handmadeFleet has one launch template, which may be on any alias, up to three groups and
// up to two nodegroups.
// handmadeNames begin the names of groups, which Kubernetes need not accept.
var handmadeNames = []string{"group-", "Group_", "team/web.", "${VAR}", "it's-\"quoted\"$(x)", "-", "a..", strings.Repeat("x", 70), strings.Repeat("Y", 254)}

func handmadeFleet(rt *rapid.T, w *world) {
	ctx := context.Background()
	images, err := w.ec2().DescribeImages(ctx, &ec2.DescribeImagesInput{Owners: []string{"amazon"}, Filters: []ec2types.Filter{{Name: aws.String("architecture"), Values: []string{"x86_64"}}}})
	if err != nil || len(images.Images) == 0 {
		rt.Fatalf("no image: %v", err)
	}
	w.check(w.ec2().CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String("Hand_Made"), LaunchTemplateData: &ec2types.RequestLaunchTemplateData{
		ImageId: images.Images[0].ImageId, InstanceType: "m5.large", UserData: aws.String("IyEvYmluL3NoCg==")}}))
	subnets := w.subnets()
	for i := range rapid.IntRange(1, 3).Draw(rt, "groups") {
		name := fmt.Sprint(rapid.SampledFrom(handmadeNames).Draw(rt, "name"), i)
		in := handmadeGroup(rt, name)
		in.VPCZoneIdentifier = aws.String(strings.Join(subnets[:rapid.IntRange(1, len(subnets)).Draw(rt, "subnets")], ","))
		w.check(w.groups().CreateAutoScalingGroup(ctx, in))
		if rapid.Bool().Draw(rt, "suspends") {
			all := []string{"AZRebalance", "AlarmNotification", "HealthCheck", "ReplaceUnhealthy", "ScheduledActions", "AddToLoadBalancer", "InstanceRefresh"}
			w.check(w.groups().SuspendProcesses(ctx, &autoscaling.SuspendProcessesInput{AutoScalingGroupName: &name, ScalingProcesses: rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, len(all), rapid.ID).Draw(rt, "processes")}))
		}
		if in.MixedInstancesPolicy == nil && rapid.Bool().Draw(rt, "warm") {
			w.check(w.groups().PutWarmPool(ctx, &autoscaling.PutWarmPoolInput{AutoScalingGroupName: &name, MinSize: maybe(rt, rapid.Int32Range(0, 1)), PoolState: rapid.SampledFrom([]astypes.WarmPoolState{"", "Stopped", "Running"}).Draw(rt, "state")}))
		}
		if rapid.Bool().Draw(rt, "metrics") {
			w.check(w.groups().EnableMetricsCollection(ctx, &autoscaling.EnableMetricsCollectionInput{AutoScalingGroupName: &name, Granularity: aws.String("1Minute"), Metrics: rapid.SampledFrom([][]string{nil, {"GroupMinSize"}, {"GroupMaxSize", "GroupTotalInstances"}}).Draw(rt, "which")}))
		}
	}
	for i := range rapid.IntRange(0, 2).Draw(rt, "nodegroups") {
		in := &eks.CreateNodegroupInput{ClusterName: aws.String("demo"), NodegroupName: aws.String(fmt.Sprint("Node_Group", i)), Subnets: subnets[:2],
			NodeRole:      aws.String("arn:aws:iam::000000000000:role/eks-nodegroup.cluster-api-provider-aws.sigs.k8s.io"),
			ScalingConfig: &ekstypes.NodegroupScalingConfig{MinSize: aws.Int32(0), MaxSize: aws.Int32(4), DesiredSize: aws.Int32(rapid.Int32Range(0, 2).Draw(rt, "nodes"))},
			CapacityType:  rapid.SampledFrom([]ekstypes.CapacityTypes{"", "ON_DEMAND", "SPOT"}).Draw(rt, "capacity"),
			InstanceTypes: rapid.SampledFrom([][]string{nil, {"m5.large"}, {"t3.large", "t3.xlarge"}}).Draw(rt, "types"),
			DiskSize:      maybe(rt, rapid.Int32Range(20, 100)), Labels: rapid.SampledFrom([]map[string]string{nil, {"tier": "true"}, {"a": "1", "b/c": "on"}}).Draw(rt, "labels"),
			UpdateConfig: rapid.SampledFrom([]*ekstypes.NodegroupUpdateConfig{nil, {MaxUnavailable: aws.Int32(2)}, {MaxUnavailablePercentage: aws.Int32(33)}}).Draw(rt, "update"),
			Tags:         rapid.SampledFrom([]map[string]string{nil, {"team": "a"}}).Draw(rt, "tags"),
			NodeRepairConfig: rapid.SampledFrom([]*ekstypes.NodeRepairConfig{nil, {Enabled: aws.Bool(true)}, {Enabled: aws.Bool(false)},
				{Enabled: aws.Bool(true), MaxParallelNodesRepairedCount: aws.Int32(2)}}).Draw(rt, "repair"),
		}
		for _, effect := range rapid.SliceOfDistinct(rapid.SampledFrom([]ekstypes.TaintEffect{"NO_SCHEDULE", "NO_EXECUTE", "PREFER_NO_SCHEDULE"}), rapid.ID).Draw(rt, "taints") {
			in.Taints = append(in.Taints, ekstypes.Taint{Key: aws.String("dedicated"), Value: aws.String("yes"), Effect: effect})
		}
		if in.InstanceTypes == nil && rapid.Bool().Draw(rt, "own template") {
			in.LaunchTemplate, in.DiskSize = &ekstypes.LaunchTemplateSpecification{Name: aws.String("Hand_Made"), Version: aws.String("1")}, nil
		}
		w.check(w.eks().CreateNodegroup(ctx, in))
	}
}

// handmadeGroup draws what CreateAutoScalingGroup takes.
func handmadeGroup(rt *rapid.T, name string) *autoscaling.CreateAutoScalingGroupInput {
	in := &autoscaling.CreateAutoScalingGroupInput{
		AutoScalingGroupName: &name, MinSize: aws.Int32(rapid.Int32Range(0, 1).Draw(rt, "min")), MaxSize: aws.Int32(rapid.Int32Range(2, 5).Draw(rt, "max")),
		DesiredCapacity: maybe(rt, rapid.Int32Range(1, 2)), DefaultCooldown: maybe(rt, rapid.Int32Range(1, 900)), DefaultInstanceWarmup: maybe(rt, rapid.Int32Range(1, 900)),
		HealthCheckGracePeriod: maybe(rt, rapid.Int32Range(0, 900)), MaxInstanceLifetime: maybe(rt, rapid.Int32Range(86400, 900000)),
		NewInstancesProtectedFromScaleIn: maybe(rt, rapid.Bool()), CapacityRebalance: maybe(rt, rapid.Bool()),
		HealthCheckType:     maybe(rt, rapid.SampledFrom([]string{"EC2", "ELB", "EC2,ELB"})),
		TerminationPolicies: rapid.SampledFrom([][]string{nil, {"OldestInstance"}, {"OldestLaunchTemplate", "Default"}}).Draw(rt, "termination"),
		Tags:                []astypes.Tag{{Key: aws.String("kubernetes.io/cluster/" + rapid.SampledFrom([]string{"demo", "self"}).Draw(rt, "cluster")), Value: aws.String("owned"), PropagateAtLaunch: aws.Bool(true)}},
	}
	for k, v := range rapid.MapOfN(rapid.SampledFrom([]string{"team", "cost:center", "Name", "yes"}), rapid.SampledFrom([]string{"a b", "true", "1", "", "#x", "- y: z"}), 0, 3).Draw(rt, "tags") {
		in.Tags = append(in.Tags, astypes.Tag{Key: aws.String(k), Value: aws.String(strings.TrimLeft(v, "#")), PropagateAtLaunch: aws.Bool(rapid.Bool().Draw(rt, "copied"))})
	}
	if rapid.Bool().Draw(rt, "maintenance") {
		in.InstanceMaintenancePolicy = &astypes.InstanceMaintenancePolicy{MinHealthyPercentage: aws.Int32(rapid.Int32Range(90, 100).Draw(rt, "least")), MaxHealthyPercentage: aws.Int32(rapid.Int32Range(110, 150).Draw(rt, "most"))}
	}
	if rapid.Bool().Draw(rt, "zones") {
		in.AvailabilityZoneDistribution = &astypes.AvailabilityZoneDistribution{CapacityDistributionStrategy: rapid.SampledFrom([]astypes.CapacityDistributionStrategy{"balanced-only", "balanced-best-effort"}).Draw(rt, "distribution")}
	}
	if rapid.Bool().Draw(rt, "hook") {
		in.LifecycleHookSpecificationList = []astypes.LifecycleHookSpecification{{LifecycleHookName: aws.String("Last/Words"), LifecycleTransition: aws.String("autoscaling:EC2_INSTANCE_TERMINATING"), HeartbeatTimeout: maybe(rt, rapid.Int32Range(30, 7200)), DefaultResult: maybe(rt, rapid.SampledFrom([]string{"CONTINUE", "ABANDON"})), NotificationMetadata: maybe(rt, rapid.SampledFrom([]string{"a: b", "{}"}))}}
	}
	spec := &astypes.LaunchTemplateSpecification{LaunchTemplateName: aws.String("Hand_Made"), Version: rapid.SampledFrom([]*string{nil, aws.String("1"), aws.String("$Latest"), aws.String("$Default")}).Draw(rt, "version")}
	if !rapid.Bool().Draw(rt, "mixed") {
		in.LaunchTemplate = spec
		return in
	}
	policy := &astypes.MixedInstancesPolicy{LaunchTemplate: &astypes.LaunchTemplate{LaunchTemplateSpecification: spec}}
	weighted := rapid.Bool().Draw(rt, "weighted")
	for i, instanceType := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"m5.large", "m5.xlarge", "c5.large", "t3.large"}), 0, 3, rapid.ID).Draw(rt, "overrides") {
		o := astypes.LaunchTemplateOverrides{InstanceType: aws.String(instanceType)}
		if weighted {
			o.WeightedCapacity = aws.String(fmt.Sprint(i + 1))
		}
		if rapid.Bool().Draw(rt, "own template") {
			o.LaunchTemplateSpecification = &astypes.LaunchTemplateSpecification{LaunchTemplateName: spec.LaunchTemplateName, Version: aws.String("1")}
		}
		policy.LaunchTemplate.Overrides = append(policy.LaunchTemplate.Overrides, o)
	}
	if rapid.Bool().Draw(rt, "distributed") {
		policy.InstancesDistribution = &astypes.InstancesDistribution{OnDemandBaseCapacity: maybe(rt, rapid.Int32Range(0, 2)), OnDemandPercentageAboveBaseCapacity: maybe(rt, rapid.Int32Range(0, 100)),
			SpotAllocationStrategy: maybe(rt, rapid.SampledFrom([]string{"capacity-optimized", "price-capacity-optimized", "lowest-price"})), OnDemandAllocationStrategy: maybe(rt, rapid.SampledFrom([]string{"prioritized", "lowest-price"})),
			SpotMaxPrice: maybe(rt, rapid.SampledFrom([]string{"0.5"}))}
	}
	in.MixedInstancesPolicy = policy
	return in
}

// maybe draws a value, or none.
func maybe[T any](rt *rapid.T, g *rapid.Generator[T]) *T {
	if rapid.Bool().Draw(rt, "absent") {
		return nil
	}
	v := g.Draw(rt, "value")
	return &v
}
