package report

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan"
) // phaseOf gives the phase of a report.
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

// onlyHeld reports whether nothing continues without an approval, an open window or the like: every
// step is held, and no pool is changing by itself. A target that needs a person's attention does
// not wait in this sense either.
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

// atRest reports whether nothing of a pool is on its way in AWS. A pool that does
// not exist is without instances, and none is on its way.
func atRest(p *plan.PoolStatus) bool {
	if p.Rollout != nil || p.Nodegroup != nil && slices.Contains([]string{"CREATING", "UPDATING", "DELETING"}, p.Nodegroup.Status) {
		return false
	}
	return p.ReadyReplicas == p.DesiredReplicas || !p.InfrastructureReady && p.Replicas == 0
}

// PoolID names a pool of a target.
type PoolID struct{ Namespace, Name string }

// PoolSteps holds the pools with a held step, and the pools with a free one.
type PoolSteps struct{ Held, free map[PoolID]bool }

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

// MarkOf gives a pool's mark, from the marks for targets. A pool that is not known
// any more is never called converged.
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

// Target phases, those that need attention first.
const (
	Failing   Phase = "failing"   // an error in the files, the plan, or a step
	Moving    Phase = "moving"    // steps were done or something is on its way
	Waiting   Phase = "waiting"   // no pass yet
	Held      Phase = "held"      // every step waits for an approval, a window or its turn
	Suspended Phase = "suspended" // planned, never written
	Converged Phase = "converged" // AWS matches Git
)

func PoolKey(p plan.PoolStatus) string { return p.Namespace + "/" + p.Name }
