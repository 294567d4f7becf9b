package status

import (
	"context"

	"github.com/weir-gitops/weir/reconciler/plan"
)

// Sink is told what a pass did and found. Report must not block on anything
// outside the process and must not change r.
type Sink interface {
	Report(ctx context.Context, r *plan.Report)
}

// Sinks hands each report to every sink, in order.
type Sinks []Sink

// Report hands r to every sink.
func (s Sinks) Report(ctx context.Context, r *plan.Report) {
	for _, sink := range s {
		sink.Report(ctx, r)
	}
}
