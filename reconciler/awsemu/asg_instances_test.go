package awsemu_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// members are the ids of a group's instances, as AWS lists them.
func (e *env) members(name string) []string {
	e.t.Helper()
	var ids []string
	for _, in := range e.read(name).Instances {
		ids = append(ids, *in.InstanceId)
	}
	return ids
}

// told are the descriptions of a group's newest activities, with their causes.
func (e *env) told(name string, n int) string {
	e.t.Helper()
	out := must(e.autoscaling().DescribeScalingActivities(ctx, &autoscaling.DescribeScalingActivitiesInput{AutoScalingGroupName: &name}))(e.t)
	var b strings.Builder
	for _, a := range out.Activities[:min(n, len(out.Activities))] {
		fmt.Fprintf(&b, "%s (%s): %s\n", *a.Description, a.StatusCode, *a.Cause)
	}
	return b.String()
}

func wantTold(t *testing.T, told string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(told, part) {
			t.Errorf("the activities do not tell of %q:\n%s", part, told)
		}
	}
}

// saveAndLoad goes on with another emulator that has the first one's saved state.
func (e *env) saveAndLoad() {
	e.t.Helper()
	var saved bytes.Buffer
	if err := e.srv.Save(&saved); err != nil {
		e.t.Fatal(err)
	}
	other := start(e.t, awsemu.Options{Clock: e.clock})
	if err := other.srv.Load(&saved); err != nil {
		e.t.Fatal(err)
	}
	e.srv, e.cfg = other.srv, other.cfg
}

// Standby takes an instance out of the capacity: with the desired capacity, or for
// another one; no health check asks after it, and it comes back as new ones do.
func TestStandby(t *testing.T) {
	for name, tc := range map[string]struct {
		decrement     bool
		during, after string
		states        map[string]int
	}{
		"decrement": {true, "0 1 20", "0 2 20", map[string]int{"InService/1": 1, "Standby/1": 1}},
		"replace":   {false, "0 2 20", "0 3 20", map[string]int{"InService/1": 2, "Standby/1": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			e := start(t, awsemu.Options{})
			e.group("web", 2)
			ids := e.members("web")[:1]
			web := aws.String("web")
			out := must(e.autoscaling().EnterStandby(ctx, &autoscaling.EnterStandbyInput{AutoScalingGroupName: web, InstanceIds: ids, ShouldDecrementDesiredCapacity: &tc.decrement}))(t)
			if a := out.Activities; len(a) != 1 || *a[0].Description != "Moving EC2 instance to Standby: "+ids[0] || a[0].StatusCode != "InProgress" {
				t.Errorf("activities: %+v", a)
			}
			e.wait(3 * time.Second)
			wantStates(t, e.read("web"), tc.states)
			if got := sizes(e.read("web")); got != tc.during {
				t.Errorf("sizes %s, want %s", got, tc.during)
			}
			if tc.decrement {
				wantTold(t, e.told("web", 1), "instance "+ids[0]+" was moved to standby in response to a user request, shrinking the capacity from 2 to 1.")
			}
			must(e.autoscaling().SetInstanceHealth(ctx, &autoscaling.SetInstanceHealthInput{InstanceId: &ids[0], HealthStatus: aws.String("Unhealthy")}))(t)
			e.saveAndLoad()
			e.wait(time.Hour)
			wantStates(t, e.read("web"), tc.states)
			must(e.autoscaling().SetInstanceHealth(ctx, &autoscaling.SetInstanceHealthInput{InstanceId: &ids[0], HealthStatus: aws.String("Healthy")}))(t)
			_, err := e.autoscaling().EnterStandby(ctx, &autoscaling.EnterStandbyInput{AutoScalingGroupName: web, InstanceIds: ids, ShouldDecrementDesiredCapacity: aws.Bool(true)})
			wantError(t, err, "ValidationError", "The instance "+ids[0]+" is not in InService.")
			_, err = e.autoscaling().DeleteAutoScalingGroup(ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: web})
			wantCode(t, err, "ResourceInUse")
			back := must(e.autoscaling().ExitStandby(ctx, &autoscaling.ExitStandbyInput{AutoScalingGroupName: web, InstanceIds: ids}))(t)
			if a := back.Activities; len(a) != 1 || a[0].StatusCode != "PreInService" || !strings.Contains(*a[0].Cause, "was moved out of standby in response to a user request, increasing the capacity") {
				t.Errorf("activities: %+v", a)
			}
			if got := sizes(e.read("web")); got != tc.after {
				t.Errorf("sizes %s, want %s", got, tc.after)
			}
			e.wait(3 * time.Second)
			g := e.read("web")
			wantStates(t, g, map[string]int{"InService/1": int(*g.DesiredCapacity)})
			wantTold(t, e.told("web", 1), "Moving EC2 instance out of Standby: "+ids[0]+" (Successful)")
		})
	}
}

