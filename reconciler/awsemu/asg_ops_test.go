package awsemu_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/awsemu"
	emuec2 "github.com/weir-gitops/weir/reconciler/awsemu/ec2"
)

func sizes(g *asgtypes.AutoScalingGroup) string {
	return fmt.Sprint(aws.ToInt32(g.MinSize), aws.ToInt32(g.DesiredCapacity), aws.ToInt32(g.MaxSize))
}

func TestUpdateMovesDesiredWithTheBounds(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.group("web", 3)
	update := func(change func(*autoscaling.UpdateAutoScalingGroupInput)) error {
		in := &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String("web")}
		change(in)
		_, err := e.autoscaling().UpdateAutoScalingGroup(ctx, in)
		return err
	}
	for _, tc := range []struct {
		name   string
		change func(*autoscaling.UpdateAutoScalingGroupInput)
		want   string
	}{
		{"min raises", func(in *autoscaling.UpdateAutoScalingGroupInput) { in.MinSize = aws.Int32(5) }, "5 5 20"},
		{"max lowers", func(in *autoscaling.UpdateAutoScalingGroupInput) { in.MinSize, in.MaxSize = aws.Int32(0), aws.Int32(2) }, "0 2 2"},
		{"nothing sent", func(*autoscaling.UpdateAutoScalingGroupInput) {}, "0 2 2"},
		{"desired", func(in *autoscaling.UpdateAutoScalingGroupInput) { in.DesiredCapacity = aws.Int32(1) }, "0 1 2"},
	} {
		if err := update(tc.change); err != nil {
			t.Fatal(err)
		}
		if got := sizes(e.read("web")); got != tc.want {
			t.Errorf("%s: sizes %s, want %s", tc.name, got, tc.want)
		}
	}
	wantError(t, update(func(in *autoscaling.UpdateAutoScalingGroupInput) { in.DesiredCapacity = aws.Int32(3) }), "ValidationError", "Desired capacity:3 must be between")
	wantError(t, update(func(in *autoscaling.UpdateAutoScalingGroupInput) { in.AutoScalingGroupName = aws.String("none") }), "ValidationError", "AutoScalingGroup name not found - ")
	e.wait(3 * time.Second)
	wantStates(t, e.read("web"), map[string]int{"InService/1": 1})
}

func TestScaleInEndsOldVersionsFirst(t *testing.T) {
	e := start(t, awsemu.Options{})
	id := e.group("web", 2)
	e.version(id, e.machine())
	must(e.autoscaling().UpdateAutoScalingGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String("web"), LaunchTemplate: spec(id, "2"), DesiredCapacity: aws.Int32(4), VPCZoneIdentifier: oneSubnet(e)}))(t)
	e.wait(2 * time.Second)
	must(e.autoscaling().UpdateAutoScalingGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String("web"), DesiredCapacity: aws.Int32(2)}))(t)
	e.wait(10 * time.Second)
	g := e.read("web")
	wantStates(t, g, map[string]int{"InService/2": 2})
	if diff := cmp.Diff([]string{"eu-west-1a"}, g.AvailabilityZones); diff != "" {
		t.Errorf("zones (-want +got):\n%s", diff)
	}
	for _, in := range g.Instances {
		if aws.ToString(in.AvailabilityZone) != "eu-west-1a" {
			t.Errorf("a member stayed in %s", aws.ToString(in.AvailabilityZone))
		}
	}
}

// oneSubnet is the subnet of zone a.
func oneSubnet(e *env) *string {
	e.t.Helper()
	for _, s := range must(e.ec2().DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{}))(e.t).Subnets {
		if aws.ToString(s.AvailabilityZone) == "eu-west-1a" {
			return s.SubnetId
		}
	}
	e.t.Fatal("no subnet in zone a")
	return nil
}

