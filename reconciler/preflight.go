package reconciler

import (
	"context"
	"slices"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/preflight"
	"github.com/weir-gitops/weir/reconciler/span"
)

// preflight adds to plans with changes what AWS would refuse of them. It changes no step,
// and plans without steps ask nothing.
func (s *Scope) preflight(ctx context.Context, targets []Desired, inputs []basis.Input, plans []*plan.Plan) {
	if s.Preflight == nil || !slices.ContainsFunc(plans, func(p *plan.Plan) bool { return p != nil && len(p.Steps) > 0 }) {
		return
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
	for i, found := range s.Preflight.Findings(ctx, asked) {
		if len(found) > 0 {
			plans[i].Diagnostics = append(plans[i].Diagnostics, found...)
		}
	}
	span.End(sp, nil)
}