// The bounds of a group, and what its instances are, stand in the way of moving them.
func TestMovesThatAreRefused(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.group("web", 1)
	e.group("other", 1)
	web, id, stranger := aws.String("web"), e.members("web"), e.members("other")
	must(e.autoscaling().UpdateAutoScalingGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: web, MinSize: aws.Int32(1), MaxSize: aws.Int32(1)}))(t)
	client := e.autoscaling()
	enter := func(group *string, ids []string) error {
		_, err := client.EnterStandby(ctx, &autoscaling.EnterStandbyInput{AutoScalingGroupName: group, InstanceIds: ids, ShouldDecrementDesiredCapacity: aws.Bool(true)})
		return err
	}
	exit := func(ids []string) error {
		_, err := client.ExitStandby(ctx, &autoscaling.ExitStandbyInput{AutoScalingGroupName: web, InstanceIds: ids})
		return err
	}
	detach := func(ids []string) error {
		_, err := client.DetachInstances(ctx, &autoscaling.DetachInstancesInput{AutoScalingGroupName: web, InstanceIds: ids, ShouldDecrementDesiredCapacity: aws.Bool(true)})
		return err
	}
	attach := func(ids []string) error {
		_, err := client.AttachInstances(ctx, &autoscaling.AttachInstancesInput{AutoScalingGroupName: web, InstanceIds: ids})
		return err
	}
	protect := func(ids []string) error {
		_, err := client.SetInstanceProtection(ctx, &autoscaling.SetInstanceProtectionInput{AutoScalingGroupName: web, InstanceIds: ids, ProtectedFromScaleIn: aws.Bool(true)})
		return err
	}
	health := func(id, status string) error {
		_, err := client.SetInstanceHealth(ctx, &autoscaling.SetInstanceHealthInput{InstanceId: &id, HealthStatus: &status})
		return err
	}
	many := func(n int) (ids []string) {
		for i := range n {
			ids = append(ids, fmt.Sprintf("i-%017d", i))
		}
		return ids
	}
	const inTheWay = "AutoScalingGroup web has min-size=1, max-size=1, and desired-size=1. To "
	for _, tc := range []struct {
		err  error
		want string
	}{
		{enter(web, id), inTheWay + "place into standby 1 instance, please update the AutoScalingGroup sizes appropriately."},
		{enter(aws.String("none"), id), "AutoScalingGroup name not found - AutoScalingGroup none not found"},
		{enter(web, stranger), "The instance " + stranger[0] + " is not part of Auto Scaling group web."},
		{enter(web, many(21)), "must not exceed 20"},
		{exit(id), "The instance " + id[0] + " is not in Standby."},
		{detach(id), inTheWay + "detach 1 instance, please"},
		{detach(stranger), "is not part of Auto Scaling group web."},
		{attach(stranger), "Instance " + stranger[0] + " is already part of AutoScalingGroup:other"},
		{attach(many(1)), "Invalid Instance ID(s): [i-00000000000000000]"},
		{protect(many(51)), "must not exceed 50"},
		{protect(stranger), "is not part of Auto Scaling group web."},
		{health(id[0], "Sick"), "Valid instance health states are: [Healthy, Unhealthy]."},
		{health(many(1)[0], "Healthy"), "No managed instance found for instance ID"},
	} {
		wantError(t, tc.err, "ValidationError", tc.want)
	}
	must(client.DetachInstances(ctx, &autoscaling.DetachInstancesInput{AutoScalingGroupName: aws.String("other"), InstanceIds: stranger, ShouldDecrementDesiredCapacity: aws.Bool(true)}))(t)
	wantError(t, attach(stranger), "ValidationError", inTheWay+"attach 1 more instance, please")
	must(e.ec2().TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: stranger}))(t)
	wantError(t, attach(stranger), "ValidationError", "is not in the running state")
}

