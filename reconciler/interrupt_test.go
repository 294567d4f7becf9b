package reconciler_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
)

// told hands reports to a test.
type told chan *plan.Report

func (c told) Report(_ context.Context, r *plan.Report) { c <- r }

// An interrupted pass finishes the call in flight, does no further step, and the next
// one begins at once, with what is wanted then.
func TestAnInterruptedPassEndsBetweenTwoCalls(t *testing.T) {
	w := newWorld(t)
	called, answer := make(chan struct{}, 1), make(chan struct{})
	var calls atomic.Int32
	w.scope.Cloud = stopping{w.scope.Cloud, func() {}, func() {
		if calls.Add(1) == 1 {
			called <- struct{}{}
			<-answer
		}
	}}
	w.scope.Concurrency = 1
	want := []reconciler.Desired{target("blue", groupPool("web", "m5.large", 2), groupPool("api", "m5.large", 2))}
	var wanted atomic.Pointer[[]reconciler.Desired]
	wanted.Store(&want)
	got := make(told, 8)
	loop := &reconciler.Loop{
		Desired: func(context.Context) (reconciler.Batch, error) {
			return reconciler.Batch{Scope: w.scope, Targets: *wanted.Load()}, nil
		},
		Reporter: got, Logger: slog.New(slog.DiscardHandler), Interval: time.Hour, MovingDelay: time.Hour,
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- loop.Run(ctx) }()
	<-called
	if loop.Began().IsZero() {
		t.Error("no pass is under way")
	}
	next := []reconciler.Desired{target("blue", groupPool("api", "m5.large", 2))}
	wanted.Store(&next)
	loop.Interrupt()
	close(answer)
	first, second := <-got, <-got
	if n := statuses(first); n[step.Done] != 1 || n[step.Failed] != 0 {
		t.Errorf("the first pass: %v", n)
	}
	if second.Plan == nil || len(second.Pools) != 1 || statuses(second)[step.Failed] != 0 {
		t.Errorf("the second pass: %+v", second)
	}
	stop()
	if err := <-ended; err != nil || !loop.Began().IsZero() {
		t.Errorf("ended with %v, a pass of %s", err, loop.Began())
	}
}

func statuses(r *plan.Report) map[step.OutcomeStatus]int {
	n := map[step.OutcomeStatus]int{}
	for _, o := range r.Outcomes {
		n[o.Status]++
	}
	return n
}

// A pass whose turn does not come waits no longer than it may.
func TestAPassWaitsForTheOneBeforeAsLongAsItMay(t *testing.T) {
	w := newWorld(t)
	called, answer := make(chan struct{}), make(chan struct{})
	var calls atomic.Int32
	w.scope.Cloud = stopping{w.scope.Cloud, func() {
		if calls.Add(1) == 1 {
			close(called)
			<-answer
		}
	}, func() {}}
	wanted := []reconciler.Desired{target("t", groupPool("a", "m5.large", 1))}
	done := make(chan error, 1)
	go func() {
		_, err := w.scope.Pass(context.Background(), wanted, reconciler.PlanOnly)
		done <- err
	}()
	<-called
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if reports, err := w.scope.Pass(ctx, wanted, reconciler.PlanOnly); !errors.Is(err, context.DeadlineExceeded) || len(reports) != 1 {
		t.Errorf("%d reports, %v", len(reports), err)
	}
	close(answer)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
