package reconciler

import (
	"context"
	"fmt"
	"slices"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
)

// authorize runs BeforeWrite. If that fails, the pass fails. Then it makes the applier, without
// which the pass cannot write to AWS. It also forgets remembered writes that the plans no longer
// require, because AWS has kept them, and records the planned commits.
func (ps *passState) authorize(context.Context) error {
	if err := ps.batch.checkBeforeWrite(ps.state); err != nil {
		return err
	}
	ps.applier = &applier{Options: ps.Options, memory: ps.memory, checks: newPreconditions(ps.state, ps.observedAt, ps.targets), unread: ps.unread}
	for _, r := range ps.reports {
		if r.Plan != nil {
			ps.memory.refusals.Taken(r.Target, r.Plan.Steps, plan.Unclear(r.Pools))
		}
	}
	ps.memory.planned.update(ps.reports)
	return nil
}

// checkBeforeWrite calls BeforeWrite, unless the pass would write nothing anyway.
func (b *Batch) checkBeforeWrite(state *observed.State) error {
	i := slices.IndexFunc(b.Targets, func(d Desired) bool { return d.Set != nil && !d.Policy.Suspended })
	if b.BeforeWrite == nil || i < 0 {
		return nil
	}
	if err := b.BeforeWrite(hasInstance(state, b.Targets[i].Policy.Instance)); err != nil {
		return fmt.Errorf("nothing is written: %w", err)
	}
	return nil
}

// hasInstance reports whether any observed resource belongs to the instance.
func hasInstance(state *observed.State, instance string) bool {
	for _, t := range state.Templates {
		if t.Tags[observed.TagOwner] == instance {
			return true
		}
	}
	for _, g := range state.Groups {
		if g.Tags[observed.TagOwner].Value == instance {
			return true
		}
	}
	for _, n := range state.Nodegroups {
		if n.Tags[observed.TagOwner] == instance {
			return true
		}
	}
	return false
}
