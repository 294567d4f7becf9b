package awsemu_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// An instance waits for its hooks until all are completed with CONTINUE, one with
// ABANDON, or time is up; heartbeats give it more, within the global timeout.
func TestLifecycleActions(t *testing.T) {
	const launching, terminating = "autoscaling:EC2_INSTANCE_LAUNCHING", "autoscaling:EC2_INSTANCE_TERMINATING"
	type step func(e *env, id string)
	complete := func(hook, result string) step {
		return func(e *env, id string) {
			must(e.autoscaling().CompleteLifecycleAction(ctx, &autoscaling.CompleteLifecycleActionInput{AutoScalingGroupName: aws.String("web"), LifecycleHookName: &hook, InstanceId: &id, LifecycleActionResult: &result}))(e.t)
		}
	}
	drop := func(e *env, _ string) {
		must(e.autoscaling().DeleteLifecycleHook(ctx, &autoscaling.DeleteLifecycleHookInput{AutoScalingGroupName: aws.String("web"), LifecycleHookName: aws.String("a")}))(e.t)
	}
	heartbeat := func(e *env, id string) {
		must(e.autoscaling().RecordLifecycleActionHeartbeat(ctx, &autoscaling.RecordLifecycleActionHeartbeatInput{AutoScalingGroupName: aws.String("web"), LifecycleHookName: aws.String("a"), InstanceId: &id}))(e.t)
	}
	after := func(d time.Duration) step { return func(e *env, _ string) { e.wait(d) } }
	for name, tc := range map[string]struct {
		hooks      []string
		transition string
		result     string
		steps      []step
		want       string // the instance's state, "" where it is gone
	}{
		"a launch waits":                   {[]string{"a"}, launching, "CONTINUE", []step{after(4 * time.Minute)}, "Pending:Wait"},
		"a launch is completed":            {[]string{"a"}, launching, "ABANDON", []step{complete("a", "CONTINUE")}, "InService"},
		"a launch is abandoned":            {[]string{"a"}, launching, "CONTINUE", []step{complete("a", "ABANDON"), after(5 * time.Second)}, ""},
		"a launch continues in the end":    {[]string{"a"}, launching, "CONTINUE", []step{after(301 * time.Second)}, "InService"},
		"a launch is abandoned in the end": {[]string{"a"}, launching, "ABANDON", []step{after(310 * time.Second)}, ""},
		"a heartbeat":                      {[]string{"a"}, launching, "ABANDON", []step{after(200 * time.Second), heartbeat, after(200 * time.Second)}, "Pending:Wait"},
		"a heartbeat is over":              {[]string{"a"}, launching, "ABANDON", []step{after(200 * time.Second), heartbeat, after(310 * time.Second)}, ""},
		"one of two":                       {[]string{"a", "b"}, launching, "ABANDON", []step{complete("b", "CONTINUE")}, "Pending:Wait"},
		"both of two":                      {[]string{"a", "b"}, launching, "ABANDON", []step{complete("b", "CONTINUE"), complete("a", "CONTINUE")}, "InService"},
		"one of two abandons":              {[]string{"a", "b"}, launching, "CONTINUE", []step{complete("b", "ABANDON"), after(5 * time.Second)}, ""},
		"a launch whose hook is deleted":   {[]string{"a"}, launching, "CONTINUE", []step{drop, after(5 * time.Second)}, ""},
		"an end whose hook is deleted":     {[]string{"a"}, terminating, "ABANDON", []step{drop}, "Terminating:Proceed"},
		"an end waits":                     {[]string{"a"}, terminating, "CONTINUE", []step{after(4 * time.Minute)}, "Terminating:Wait"},
		"an end is completed":              {[]string{"a"}, terminating, "CONTINUE", []step{complete("a", "CONTINUE")}, "Terminating:Proceed"},
		"an end is completed and over":     {[]string{"a"}, terminating, "CONTINUE", []step{complete("a", "CONTINUE"), after(5 * time.Second)}, ""},
		"an end is abandoned":              {[]string{"a"}, terminating, "CONTINUE", []step{complete("a", "ABANDON"), after(5 * time.Second)}, ""},
		"an end takes too long":            {[]string{"a"}, terminating, "ABANDON", []step{after(310 * time.Second)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := start(t, awsemu.Options{})
			e.group("web", 0)
			web := aws.String("web")
			set := func(n int32) {
				must(e.autoscaling().SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: web, DesiredCapacity: &n}))(t)
				e.wait(time.Second)
			}
			if tc.transition == terminating {
				set(1)
			}
			for _, hook := range tc.hooks {
				must(e.autoscaling().PutLifecycleHook(ctx, &autoscaling.PutLifecycleHookInput{AutoScalingGroupName: web, LifecycleHookName: &hook, LifecycleTransition: &tc.transition, HeartbeatTimeout: aws.Int32(300), DefaultResult: &tc.result}))(t)
			}
			set(map[string]int32{launching: 1, terminating: 0}[tc.transition])
			id := e.members("web")[0]
			e.saveAndLoad()
			for _, s := range tc.steps {
				s(e, id)
			}
			got := ""
			for _, in := range e.read("web").Instances {
				if *in.InstanceId == id {
					got = string(in.LifecycleState)
				}
			}
			if got != tc.want {
				t.Errorf("the instance is %q, want %q\n%s", got, tc.want, e.told("web", 5))
			}
			if tc.want == "" && tc.transition == launching {
				wantTold(t, e.told("web", 5), "Instance failed to complete user's Lifecycle Action", "in response to a lifecycle action that was abandoned")
			}
			if !strings.HasSuffix(tc.want, ":Wait") {
				_, err := e.autoscaling().CompleteLifecycleAction(ctx, &autoscaling.CompleteLifecycleActionInput{AutoScalingGroupName: web, LifecycleHookName: aws.String("a"), InstanceId: &id, LifecycleActionResult: aws.String("CONTINUE")})
				wantError(t, err, "ValidationError", "No active Lifecycle Action found with instance ID "+id)
			}
		})
	}
}

