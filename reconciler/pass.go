package reconciler

import (
	"context"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
)

// passState is the state of one pass, from its start to its reports. Only the goroutine of the pass
// uses it. Each field after reports is a fact that one stage makes (see stages).
type passState struct {
	*Options
	memory *memory

	batch Batch
	mode  Mode
	// started is the time of the request for the pass. began is the time after the previous pass
	// had ended.
	started, began time.Time
	// reports contains a report for each target of the batch. Stages complete them.
	reports []*plan.Report

	// due is the partial read with which the pass starts, nil for a full read. partial is the read
	// on which the plans are based: if a partial read is not enough, a full read follows.
	due, partial *partialRead
	// inputs contains the input of planning for each target. Stages after planning complete them.
	inputs []model.Input
	// observedAt is the start of the read of AWS. listed contains the groups and templates that it
	// listed.
	observedAt time.Time
	listed     observed.Listed
	// plans contains a plan for each target, or nil. state is the observed state on which they are
	// based.
	plans []*plan.Plan
	state *observed.State
	// targets are the batch's targets. A target without a plan has no Set.
	targets []Desired
	// unread maps groups to refreshes that the plans use from an earlier pass.
	unread map[string]observed.Refresh
	// converged and inService are the next content of the pools' memory.
	converged map[string]model.LastConverged
	inService map[string]time.Time
	// applier executes steps. It is nil until the pass may write.
	applier *applier
	// result contains the reports that the pass returns.
	result []*plan.Report
}

// recall loads the records of earlier passes and owners.
func (ps *passState) recall(context.Context) error {
	ps.due = ps.memory.reads.due(&ps.batch, ps.mode, ps.clock())
	recallAttempts(&ps.batch, &ps.memory.refusals, ps.Options)
	recallCancelled(&ps.batch, &ps.memory.refreshes, ps.Options)
	ps.Resolver.Renew(ps.batch.Fresh)
	return nil
}

// store stores the results of the pass's steps, for later passes and for the next owner.
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