// A detached instance runs on as nobody's; another group takes it, and it counts there.
func TestDetachAndAttach(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.group("web", 2)
	e.group("other", 0)
	ids := e.members("web")[:1]
	must(e.autoscaling().DetachInstances(ctx, &autoscaling.DetachInstancesInput{AutoScalingGroupName: aws.String("web"), InstanceIds: ids, ShouldDecrementDesiredCapacity: aws.Bool(true)}))(t)
	e.wait(time.Minute)
	wantStates(t, e.read("web"), map[string]int{"InService/1": 1})
	wantTold(t, e.told("web", 1), "Detaching EC2 instance: "+ids[0]+" (Successful)", "was detached in response to a user request, shrinking the capacity from 2 to 1.")
	group := func() (string, string) {
		in := must(e.ec2().DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: ids}))(t).Reservations[0].Instances[0]
		for _, tag := range in.Tags {
			if *tag.Key == "aws:autoscaling:groupName" {
				return *tag.Value, string(in.State.Name)
			}
		}
		return "", string(in.State.Name)
	}
	if g, state := group(); g != "" || state != "running" {
		t.Errorf("the detached instance is %q, of group %q", state, g)
	}
	must(e.autoscaling().AttachInstances(ctx, &autoscaling.AttachInstancesInput{AutoScalingGroupName: aws.String("other"), InstanceIds: ids}))(t)
	if g, _ := group(); g != "other" {
		t.Errorf("the attached instance is of group %q", g)
	}
	e.saveAndLoad()
	e.wait(time.Minute)
	g := e.read("other")
	if sizes(g) != "0 1 20" || len(g.Instances) != 1 || *g.Instances[0].InstanceId != ids[0] || g.Instances[0].LifecycleState != "InService" || g.Instances[0].LaunchTemplate != nil {
		t.Errorf("the group that it was attached to: %s, %+v", sizes(g), g.Instances)
	}
	must(e.autoscaling().SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: aws.String("other"), DesiredCapacity: aws.Int32(0)}))(t)
	e.wait(5 * time.Second)
	if _, state := group(); state != "terminated" {
		t.Errorf("after scale-in it is %q", state)
	}
}

// Scale-in ends machines that are not, or no longer, protected.
func TestInstanceProtection(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.group("web", 3)
	ids := e.members("web")
	protect := func(on bool, ids ...string) {
		must(e.autoscaling().SetInstanceProtection(ctx, &autoscaling.SetInstanceProtectionInput{AutoScalingGroupName: aws.String("web"), InstanceIds: ids, ProtectedFromScaleIn: &on}))(t)
		e.wait(5 * time.Second)
	}
	protect(true, ids[0], ids[1])
	must(e.autoscaling().SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: aws.String("web"), DesiredCapacity: aws.Int32(0)}))(t)
	e.wait(5 * time.Second)
	if got := fmt.Sprint(e.members("web")); got != fmt.Sprint(ids[:2]) {
		t.Errorf("left are %s, want the protected %s", got, ids[:2])
	}
	out := must(e.autoscaling().DescribeAutoScalingInstances(ctx, &autoscaling.DescribeAutoScalingInstancesInput{InstanceIds: append(ids, "i-00000000000000000")}))(t)
	if n := len(out.AutoScalingInstances); n != 2 || !*out.AutoScalingInstances[0].ProtectedFromScaleIn || *out.AutoScalingInstances[0].HealthStatus != "HEALTHY" || *out.AutoScalingInstances[0].AutoScalingGroupName != "web" {
		t.Errorf("instances: %+v", out.AutoScalingInstances)
	}
	protect(false, ids[0])
	if got := fmt.Sprint(e.members("web")); got != fmt.Sprint(ids[1:2]) {
		t.Errorf("left are %s, want %s", got, ids[1:2])
	}
}

// The group replaces an instance that is said to be unhealthy: at once, or after its
// grace period.
func TestInstanceHealth(t *testing.T) {
	for name, tc := range map[string]struct {
		respect *bool
		waits   bool
	}{"by default": {nil, true}, "respecting": {aws.Bool(true), true}, "not respecting": {aws.Bool(false), false}} {
		t.Run(name, func(t *testing.T) {
			e := start(t, awsemu.Options{})
			e.group("web", 1)
			id := e.members("web")[0]
			must(e.autoscaling().UpdateAutoScalingGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String("web"), HealthCheckGracePeriod: aws.Int32(600)}))(t)
			must(e.autoscaling().SetInstanceHealth(ctx, &autoscaling.SetInstanceHealthInput{InstanceId: &id, HealthStatus: aws.String("Unhealthy"), ShouldRespectGracePeriod: tc.respect}))(t)
			if tc.waits {
				e.wait(9 * time.Minute)
				if got := e.read("web").Instances; len(got) != 1 || *got[0].InstanceId != id || *got[0].HealthStatus != "Unhealthy" {
					t.Errorf("in the grace period: %+v", got)
				}
				e.saveAndLoad()
				e.wait(2 * time.Minute)
			}
			e.wait(10 * time.Second)
			if got := e.members("web"); len(got) != 1 || got[0] == id {
				t.Errorf("the unhealthy instance was not replaced: %v", got)
			}
			wantTold(t, e.told("web", 3), "Terminating EC2 instance: "+id, "an instance was taken out of service in response to a user health-check.")
		})
	}
}

