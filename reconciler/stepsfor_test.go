package reconciler_test

import (
	"context"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
)

// A pass that AWS slows down leaves pools to the next one, whole, and none twice.
func TestAPassLeavesToTheNextOneWhatItDoesNotComeTo(t *testing.T) {
	w := newWorld(t)
	w.scope.Concurrency, w.scope.StepsFor = 1, 30*time.Second
	w.srv.Faults().Add(awsemu.Fault{Kind: awsemu.Slow, Operation: "CreateAutoScalingGroup", Delay: 10 * time.Second, OnClock: true, Times: -1})
	const n = 10
	target := fleet(n)
	count := func(r *plan.Report, status step.OutcomeStatus) (pools int) {
		seen := map[string]bool{}
		for _, o := range r.Outcomes {
			if o.Status == status {
				seen[o.Step.Pool] = true
			}
		}
		return len(seen)
	}
	first := w.must(reconciler.Apply, target)[0]
	if done, left := count(first, step.Done), count(first, step.Skipped); done != 4 || left != n-4 {
		t.Fatalf("%d pools done, %d left", done, left)
	}
	if !reconciler.Moving(first) {
		t.Error("the next pass is not due soon")
	}
	w.settle(target)
	if got := w.srv.CallCounts()["autoscaling:CreateAutoScalingGroup"]; got != n {
		t.Errorf("%d groups were made of %d", got, n)
	}
	// A single apply does all.
	w = newWorld(t)
	w.srv.Faults().Add(awsemu.Fault{Kind: awsemu.Slow, Operation: "CreateAutoScalingGroup", Delay: 10 * time.Second, OnClock: true, Times: -1})
	if r := w.must(reconciler.Apply, target)[0]; count(r, step.Done) != n {
		t.Errorf("%d pools done of %d", count(r, step.Done), n)
	}
}

// hanging is a cloud that does not answer for one launch template.
type hanging struct {
	reconciler.Cloud
	name  string
	clock *awsemu.ManualClock
}

func (h hanging) Execute(ctx context.Context, a step.Action) (step.Result, error) {
	if c, ok := a.(step.CreateLaunchTemplate); ok && c.Name == h.name {
		h.clock.Advance(time.Minute)
		return step.Result{}, &observed.Error{Kind: observed.Transient, Service: "ec2", Operation: "CreateLaunchTemplate", Code: "ConnectionFailed"}
	}
	return h.Cloud.Execute(ctx, a)
}

// A pool whose calls hang in each pass does not keep the others waiting for ever.
func TestAPoolThatHangsLetsOthersGoFirst(t *testing.T) {
	w := newWorld(t)
	w.scope.Concurrency, w.scope.StepsFor = 1, 30*time.Second
	w.scope.Cloud = hanging{w.scope.Cloud, "p00000", w.clock}
	target := fleet(5)
	for range 2 {
		if _, err := w.pass(reconciler.Apply, target); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.srv.CallCounts()["autoscaling:CreateAutoScalingGroup"]; n != 4 {
		t.Errorf("%d groups were made beside the one that hangs, want 4", n)
	}
}
