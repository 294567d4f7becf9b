package reconciler_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
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

// overtaking is a cloud in which something else is wanted once so many groups were made.
type overtaking struct {
	reconciler.Cloud
	after  *atomic.Int64
	happen func()
}

func (o overtaking) Execute(ctx context.Context, a step.Action) (step.Result, error) {
	if _, ok := a.(step.CreateGroup); ok {
		if o.after.Add(-1) == 0 {
			o.happen()
		}
	}
	return o.Cloud.Execute(ctx, a)
}

// A newer commit waits neither for the pools that a pass has not begun with, nor in the
// next pass for those that the earlier one left. All of them come about in the end.
func TestANewerCommitGoesBeforeWhatIsLeft(t *testing.T) {
	w := newWorld(t)
	w.scope.Concurrency = 2
	const n = 30
	target := fleet(n)
	overtaken := make(chan struct{})
	var after atomic.Int64
	after.Store(5)
	w.scope.Cloud = overtaking{w.scope.Cloud, &after, func() { close(overtaken) }}
	count := func() int { return w.srv.CallCounts()["autoscaling:CreateAutoScalingGroup"] }
	run := func(overtaken <-chan struct{}) {
		t.Helper()
		for _, r := range reconciler.RunBatch(t.Context(), reconciler.Batch{Scope: w.scope, Targets: []reconciler.Desired{target}, Overtaken: overtaken}, reconciler.Apply) {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			if count() < n && !reconciler.Moving(r) {
				t.Error("the next pass is not due soon")
			}
		}
		w.clock.Advance(time.Second)
	}
	run(overtaken)
	if got := count(); got < 5 || got > 8 {
		t.Fatalf("%d of %d groups were made in the pass that was overtaken", got, n)
	}
	target = fleet(n + 1)
	w.srv.ResetCalls()
	run(overtaken) // again, from its beginning: what is under way then is enough for progress
	var made []string
	for _, c := range w.srv.Calls() {
		if c.Operation == "CreateAutoScalingGroup" {
			made = append(made, c.Body)
		}
	}
	if len(made) < 2 || len(made) > 4 || !slices.ContainsFunc(made[:2], func(body string) bool { return strings.Contains(body, "p00030") }) {
		t.Errorf("the new pool is not among the first of %d: %s", len(made), made)
	}
	w.settle(target)
}
func TestPoolsThatWaitForALaneAreLeftToANewerCommit(t *testing.T) {
	w := newWorld(t)
	w.scope.Lanes = make(reconciler.Lanes) // others have all
	overtaken := make(chan struct{})
	var after atomic.Int64
	after.Store(12)
	w.scope.Cloud = overtaking{w.scope.Cloud, &after, func() { close(overtaken) }}
	for _, r := range reconciler.RunBatch(t.Context(), reconciler.Batch{Scope: w.scope, Targets: []reconciler.Desired{fleet(30)}, Overtaken: overtaken}, reconciler.Apply) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	if n := w.srv.CallCounts()["autoscaling:CreateAutoScalingGroup"]; n < 12 || n > 14 {
		t.Errorf("%d groups were made, want 12 and what was under way in the other lane", n)
	}
}