func TestMixedGroupBuysAsToldAndFallsBack(t *testing.T) {
	e := start(t, awsemu.Options{})
	id := e.template("web", e.machine())
	e.create(&autoscaling.CreateAutoScalingGroupInput{
		AutoScalingGroupName: aws.String("web"), MinSize: aws.Int32(0), MaxSize: aws.Int32(9), DesiredCapacity: aws.Int32(5), VPCZoneIdentifier: e.subnets(),
		MixedInstancesPolicy: &asgtypes.MixedInstancesPolicy{
			LaunchTemplate: &asgtypes.LaunchTemplate{LaunchTemplateSpecification: spec(id, "1"), Overrides: []asgtypes.LaunchTemplateOverrides{
				{InstanceType: aws.String("c5.large")}, {InstanceType: aws.String("m5.xlarge")}}},
			InstancesDistribution: &asgtypes.InstancesDistribution{OnDemandBaseCapacity: aws.Int32(1), OnDemandPercentageAboveBaseCapacity: aws.Int32(25), SpotAllocationStrategy: aws.String("capacity-optimized")},
		},
	})
	count := func() map[string]int {
		out := map[string]int{}
		for _, r := range must(e.ec2().DescribeInstances(ctx, &ec2.DescribeInstancesInput{}))(t).Reservations {
			for _, in := range r.Instances {
				out[string(in.InstanceType)+" "+string(in.InstanceLifecycle)]++
			}
		}
		return out
	}
	if diff := cmp.Diff(map[string]int{"c5.large ": 2, "c5.large spot": 3}, count()); diff != "" {
		t.Errorf("instances (-want +got):\n%s", diff)
	}
	e.wait(2 * time.Second)
	e.srv.Faults().Launches.Add(emuec2.LaunchFault{InstanceType: "c5.large", Code: "InsufficientInstanceCapacity"})
	must(e.autoscaling().SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: aws.String("web"), DesiredCapacity: aws.Int32(6)}))(t)
	if diff := cmp.Diff(map[string]int{"c5.large ": 2, "c5.large spot": 3, "m5.xlarge ": 1}, count()); diff != "" {
		t.Errorf("instances after a lack of capacity (-want +got):\n%s", diff)
	}
}

func TestKilledInstancesAreReplaced(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.group("web", 2)
	killed := aws.ToString(e.read("web").Instances[0].InstanceId)
	must(e.ec2().TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{killed}}))(t)
	wantStates(t, e.read("web"), map[string]int{"InService/1": 1, "Pending/1": 1, "Terminating/1": 1})
	e.wait(3 * time.Second)
	g := e.read("web")
	wantStates(t, g, map[string]int{"InService/1": 2})
	second := g.Instances[0].InstanceId
	out := must(e.autoscaling().TerminateInstanceInAutoScalingGroup(ctx, &autoscaling.TerminateInstanceInAutoScalingGroupInput{InstanceId: second, ShouldDecrementDesiredCapacity: aws.Bool(true)}))(t)
	if aws.ToString(out.Activity.Description) != "Terminating EC2 instance: "+*second {
		t.Errorf("activity = %s", aws.ToString(out.Activity.Description))
	}
	e.wait(3 * time.Second)
	if g = e.read("web"); len(g.Instances) != 1 || sizes(g) != "0 1 20" {
		t.Errorf("%d members, sizes %s", len(g.Instances), sizes(g))
	}
}

