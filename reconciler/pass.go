package reconciler

import (
	"context"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
)

// passState is the state of one pass, from its start to its reports. Only the goroutine of the pass
// uses it. Each field below the given ones is a fact that one stage makes (see stages).
type passState struct {
	*Options
	memory *memory

	batch Batch
	mode  Mode
	// started is the time of the request for the pass. began is the end of the previous pass.
	started, began time.Time
	// reports has a report for each target of the batch. Stages complete them.
	reports []*plan.Report

	// due is the partial read that the pass starts with, nil for a full read. partial is the read that
	// the plans are based on: if a partial read is not enough, a full one follows.
	due, partial *partialRead
	// inputs has the input of planning for each target. Stages after planning complete them.
	inputs []model.Input
	// observedAt is the start of the read of AWS, and listed what it listed.
	observedAt time.Time
	listed     observed.Listed
	// plans has a plan for each target, or nil. state is the observed state that they are based on.
	plans []*plan.Plan
	state *observed.State
	// targets are the batch's targets. A target without a plan has no Set.
	targets []Desired
	// unread are the refreshes, by group, that the plans know from an earlier pass.
	unread map[string]observed.Refresh
	// settled and inService are the next content of the pools' memory.
	converged map[string]model.LastConverged
	inService map[string]time.Time
	// applier executes steps. It is nil until the pass may write.
	applier *applier
	// result holds the reports that the pass returns.
	result []*plan.Report
}

// recall takes in what earlier passes and owners have learned.
func (ps *passState) recall(context.Context) error {
	ps.due = ps.memory.reads.due(&ps.batch, ps.mode, ps.clock())
	recallAttempts(&ps.batch, &ps.memory.refusals, ps.Options)
	recallCancelled(&ps.batch, &ps.memory.refreshes, ps.Options)
	ps.Resolver.Renew(ps.batch.Fresh)
	return nil
}

// store stores what the pass learned from its steps, for later passes and for the next owner.
func (ps *passState) store(context.Context) error {
	storeAttempts(&ps.batch, &ps.memory.refusals, ps.Options)
	ps.memory.reads.keep(ps.batch.Targets, ps.reports, ps.partial, ps.state, ps.listed)
	ps.recordConverged()
	return nil
}

// finish selects the reports to return.
func (ps *passState) finish(context.Context) error {
	for _, r := range ps.reports {
		r.Duration = ps.now().Sub(ps.started)
	}
	ps.result = ps.partial.reported(ps.targets, ps.reports)
	return nil
}
