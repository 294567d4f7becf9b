package reconciler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/plan"
)

// A pool whose machines AWS cannot launch says why, in AWS's words, and asks AWS at
// most once a minute, then ever more rarely; one that comes up asks nothing.
func TestWhyMachinesDoNotCome(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", groupPool("fine", "m5.large", 2)))
	w.srv.Faults().AddLaunch(awsemu.LaunchFault{InstanceType: "m5.xlarge", Code: "InsufficientInstanceCapacity", Message: "We currently do not have sufficient m5.xlarge capacity in the Availability Zone you requested"})
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

// Who may not ask is not asking at each pass.
func TestAQuestionThatIsRefusedIsNotRepeated(t *testing.T) {
	w := newWorld(t)
	w.srv.Faults().AddLaunch(awsemu.LaunchFault{Code: "InsufficientInstanceCapacity"})
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
	w.srv.Faults().AddLaunch(awsemu.LaunchFault{Code: "InsufficientInstanceCapacity", Message: "There is no Spot capacity available that matches your request"})
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