func TestDeleteGroup(t *testing.T) {
	e := start(t, awsemu.Options{})
	id := e.group("web", 2)
	remove := func(force bool) error {
		_, err := e.autoscaling().DeleteAutoScalingGroup(ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: aws.String("web"), ForceDelete: aws.Bool(force)})
		return err
	}
	wantError(t, remove(false), "ResourceInUse", "still in the group")
	must(e.autoscaling().UpdateAutoScalingGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String("web"), DesiredCapacity: aws.Int32(0)}))(t)
	wantStates(t, e.read("web"), map[string]int{"Terminating/1": 2})
	wantError(t, remove(false), "ScalingActivityInProgress", "scaling activities in progress")
	if err := remove(true); err != nil {
		t.Fatal(err)
	}
	if s := aws.ToString(e.read("web").Status); s != "Delete in progress" {
		t.Errorf("status = %q", s)
	}
	_, err := e.autoscaling().CreateAutoScalingGroup(ctx, &autoscaling.CreateAutoScalingGroupInput{AutoScalingGroupName: aws.String("web"), MinSize: aws.Int32(0), MaxSize: aws.Int32(1), LaunchTemplate: spec(id, "1"), VPCZoneIdentifier: e.subnets()})
	wantError(t, err, "AlreadyExists", "web")
	e.wait(2 * time.Second)
	if e.read("web") != nil {
		t.Error("the group is still there")
	}
	wantError(t, remove(true), "ValidationError", "AutoScalingGroup name not found - ")
	gone := must(e.autoscaling().DescribeScalingActivities(ctx, &autoscaling.DescribeScalingActivitiesInput{AutoScalingGroupName: aws.String("web"), IncludeDeletedGroups: aws.Bool(true)}))(t)
	if len(gone.Activities) != 4 || aws.ToString(gone.Activities[0].AutoScalingGroupState) != "Deleted" {
		t.Errorf("activities of the deleted group: %d", len(gone.Activities))
	}
}

func TestGroupPagesAndFilters(t *testing.T) {
	e := start(t, awsemu.Options{})
	id := e.template("web", e.machine())
	for i := range 5 {
		e.create(&autoscaling.CreateAutoScalingGroupInput{
			AutoScalingGroupName: aws.String(fmt.Sprintf("g%d", i)), MinSize: aws.Int32(0), MaxSize: aws.Int32(0), LaunchTemplate: spec(id, "1"), VPCZoneIdentifier: e.subnets(),
			Tags: []asgtypes.Tag{{Key: aws.String("parity"), Value: aws.String([]string{"even", "odd"}[i%2])}},
		})
	}
	list := func(in *autoscaling.DescribeAutoScalingGroupsInput) (names []string, pages int) {
		for p := autoscaling.NewDescribeAutoScalingGroupsPaginator(e.autoscaling(), in); p.HasMorePages(); pages++ {
			for _, g := range must(p.NextPage(ctx))(t).AutoScalingGroups {
				names = append(names, aws.ToString(g.AutoScalingGroupName))
			}
		}
		return names, pages
	}
	filter := func(name string, values ...string) []asgtypes.Filter {
		return []asgtypes.Filter{{Name: aws.String(name), Values: values}}
	}
	for name, tc := range map[string]struct {
		in    autoscaling.DescribeAutoScalingGroupsInput
		want  []string
		pages int
	}{
		"pages":     {autoscaling.DescribeAutoScalingGroupsInput{MaxRecords: aws.Int32(2)}, []string{"g0", "g1", "g2", "g3", "g4"}, 3},
		"tag":       {autoscaling.DescribeAutoScalingGroupsInput{Filters: filter("tag:parity", "odd")}, []string{"g1", "g3"}, 1},
		"tag-key":   {autoscaling.DescribeAutoScalingGroupsInput{Filters: filter("tag-key", "other")}, nil, 1},
		"tag-value": {autoscaling.DescribeAutoScalingGroupsInput{Filters: filter("tag-value", "even", "x")}, []string{"g0", "g2", "g4"}, 1},
		"names":     {autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{"g3", "none", "g1"}}, []string{"g1", "g3"}, 1},
	} {
		names, pages := list(&tc.in)
		if diff := cmp.Diff(tc.want, names); diff != "" || pages != tc.pages {
			t.Errorf("%s: %d pages (-want +got):\n%s", name, pages, diff)
		}
	}
	for name, tc := range map[string]struct {
		in   autoscaling.DescribeAutoScalingGroupsInput
		code string
	}{
		"limit":  {autoscaling.DescribeAutoScalingGroupsInput{MaxRecords: aws.Int32(101)}, "ValidationError"},
		"token":  {autoscaling.DescribeAutoScalingGroupsInput{NextToken: aws.String("x")}, "InvalidNextToken"},
		"filter": {autoscaling.DescribeAutoScalingGroupsInput{Filters: filter("name", "x")}, "ValidationError"},
	} {
		_, err := e.autoscaling().DescribeAutoScalingGroups(ctx, &tc.in)
		t.Run(name, func(t *testing.T) { wantCode(t, err, tc.code) })
	}
}

