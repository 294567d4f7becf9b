package reconciler

import (
	"context"
	"slices"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/preflight"
	"github.com/weir-gitops/weir/reconciler/span"
)

// preflight adds to plans with changes what AWS would refuse of them. It asks nothing for plans
// without steps. It returns a function that holds the steps of pools that can start no new machine.
// The caller runs it only once nobody reads the plans' steps.
func (s *Scope) preflight(ctx context.Context, targets []Desired, inputs []basis.Input, plans []*plan.Plan) (hold func()) {
	if s.Preflight == nil || !slices.ContainsFunc(plans, func(p *plan.Plan) bool { return p != nil && len(p.Steps) > 0 }) {
		return func() {}
	}
	asked := make([]preflight.Plan, len(plans))
	for i, p := range plans {
		t := &targets[i]
		if t.Policy.Adoption.Asked {
			continue // only tags change
		}
		asked[i] = preflight.Plan{Plan: p, Input: inputs[i], Followed: !t.Proposed && !t.Policy.ReportOnly && !t.Policy.Suspended}
	}
	ctx, sp := span.Start(ctx, "preflight")
	answers := s.Preflight.Ask(ctx, asked)
	for i, a := range answers {
		if len(a.Findings) > 0 {
			plans[i].Diagnostics = append(plans[i].Diagnostics, a.Findings...)
		}
	}
	span.End(sp, nil)
	return func() {
		for i, a := range answers {
			if len(a.Refused) > 0 {
				plans[i].HoldRefused(a.Refused, targets[i].Policy)
			}
		}
	}
}
