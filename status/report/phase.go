package report

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan"
)

// PhaseOf returns the phase of a report.
func PhaseOf(r *plan.Report) Phase {
	switch {
	case r == nil:
		return Waiting
	case r.Err != nil || r.Diagnostics.HasErrors() || len(r.Failures()) > 0:
		return Failing
	case r.Converged():
		return Converged
	case r.Suspended:
		return Suspended
	case onlyHeld(r):
		return Held
	default:
		return Moving
	}
}

// onlyHeld reports whether the target can continue only after an approval, in an open window or the like:
// every step is held, and no pool is changing by itself. It returns false if the target needs a person's
// attention.
func onlyHeld(r *plan.Report) bool {
	if r.Plan == nil || r.Plan.Runnable() > 0 {
		return false
	}
	if r.Plan.Empty() && !slices.ContainsFunc(r.Pools, func(p plan.PoolStatus) bool { return p.Rests() }) {
		return false
	}
	steps := StepsByPool(r)
	return !slices.ContainsFunc(r.Pools, func(p plan.PoolStatus) bool {
		return !p.Converged && (!atRest(&p) || !p.Rests() && !steps.Held[PoolID{p.Namespace, p.Name}])
	})
}

// atRest reports whether AWS is changing nothing of a pool. A pool that does not exist has no instances, so
// nothing is changing.
func atRest(p *plan.PoolStatus) bool {
	if p.Rollout != nil || p.Nodegroup != nil && slices.Contains([]string{"CREATING", "UPDATING", "DELETING"}, p.Nodegroup.Status) {
		return false
	}
	return p.ReadyReplicas == p.DesiredReplicas || !p.InfrastructureReady && p.Replicas == 0
}

// PoolID names a pool of a target.
type PoolID struct{ Namespace, Name string }

// PoolSteps contains the pools with a held step, and the pools with a step that can run.
type PoolSteps struct{ Held, free map[PoolID]bool }

// StepsByPool sorts the pools of a plan by whether their steps are held. A pool can be in both sets. r may
// be nil.
func StepsByPool(r *plan.Report) PoolSteps {
	if r == nil || r.Plan == nil || r.Plan.Empty() {
		return PoolSteps{}
	}
	out := PoolSteps{map[PoolID]bool{}, map[PoolID]bool{}}
	for _, s := range r.Plan.Steps {
		of := out.free
		if s.Held != "" {
			of = out.Held
		}
		for _, pool := range append([]string{s.Pool}, s.Pools...) {
			namespace, name, _ := strings.Cut(pool, "/")
			of[PoolID{namespace, name}] = true
		}
	}
	return out
}

// MarkOf returns the phase that the page shows for a pool. A pool whose current state is unknown (stale) is
// never shown as converged.
func MarkOf(p *plan.PoolStatus, steps PoolSteps, stale bool) Phase {
	id := PoolID{p.Namespace, p.Name}
	switch {
	case p.Phase == plan.PhaseFailed || p.FailureReason != "":
		return Failing
	case stale:
		return Waiting
	case p.Converged:
		return Converged
	case p.Rollout == nil && slices.ContainsFunc(p.Conditions, func(c plan.Condition) bool { return c.Type == "Paused" && c.Status == "True" }):
		return Suspended
	case (p.Rests() || steps.Held[id]) && !steps.free[id] && atRest(p):
		return Held
	case p.Phase == plan.PhasePending || p.Phase == plan.PhaseUnknown || p.Phase == "":
		return Waiting
	default:
		return Moving
	}
}

// Phase is the state of a target.
type Phase string

// The phases of a target, the ones that need attention first.
const (
	Failing   Phase = "failing"   // an error in the files, the plan, or a step
	Moving    Phase = "moving"    // steps were executed, or AWS is changing something
	Waiting   Phase = "waiting"   // no pass yet
	Held      Phase = "held"      // every step waits for an approval, a window or its turn
	Suspended Phase = "suspended" // planned, but nothing is written
	Converged Phase = "converged" // AWS matches Git
)

func PoolKey(p plan.PoolStatus) string { return p.Namespace + "/" + p.Name }