func TestGroupTags(t *testing.T) {
	e := start(t, awsemu.Options{Quotas: map[string]int{"tags": 2}})
	e.group("web", 0)
	e.group("api", 0)
	tag := func(group, key, value string) asgtypes.Tag {
		return asgtypes.Tag{ResourceId: aws.String(group), ResourceType: aws.String("auto-scaling-group"), Key: aws.String(key), Value: aws.String(value), PropagateAtLaunch: aws.Bool(true)}
	}
	must(e.autoscaling().CreateOrUpdateTags(ctx, &autoscaling.CreateOrUpdateTagsInput{Tags: []asgtypes.Tag{tag("web", "a", "1"), tag("web", "b", "2"), tag("api", "a", "3")}}))(t)
	_, err := e.autoscaling().CreateOrUpdateTags(ctx, &autoscaling.CreateOrUpdateTagsInput{Tags: []asgtypes.Tag{tag("web", "c", "1")}})
	wantError(t, err, "LimitExceeded", "tags")
	_, err = e.autoscaling().CreateOrUpdateTags(ctx, &autoscaling.CreateOrUpdateTagsInput{Tags: []asgtypes.Tag{tag("none", "c", "1")}})
	wantError(t, err, "ValidationError", "not found")
	must(e.autoscaling().DeleteTags(ctx, &autoscaling.DeleteTagsInput{Tags: []asgtypes.Tag{tag("web", "b", "2"), tag("api", "none", "")}}))(t)
	var got []string
	p := autoscaling.NewDescribeTagsPaginator(e.autoscaling(), &autoscaling.DescribeTagsInput{MaxRecords: aws.Int32(1), Filters: []asgtypes.Filter{{Name: aws.String("key"), Values: []string{"a"}}}})
	for p.HasMorePages() {
		for _, d := range must(p.NextPage(ctx))(t).Tags {
			got = append(got, aws.ToString(d.ResourceId)+" "+aws.ToString(d.Key)+"="+aws.ToString(d.Value))
		}
	}
	if diff := cmp.Diff([]string{"api a=3", "web a=1"}, got); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
}

func TestSuspendedLaunchHolds(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.group("web", 1)
	must(e.autoscaling().SuspendProcesses(ctx, &autoscaling.SuspendProcessesInput{AutoScalingGroupName: aws.String("web"), ScalingProcesses: []string{"Launch"}}))(t)
	must(e.autoscaling().SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: aws.String("web"), DesiredCapacity: aws.Int32(3)}))(t)
	e.wait(time.Minute)
	g := e.read("web")
	wantStates(t, g, map[string]int{"InService/1": 1})
	if len(g.SuspendedProcesses) != 1 || aws.ToString(g.SuspendedProcesses[0].ProcessName) != "Launch" {
		t.Errorf("suspended = %+v", g.SuspendedProcesses)
	}
	must(e.autoscaling().ResumeProcesses(ctx, &autoscaling.ResumeProcessesInput{AutoScalingGroupName: aws.String("web")}))(t)
	e.wait(2 * time.Second)
	wantStates(t, e.read("web"), map[string]int{"InService/1": 3})
	_, err := e.autoscaling().SuspendProcesses(ctx, &autoscaling.SuspendProcessesInput{AutoScalingGroupName: aws.String("web"), ScalingProcesses: []string{"Sleep"}})
	wantError(t, err, "ValidationError", "Sleep")
}

