package status

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
)

// phaseOf puts a report into one word.
func phaseOf(r *plan.Report) TargetPhase {
	switch {
	case r == nil:
		return TargetWaiting
	case r.Err != nil || r.Diagnostics.HasErrors() || len(r.Failures()) > 0:
		return TargetFailing
	case r.Converged():
		return TargetConverged
	case r.Suspended:
		return TargetSuspended
	case onlyHeld(r):
		return TargetHeld
	default:
		return TargetMoving
	}
}

// onlyHeld reports whether nothing goes on until somebody approves, a window opens
// or the like: every step is held, and no pool moves by itself. Nor does one at which
// somebody has to look.
func onlyHeld(r *plan.Report) bool {
	if r.Plan == nil || r.Plan.Runnable() > 0 {
		return false
	}
	if r.Plan.Empty() && !slices.ContainsFunc(r.Pools, func(p plan.PoolStatus) bool { return p.Rests() }) {
		return false
	}
	steps := stepsByPool(r)
	return !slices.ContainsFunc(r.Pools, func(p plan.PoolStatus) bool {
		return !p.Converged && (!atRest(&p) || !p.Rests() && !steps.held[poolID{p.Namespace, p.Name}])
	})
}

// atRest reports whether nothing of a pool is on its way in AWS. What does not exist
// has no instance, and none is on its way to it.
func atRest(p *plan.PoolStatus) bool {
	if p.Rollout != nil || p.Nodegroup != nil && slices.Contains([]string{"CREATING", "UPDATING", "DELETING"}, p.Nodegroup.Status) {
		return false
	}
	return p.ReadyReplicas == p.DesiredReplicas || !p.InfrastructureReady && p.Replicas == 0
}

// stale reports whether the last pass could not tell how the pools are.
func (t *TargetState) stale() bool {
	return t.Last != nil && t.Last.Plan == nil && len(t.Last.Pools) == 0 && len(t.Pools) > 0
}

type poolID struct{ namespace, name string }

// poolSteps are the pools of which a step is held, and those of which one is not.
type poolSteps struct{ held, free map[poolID]bool }

func stepsByPool(r *plan.Report) poolSteps {
	if r == nil || r.Plan == nil || r.Plan.Empty() {
		return poolSteps{}
	}
	out := poolSteps{map[poolID]bool{}, map[poolID]bool{}}
	for _, s := range r.Plan.Steps {
		of := out.free
		if s.Held != "" {
			of = out.held
		}
		for _, pool := range append([]string{s.Pool}, s.Pools...) {
			namespace, name, _ := strings.Cut(pool, "/")
			of[poolID{namespace, name}] = true
		}
	}
	return out
}

// poolMark is how a pool stands, in one of the words for targets. What is not known
// any more is never called converged.
func poolMark(p *plan.PoolStatus, steps poolSteps, stale bool) TargetPhase {
	id := poolID{p.Namespace, p.Name}
	switch {
	case p.Phase == plan.PhaseFailed || p.FailureReason != "":
		return TargetFailing
	case stale:
		return TargetWaiting
	case p.Converged:
		return TargetConverged
	case p.Rollout == nil && slices.ContainsFunc(p.Conditions, func(c plan.Condition) bool { return c.Type == "Paused" && c.Status == "True" }):
		return TargetSuspended
	case (p.Rests() || steps.held[id]) && !steps.free[id] && atRest(p):
		return TargetHeld
	case p.Phase == plan.PhasePending || p.Phase == plan.PhaseUnknown || p.Phase == "":
		return TargetWaiting
	default:
		return TargetMoving
	}
}

// holdView is what steps of a target's plan wait for.
type holdView struct {
	Words string
	// Plan leads to the plan, and Digest is what is approved; both are empty where
	// no approval is waited for.
	Plan, Digest string
}

// holdViews say what held steps wait for, one line for each hold. A conflict is told
// by its diagnostic.
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
		n, why := len(steps[hold]), string(hold)
		if reason := steps[hold][0].HeldReason; reason != "" {
			why += ", " + reason
		}
		out = append(out, holdView{Words: count(n, "step") + " " + verb(n, "is", "are") + " held: " + why})
	}
	return out
}

// slowViews say what of weir's own a target waits for.
func slowViews(t *TargetState) (out []holdView) {
	const clock = "15:04:05 MST"
	if r := t.Rendering; !r.Since.IsZero() {
		out = append(out, holdView{Words: "commit " + short(r.Revision) + " is being rendered since " + r.Since.UTC().Format(clock)})
	}
	if !t.Unanswered.IsZero() {
		out = append(out, holdView{Words: "AWS has not answered since " + t.Unanswered.UTC().Format(clock)})
	}
	return out
}

// awaitsApproval reports whether somebody has to approve a target's plan.
func awaitsApproval(t *TargetState) bool {
	return t.Last != nil && t.Last.Plan != nil && slices.ContainsFunc(t.Last.Plan.Steps, func(s step.Step) bool {
		return s.Held == step.HeldApproval || s.Held == step.HeldPruneLimit
	})
}
