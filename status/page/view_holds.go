package page

import (
	"slices"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/board"
	"github.com/weir-gitops/weir/status/wording"
)

// holdView is what steps of a target's plan wait for.
type holdView struct {
	Words string
	// Plan leads to the plan, and Digest names the plan to approve; both are empty
	// where nothing waits for approval.
	Plan, Digest string
}

// holdViews say what held steps wait for, one line for each hold. Its diagnostic
// describes a conflict.
func holdViews(r *plan.Report, target string) []holdView {
	if r == nil || r.Plan == nil {
		return nil
	}
	var order []step.Hold
	steps := map[step.Hold][]step.Step{}
	for _, s := range r.Plan.Steps {
		switch hold := s.Held; hold {
		case "", step.HeldConflict:
		default:
			if hold == step.HeldPruneLimit {
				hold = step.HeldApproval
			}
			if steps[hold] == nil {
				order = append(order, hold)
			}
			steps[hold] = append(steps[hold], s)
		}
	}
	var out []holdView
	for _, hold := range order {
		if hold == step.HeldApproval {
			out = append(out, holdView{Words: "The plan waits for an approval.", Plan: targetLink(target) + "/plan", Digest: r.Plan.Digest()})
			continue
		}
		out = append(out, holdView{Words: wording.Waiting(len(steps[hold]), hold, steps[hold][0].HeldReason)})
	}
	return out
}

func slowViews(t *board.TargetState) (out []holdView) {
	for _, words := range board.SlowWords(t) {
		out = append(out, holdView{Words: words})
	}
	return out
}

// awaitsApproval reports whether a target's plan waits for approval.
func awaitsApproval(t *board.TargetState) bool {
	return t.Last != nil && t.Last.Plan != nil && slices.ContainsFunc(t.Last.Plan.Steps, func(s step.Step) bool {
		return s.Held == step.HeldApproval || s.Held == step.HeldPruneLimit
	})
}