func TestHooksWarmPoolsAndTargetGroups(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.group("web", 0)
	client, name := e.autoscaling(), aws.String("web")
	_, err := client.PutLifecycleHook(ctx, &autoscaling.PutLifecycleHookInput{AutoScalingGroupName: name, LifecycleHookName: aws.String("h")})
	wantError(t, err, "ValidationError", "LifecycleTransition is required")
	must(client.PutLifecycleHook(ctx, &autoscaling.PutLifecycleHookInput{AutoScalingGroupName: name, LifecycleHookName: aws.String("h"), LifecycleTransition: aws.String("autoscaling:EC2_INSTANCE_TERMINATING")}))(t)
	must(client.PutLifecycleHook(ctx, &autoscaling.PutLifecycleHookInput{AutoScalingGroupName: name, LifecycleHookName: aws.String("h"), HeartbeatTimeout: aws.Int32(60), NotificationMetadata: aws.String("drain")}))(t)
	_, err = client.PutLifecycleHook(ctx, &autoscaling.PutLifecycleHookInput{AutoScalingGroupName: name, LifecycleHookName: aws.String("h"), NotificationMetadata: aws.String("\x01")})
	wantError(t, err, "ValidationError", "regular expression")
	hooks := must(client.DescribeLifecycleHooks(ctx, &autoscaling.DescribeLifecycleHooksInput{AutoScalingGroupName: name}))(t).LifecycleHooks
	if len(hooks) != 1 || aws.ToInt32(hooks[0].HeartbeatTimeout) != 60 || aws.ToInt32(hooks[0].GlobalTimeout) != 6000 || aws.ToString(hooks[0].DefaultResult) != "ABANDON" || aws.ToString(hooks[0].NotificationMetadata) != "drain" {
		t.Errorf("hooks = %+v", hooks)
	}
	must(client.DeleteLifecycleHook(ctx, &autoscaling.DeleteLifecycleHookInput{AutoScalingGroupName: name, LifecycleHookName: aws.String("h")}))(t)

	must(client.PutWarmPool(ctx, &autoscaling.PutWarmPoolInput{AutoScalingGroupName: name, MinSize: aws.Int32(2)}))(t)
	pool := must(client.DescribeWarmPool(ctx, &autoscaling.DescribeWarmPoolInput{AutoScalingGroupName: name}))(t).WarmPoolConfiguration
	if aws.ToInt32(pool.MinSize) != 2 || pool.PoolState != asgtypes.WarmPoolStateStopped {
		t.Errorf("warm pool = %+v", pool)
	}
	must(client.DeleteWarmPool(ctx, &autoscaling.DeleteWarmPoolInput{AutoScalingGroupName: name}))(t)
	if got := e.read("web").WarmPoolConfiguration.Status; got != asgtypes.WarmPoolStatusPendingDelete {
		t.Errorf("status = %s", got)
	}
	e.wait(2 * time.Second)
	if e.read("web").WarmPoolConfiguration != nil {
		t.Error("the warm pool is still there")
	}

	arn := func(n string) string {
		return "arn:aws:elasticloadbalancing:eu-west-1:000000000000:targetgroup/" + n + "/1"
	}
	must(client.AttachLoadBalancerTargetGroups(ctx, &autoscaling.AttachLoadBalancerTargetGroupsInput{AutoScalingGroupName: name, TargetGroupARNs: []string{arn("a"), arn("b")}}))(t)
	must(client.DetachLoadBalancerTargetGroups(ctx, &autoscaling.DetachLoadBalancerTargetGroupsInput{AutoScalingGroupName: name, TargetGroupARNs: []string{arn("a")}}))(t)
	if diff := cmp.Diff([]string{arn("b")}, e.read("web").TargetGroupARNs); diff != "" {
		t.Errorf("target groups (-want +got):\n%s", diff)
	}
	_, err = client.DetachLoadBalancerTargetGroups(ctx, &autoscaling.DetachLoadBalancerTargetGroupsInput{AutoScalingGroupName: name, TargetGroupARNs: []string{arn("a")}})
	wantError(t, err, "ValidationError", "not part of the group")
}
