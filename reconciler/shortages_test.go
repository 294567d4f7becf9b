package reconciler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/launch"
	"github.com/weir-gitops/weir/render/intent"
)

// A pool whose machines AWS cannot launch says why, in AWS's words, and asks AWS at
// most once a minute, then ever more rarely; one that comes up asks nothing.
func TestWhyMachinesDoNotCome(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", groupPool("fine", "m5.large", 2)))
	w.srv.Faults().Launches.Add(ec2.LaunchFault{InstanceType: "m5.xlarge", Code: "InsufficientInstanceCapacity", Message: "We currently do not have sufficient m5.xlarge capacity in the Availability Zone you requested"})
	blue := target("blue", groupPool("fine", "m5.large", 2), groupPool("web", "m5.xlarge", 2))
	asked := func() int { return w.srv.CallCounts()["autoscaling:DescribeScalingActivities"] }
	if asked() != 0 {
		t.Errorf("%d questions about machines that came", asked())
	}
	look := func(minutes int) plan.PoolStatus {
		t.Helper()
		var s plan.PoolStatus
		for range minutes * 6 {
			s = w.must(reconciler.Apply, blue)[0].Pools[1]
			w.clock.Advance(10 * time.Second)
		}
		return s
	}
	s := look(1)
	if s.FailureReason != "launch-failed" || !strings.Contains(s.FailureMessage, "sufficient m5.xlarge capacity") || s.Converged || s.Phase == plan.PhaseFailed || s.Ready().Message != s.FailureMessage {
		t.Fatalf("after a minute: %+v", s)
	}
	first := asked()
	if look(30); first > 1 || asked() > 7 {
		t.Errorf("%d questions in the first minute, %d in half an hour", first, asked())
	}
	w.srv.Faults().Clear()
	w.clock.Advance(10 * time.Minute)
	w.settle(blue)
	if s = w.must(reconciler.Apply, blue)[0].Pools[1]; s.FailureReason != "" || !s.Converged {
		t.Errorf("with machines: %+v", s)
	}
}

// A weir without the permission does not ask at each pass.
func TestAQuestionThatIsRefusedIsNotRepeated(t *testing.T) {
	w := newWorld(t)
	w.srv.Faults().Launches.Add(ec2.LaunchFault{Code: "InsufficientInstanceCapacity"})
	w.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: "DescribeScalingActivities", Code: "AccessDenied", Times: -1})
	blue := target("blue", groupPool("web", "m5.large", 1))
	for range 18 {
		if s := w.must(reconciler.Apply, blue)[0].Pools[0]; s.FailureReason != "" {
			t.Fatalf("%+v", s)
		}
		w.clock.Advance(10 * time.Second)
	}
	if n := w.srv.CallCounts()["autoscaling:DescribeScalingActivities"]; n == 0 || n > 2 {
		t.Errorf("%d questions in three minutes", n)
	}
}

// One call asks about many pools.
func TestManyPoolsWithoutMachinesAreOneQuestion(t *testing.T) {
	w := newWorld(t)
	w.srv.Faults().Launches.Add(ec2.LaunchFault{Code: "InsufficientInstanceCapacity", Message: "There is no Spot capacity available that matches your request"})
	blue := target("blue", groupPool("web-a", "m5.large", 1), groupPool("web-b", "m5.large", 1), groupPool("web-c", "m5.large", 1), groupPool("web-d", "m5.large", 1))
	var r *plan.Report
	for range 5 {
		r = w.must(reconciler.Apply, blue)[0]
		w.clock.Advance(10 * time.Second)
	}
	for _, s := range r.Pools {
		if !strings.Contains(s.FailureMessage, "no Spot capacity") {
			t.Errorf("%s: %+v", s.Name, s)
		}
	}
	if n := w.srv.CallCounts()["autoscaling:DescribeScalingActivities"]; n != 1 {
		t.Errorf("%d questions, want one", n)
	}
}

// after looks every ten seconds for some minutes, and returns the pool as it is then.
func (w *world) after(minutes int, d reconciler.Desired) (s plan.PoolStatus) {
	w.t.Helper()
	for range minutes * 6 {
		w.clock.Advance(10 * time.Second)
		s = w.must(reconciler.Apply, d)[0].Pools[0]
	}
	return s
}

func (w *world) asked(operation string) int { return w.srv.CallCounts()["autoscaling:"+operation] }

// Machines that start and end again and again are as many as are wanted at each look,
// and none is ever in service: it is said why.
func TestMachinesThatEndBeforeTheyServe(t *testing.T) {
	w := newWorld(t)
	w.srv.Faults().Launches.Add(ec2.LaunchFault{Code: "Client.InvalidKMSKey.InvalidState", Message: "The KMS key provided is in an incorrect state"})
	blue := target("blue", groupPool("web", "m5.large", 1))
	s := w.after(8, blue)
	if s.FailureReason != "launch-failed" || s.FailureCause != "InvalidKMSKey.InvalidState" || !strings.Contains(s.FailureMessage, "kms:CreateGrant") || !strings.HasPrefix(s.FailureMessage, "machines end before") {
		t.Fatalf("after eight minutes: %+v", s)
	}
	if n := w.asked("DescribeScalingActivities"); n > 8 {
		t.Errorf("%d questions in eight minutes", n)
	}
	w.srv.Faults().Clear()
	w.clock.Advance(10 * time.Minute)
	w.settle(blue)
	if s = w.must(reconciler.Apply, blue)[0].Pools[0]; s.FailureMessage != "" || !s.Converged {
		t.Errorf("with machines: %+v", s)
	}
}

