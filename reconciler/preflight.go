package reconciler

import (
	"context"
	"slices"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/preflight"
	"github.com/weir-gitops/weir/reconciler/span"
)

// check finds out what AWS would refuse in the plans, and which disruption budgets block a rollout.
// It holds the steps that end machines of pools that could start no new machine.
func (ps *passState) check(ctx context.Context) error {
	addBudgets := ps.readBudgets(ctx)
	hold := ps.preflight(ctx)
	addBudgets()
	hold()
	return nil
}

// preflight asks AWS what it would refuse in the plans, and adds that to their diagnostics. It sends
// nothing for plans without steps. It returns a function that holds the steps that end machines of
// pools that could start no new machine. The caller runs hold last, because other checks of the plans
// skip steps that are held.
func (ps *passState) preflight(ctx context.Context) (hold func()) {
	plans := ps.plans
	if ps.Preflight == nil || !slices.ContainsFunc(plans, func(p *plan.Plan) bool { return p != nil && len(p.Steps) > 0 }) {
		return func() {}
	}
	asked := make([]preflight.Request, len(plans))
	for i, p := range plans {
		t := &ps.targets[i]
		if t.Policy.Adoption.Asked {
			continue // only tags change
		}
		asked[i] = preflight.Request{Plan: p, Input: ps.inputs[i], Followed: !t.Proposed && !t.Policy.ReportOnly && !t.Policy.Suspended}
	}
	ctx, sp := span.Start(ctx, "preflight")
	answers := ps.Preflight.Ask(ctx, asked)
	for i, a := range answers {
		if len(a.Findings) > 0 {
			plans[i].Diagnostics = append(plans[i].Diagnostics, a.Findings...)
		}
	}
	span.End(sp, nil)
	return func() {
		for i, a := range answers {
			if len(a.Refused) > 0 {
				plans[i].HoldRefused(a.Refused, ps.targets[i].Policy)
			}
		}
	}
}