// A refresh leaves, ends or waits for what is in standby or protected, as it was told.
func TestRefreshOfStandbyAndProtected(t *testing.T) {
	for name, tc := range map[string]struct {
		standby   asgtypes.StandbyInstances
		protected asgtypes.ScaleInProtectedInstances
		status    asgtypes.InstanceRefreshStatus
		states    map[string]int
	}{
		"wait":      {"", "", "Failed", map[string]int{"InService/1": 1, "InService/2": 1, "Standby/1": 1}},
		"ignore":    {"Ignore", "Ignore", "Successful", map[string]int{"InService/1": 1, "InService/2": 1, "Standby/1": 1}},
		"terminate": {"Terminate", "Refresh", "Successful", map[string]int{"InService/2": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			e := start(t, awsemu.Options{})
			id := e.group("web", 3)
			e.version(id, e.machine())
			web, ids := aws.String("web"), e.members("web")
			must(e.autoscaling().EnterStandby(ctx, &autoscaling.EnterStandbyInput{AutoScalingGroupName: web, InstanceIds: ids[:1], ShouldDecrementDesiredCapacity: aws.Bool(true)}))(t)
			must(e.autoscaling().SetInstanceProtection(ctx, &autoscaling.SetInstanceProtectionInput{AutoScalingGroupName: web, InstanceIds: ids[1:2], ProtectedFromScaleIn: aws.Bool(true)}))(t)
			must(e.autoscaling().StartInstanceRefresh(ctx, &autoscaling.StartInstanceRefreshInput{AutoScalingGroupName: web, DesiredConfiguration: &asgtypes.DesiredConfiguration{LaunchTemplate: spec(id, "2")},
				Preferences: &asgtypes.RefreshPreferences{MinHealthyPercentage: aws.Int32(0), StandbyInstances: tc.standby, ScaleInProtectedInstances: tc.protected}}))(t)
			e.wait(10 * time.Minute)
			if got := must(e.autoscaling().DescribeInstanceRefreshes(ctx, &autoscaling.DescribeInstanceRefreshesInput{AutoScalingGroupName: web}))(t).InstanceRefreshes[0]; got.Status != tc.status {
				t.Errorf("the refresh is %s: %s", got.Status, aws.ToString(got.StatusReason))
			}
			wantStates(t, e.read("web"), tc.states)
		})
	}
}

// An instance in standby that is ended by others is replaced once it is back.
func TestADeadInstanceComesBackFromStandby(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.group("web", 1)
	web, ids := aws.String("web"), e.members("web")
	must(e.autoscaling().EnterStandby(ctx, &autoscaling.EnterStandbyInput{AutoScalingGroupName: web, InstanceIds: ids, ShouldDecrementDesiredCapacity: aws.Bool(true)}))(t)
	must(e.ec2().TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids}))(t)
	e.wait(time.Minute)
	wantStates(t, e.read("web"), map[string]int{"Standby/1": 1})
	must(e.autoscaling().ExitStandby(ctx, &autoscaling.ExitStandbyInput{AutoScalingGroupName: web, InstanceIds: ids}))(t)
	e.wait(10 * time.Second)
	if got := e.members("web"); len(got) != 1 || got[0] == ids[0] {
		t.Errorf("members %v", got)
	}
}

// An instance that is told to be unhealthy and then ends does not keep its grace period.
func TestADeadInstanceHasNoGrace(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.group("web", 1)
	ids := e.members("web")
	must(e.autoscaling().UpdateAutoScalingGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String("web"), HealthCheckGracePeriod: aws.Int32(3600)}))(t)
	must(e.autoscaling().SetInstanceHealth(ctx, &autoscaling.SetInstanceHealthInput{InstanceId: &ids[0], HealthStatus: aws.String("Unhealthy")}))(t)
	must(e.ec2().TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids}))(t)
	e.wait(10 * time.Second)
	if got := e.members("web"); len(got) != 1 || got[0] == ids[0] {
		t.Errorf("members %v", got)
	}
}