// A machine that EC2 does not start is told of once it is late, and AWS is asked ever
// more rarely.
func TestAMachineThatStaysPending(t *testing.T) {
	w := newWorld(t)
	w.srv.Faults().Launches.Add(ec2.LaunchFault{Stuck: true})
	blue := target("blue", groupPool("web", "m5.large", 2))
	if s := w.after(4, blue); w.asked("DescribeScalingActivities") != 0 || s.Ready().Message != "" {
		t.Errorf("in time: %d questions, %+v", w.asked("DescribeScalingActivities"), s.Ready())
	}
	s := w.after(3, blue)
	c := s.Ready()
	if c.Reason != launch.ReasonPending || !strings.HasPrefix(c.Message, "the oldest launch started at 2026-01-02 03:04 UTC: i-") || !strings.Contains(c.Message, " are in Pending, so EC2") {
		t.Errorf("late: %+v", c)
	}
	if s.FailureReason != "" || s.Phase == plan.PhaseFailed {
		t.Errorf("waiting is not failing: %+v", s)
	}
	if w.after(30, blue); w.asked("DescribeScalingActivities") > 7 || w.asked("DescribeLifecycleHooks") != 0 {
		t.Errorf("in half an hour: %v", w.srv.CallCounts())
	}
}

// A machine that waits for a lifecycle hook says for which, how long, and what then;
// the hook may be somebody else's.
func TestAMachineThatWaitsForAHook(t *testing.T) {
	t.Parallel()
	for _, declared := range []bool{true, false} {
		w := newWorld(t)
		pool := groupPool("web", "m5.large", 1)
		if declared {
			w.completeHooks()
			pool.Group.LifecycleHooks = []intent.LifecycleHook{{Name: "bootstrap", LifecycleTransition: "autoscaling:EC2_INSTANCE_LAUNCHING", HeartbeatTimeout: 1800, DefaultResult: "ABANDON"}}
		}
		blue := target("blue", pool)
		w.settle(blue)
		if !declared {
			_, err := autoscaling.NewFromConfig(w.sdk).PutLifecycleHook(t.Context(), &autoscaling.PutLifecycleHookInput{
				AutoScalingGroupName: aws.String(pool.Group.Name), LifecycleHookName: aws.String("bootstrap"), HeartbeatTimeout: aws.Int32(1800),
				LifecycleTransition: aws.String("autoscaling:EC2_INSTANCE_LAUNCHING"),
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		w.srv.Faults().Hooks.Replace(nil)
		w.endOne(pool.Group.Name)
		hooks := w.asked("DescribeLifecycleHooks")
		s := w.after(9, blue)
		c := s.Ready()
		if c.Reason != launch.ReasonPending || !strings.Contains(c.Message, `is in Pending:Wait until something completes the lifecycle hook "bootstrap"; from about 2026-01-02 03:3`) || !strings.Contains(c.Message, "AWS ends the machine (ABANDON)") {
			t.Errorf("declared %v: %+v", declared, c)
		}
		if n := w.asked("DescribeLifecycleHooks") - hooks; !declared && n != 1 || n > 1 {
			t.Errorf("declared %v: hooks are asked about %d times", declared, n)
		}
		if s = w.after(30, blue); s.FailureCause != "HeartbeatTimeout" || !strings.Contains(s.FailureMessage, "token … was abandoned") || !strings.Contains(s.FailureMessage, "complete-lifecycle-action") {
			t.Errorf("declared %v, once it has timed out: %+v", declared, s)
		}
	}
}

// A launch that begins to fail while a step is held is shown beside it.
func TestALaunchThatFailsBesideAHeldStep(t *testing.T) {
	w := newWorld(t)
	pool := groupPool("web", "m5.large", 1)
	w.settle(target("blue", pool))
	w.srv.Faults().Launches.Add(ec2.LaunchFault{Code: "VcpuLimitExceeded", Message: "You have requested more vCPU capacity than your current vCPU limit of 32 allows"})
	w.endOne(pool.Group.Name)
	pool.Group.MaxSize, pool.Paused = 9, true
	s := w.after(2, target("blue", pool))
	if c := s.Ready(); s.FailureReason != "launch-failed" || !strings.Contains(s.FailureMessage, "Service Quotas") || !strings.Contains(c.Message, "vCPU limit") || c.Reason != "Paused" {
		t.Errorf("%+v", s)
	}
}

// endOne ends a machine of a group behind weir's back.
func (w *world) endOne(group string) {
	w.t.Helper()
	c := autoscaling.NewFromConfig(w.sdk)
	out, err := c.DescribeAutoScalingGroups(w.t.Context(), &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{group}})
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = c.TerminateInstanceInAutoScalingGroup(w.t.Context(), &autoscaling.TerminateInstanceInAutoScalingGroupInput{
		InstanceId: out.AutoScalingGroups[0].Instances[0].InstanceId, ShouldDecrementDesiredCapacity: aws.Bool(false),
	})
	if err != nil {
		w.t.Fatal(err)
	}
}