// However many heartbeats come, an action ends after a hundred timeouts.
func TestTheGlobalTimeout(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.group("web", 0)
	web, hook := aws.String("web"), aws.String("a")
	must(e.autoscaling().PutLifecycleHook(ctx, &autoscaling.PutLifecycleHookInput{AutoScalingGroupName: web, LifecycleHookName: hook, LifecycleTransition: aws.String("autoscaling:EC2_INSTANCE_LAUNCHING"), HeartbeatTimeout: aws.Int32(30), DefaultResult: aws.String("CONTINUE")}))(t)
	must(e.autoscaling().SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: web, DesiredCapacity: aws.Int32(1)}))(t)
	e.wait(time.Second)
	id, beats := e.members("web")[0], 0
	for beats < 1000 {
		if _, err := e.autoscaling().RecordLifecycleActionHeartbeat(ctx, &autoscaling.RecordLifecycleActionHeartbeatInput{AutoScalingGroupName: web, LifecycleHookName: hook, InstanceId: &id}); err != nil {
			break
		}
		beats++
		e.wait(20 * time.Second)
	}
	if beats != 150 { // 3000 s
		t.Errorf("%d heartbeats were taken", beats)
	}
	wantStates(t, e.read("web"), map[string]int{"InService/1": 1})
}

// A forced deletion of a group waits for no hook.
func TestForcedDeletionDoesNotWaitForHooks(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.group("web", 2)
	web := aws.String("web")
	must(e.autoscaling().PutLifecycleHook(ctx, &autoscaling.PutLifecycleHookInput{AutoScalingGroupName: web, LifecycleHookName: aws.String("a"), LifecycleTransition: aws.String("autoscaling:EC2_INSTANCE_TERMINATING")}))(t)
	must(e.autoscaling().SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: web, DesiredCapacity: aws.Int32(1)}))(t)
	e.wait(time.Second)
	wantStates(t, e.read("web"), map[string]int{"InService/1": 1, "Terminating:Wait/1": 1})
	must(e.autoscaling().DeleteAutoScalingGroup(ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: web, ForceDelete: aws.Bool(true)}))(t)
	e.wait(5 * time.Second)
	if e.read("web") != nil {
		t.Error("the group is still there")
	}
}

// The hook of an instance whose group is deleted may still run out of time. The instance
// ends all the same.
func TestAHookThatEndsAfterAForcedDeletion(t *testing.T) {
	timings := world.Fast()
	timings.InstanceShutdown = time.Minute
	e := start(t, awsemu.Options{Timings: timings})
	e.group("web", 1)
	web := aws.String("web")
	must(e.autoscaling().PutLifecycleHook(ctx, &autoscaling.PutLifecycleHookInput{AutoScalingGroupName: web, LifecycleHookName: aws.String("a"), LifecycleTransition: aws.String("autoscaling:EC2_INSTANCE_TERMINATING"), HeartbeatTimeout: aws.Int32(30), DefaultResult: aws.String("CONTINUE")}))(t)
	must(e.autoscaling().SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: web, DesiredCapacity: aws.Int32(0)}))(t)
	e.wait(time.Second)
	must(e.autoscaling().DeleteAutoScalingGroup(ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: web, ForceDelete: aws.Bool(true)}))(t)
	e.wait(2 * time.Minute)
	if e.read("web") != nil {
		t.Error("the group is still there")
	}
}

// Instances of a warm pool pass their hooks on the way in, and again into service.
func TestWarmPoolHooks(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.group("web", 0)
	web, hook := aws.String("web"), aws.String("a")
	must(e.autoscaling().PutLifecycleHook(ctx, &autoscaling.PutLifecycleHookInput{AutoScalingGroupName: web, LifecycleHookName: hook, LifecycleTransition: aws.String("autoscaling:EC2_INSTANCE_LAUNCHING")}))(t)
	must(e.autoscaling().PutWarmPool(ctx, &autoscaling.PutWarmPoolInput{AutoScalingGroupName: web, MinSize: aws.Int32(1), MaxGroupPreparedCapacity: aws.Int32(1)}))(t)
	e.wait(time.Second)
	warm := func() asgtypes.Instance {
		return must(e.autoscaling().DescribeWarmPool(ctx, &autoscaling.DescribeWarmPoolInput{AutoScalingGroupName: web}))(t).Instances[0]
	}
	complete := func(id *string) {
		must(e.autoscaling().CompleteLifecycleAction(ctx, &autoscaling.CompleteLifecycleActionInput{AutoScalingGroupName: web, LifecycleHookName: hook, InstanceId: id, LifecycleActionResult: aws.String("CONTINUE")}))(t)
	}
	first := warm()
	if first.LifecycleState != "Warmed:Pending:Wait" {
		t.Errorf("before the hook: %s", first.LifecycleState)
	}
	complete(first.InstanceId)
	if got := warm().LifecycleState; got != "Warmed:Stopped" {
		t.Errorf("after the hook: %s", got)
	}
	must(e.autoscaling().SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: web, DesiredCapacity: aws.Int32(1)}))(t)
	e.wait(3 * time.Second)
	wantStates(t, e.read("web"), map[string]int{"Pending:Wait/1": 1})
	complete(first.InstanceId)
	wantStates(t, e.read("web"), map[string]int{"InService/1": 1})
}
