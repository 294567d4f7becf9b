package reconciler

import (
	"context"
	"fmt"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/lastgood"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
)

// Marks stores, for each target, the commits that weir started to apply, the commits at which the
// target converged, and the instance refreshes that weir cancelled. AWS does not record who cancelled
// a refresh.
type Marks interface {
	Begin(target string, m lastgood.Mark) error
	Reach(target string, m lastgood.Mark) error
	// Cancel adds refreshes, by the names of their groups. It removes the refreshes of groups for
	// which present returns false.
	Cancel(target string, refreshes map[string]string, present func(group string) bool) error
	Cancelled(target string) (map[string]string, error)
}

// recallCancelled loads the refreshes that weir cancelled according to the record, as another
// process may have done so.
func recallCancelled(b *Batch, m *refreshMemory, o *Options) {
	if b.Marks == nil {
		return
	}
	for i := range b.Targets {
		target := b.Targets[i].Policy.Target
		known, err := b.Marks.Cancelled(target)
		if err != nil {
			o.logger().Warn("cannot read which instance refreshes weir cancelled", "target", target, "error", err)
		}
		for _, id := range known {
			m.cancel(id)
		}
	}
}

// record stores the commits that are about to be applied, and the refreshes that are about to be
// cancelled. If that fails, the steps still run. A target may then be held to an earlier commit, or
// to none. And a later process may hold a pool that returns to the cancelled configuration.
func (ps *passState) record(context.Context) error {
	m := ps.batch.Marks
	if m == nil {
		return nil
	}
	ps.mark(func(i int, mark lastgood.Mark) error { return m.Begin(ps.targets[i].Policy.Target, mark) })
	present := func(group string) bool { _, there := ps.state.Groups[group]; return there }
	for _, r := range ps.reports {
		refreshes := cancelledBy(r.Plan)
		if len(refreshes) == 0 {
			continue
		}
		if err := m.Cancel(r.Target, refreshes, present); err != nil {
			ps.logger().Warn("cannot record which instance refreshes weir cancels", "target", r.Target, "error", err)
		}
	}
	return nil
}

// cancelledBy returns the refreshes that a plan cancels, by the names of their groups.
func cancelledBy(p *plan.Plan) map[string]string {
	out := map[string]string{}
	if p == nil {
		return out
	}
	for _, st := range p.Steps {
		if c, ok := st.Do.(step.CancelRefresh); ok && st.Held == "" {
			out[c.Group] = c.RefreshID
		}
	}
	return out
}

// recordConverged stores which targets have converged.
func (ps *passState) recordConverged() {
	m := ps.batch.Marks
	if m == nil {
		return
	}
	ps.mark(func(i int, mark lastgood.Mark) error {
		if !ps.reports[i].Converged() {
			return nil
		}
		mark.Network = model.NetworkOf(ps.targets[i].Set, ps.inputs[i].Answers)
		return m.Reach(ps.targets[i].Policy.Target, mark)
	})
}

// mark stores marks for the targets that can later be held to their commits.
func (ps *passState) mark(store func(i int, mark lastgood.Mark) error) {
	for i := range ps.targets {
		d := &ps.targets[i]
		if !d.Whole || d.Set == nil || d.Policy.Fallback != nil || d.Commit.Revision == "" || d.Rendered == "" {
			continue
		}
		if err := store(i, lastgood.Mark{Revision: d.Commit.Revision, Wants: d.Rendered}); err != nil {
			ps.logger().Warn("the last good revision cannot be recorded", "target", d.Policy.Target, "error", err)
		}
	}
}

// recordGrants records grants before their first step runs. A plan whose grant cannot be recorded
// does not run: after a crash in the middle of its steps, nothing would allow the remaining ones.
func (ps *passState) recordGrants(ctx context.Context) error {
	for i, r := range ps.reports {
		d := &ps.targets[i]
		if d.Begin == nil || r.Plan == nil || !r.Plan.Granted || !d.Policy.Gates.Grant.Exact || r.Plan.Runnable() == 0 || ctx.Err() != nil {
			continue
		}
		err := d.Begin(r.Plan)
		if err == nil {
			continue
		}
		r.Err = fmt.Errorf("record the start of the approved plan, which is required to run it: %w", err)
		r.Plan.Granted = false
		for n := range r.Plan.Steps {
			if st := &r.Plan.Steps[n]; st.Held == "" {
				st.Held, st.HeldReason = step.HeldApproval, "the approval could not be recorded as used"
				st.HeldEnds = "weir, once it can write its records"
			}
		}
	}
	return nil
}
