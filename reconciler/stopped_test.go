package reconciler_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
)

// stopping is a cloud during whose calls the process is told to stop.
type stopping struct {
	reconciler.Cloud
	observing, executing func()
}

func (s stopping) Observe(ctx context.Context, q observed.Query) (observed.State, error) {
	s.observing()
	return s.Cloud.Observe(ctx, q)
}

func (s stopping) Execute(ctx context.Context, a step.Action) (step.Result, error) {
	s.executing()
	return s.Cloud.Execute(ctx, a)
}

type reports []*plan.Report

func (r *reports) Report(_ context.Context, report *plan.Report) { *r = append(*r, report) }

// A pass that is cut short before it did anything is not told as a failure; one
// that is cut short after its first step tells of that.
func TestAStopIsNoFailure(t *testing.T) {
	for name, tt := range map[string]struct {
		observing, executing bool
		steps                int
	}{
		"while AWS is read":    {observing: true},
		"while a step is done": {executing: true, steps: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			on := func(yes bool) func() {
				if yes {
					return stop
				}
				return func() {}
			}
			w.scope.Cloud = stopping{w.scope.Cloud, on(tt.observing), on(tt.executing)}
			var got reports
			loop := &reconciler.Loop{
				Desired: func(context.Context) (reconciler.Batch, error) {
					return reconciler.Batch{Scope: w.scope, Targets: []reconciler.Desired{target("blue", groupPool("web", "m5.large", 2))}}, nil
				},
				Reporter: &got, Logger: slog.New(slog.DiscardHandler), Interval: time.Hour,
			}
			if err := loop.Run(ctx); err != nil {
				t.Fatal(err)
			}
			done := 0
			for _, r := range got {
				if r.Err != nil {
					t.Errorf("told as a failure: %v", r.Err)
				}
				for _, o := range r.Outcomes {
					if o.Status == step.Failed {
						t.Errorf("a step is told as failed: %v", o.Err)
					}
					if o.Status == step.Done {
						done++
					}
				}
			}
			if done != tt.steps || len(got) != tt.steps {
				t.Errorf("%d reports with %d steps done, want %d", len(got), done, tt.steps)
			}
		})
	}
}
