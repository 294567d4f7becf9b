package commits

import (
	"slices"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/wording"
)

// keptText describes the hold of a target whose commit cannot be rendered. It comes before the fault, which
// may be long.
func keptText(r *plan.Report) string {
	switch h := r.Fallback; {
	case h == nil || h.Passing():
		return ""
	case h.To() == "":
		return "only observed: "
	default:
		return "held to " + wording.Short(h.To()) + ": "
	}
}

// heldState returns the verdict on held steps. The state is empty if only paused pools are held.
func heldState(r *plan.Report) (forge.CommitState, string) {
	waits := wording.WaitsOf(r.Target, r.Plan.Steps)
	for _, h := range heldOrder {
		i := slices.IndexFunc(waits, func(w wording.Wait) bool { return w.Hold == h })
		if i < 0 {
			continue
		}
		switch h {
		case step.HeldConflict: // reported as a fault first
			s := waits[i].Steps[0]
			return forge.Failure, "conflict: " + string(s.Resource) + " " + s.Name + ": " + s.Reason
		case step.HeldPruneLimit:
			return forge.Failure, "prune refused: " + waits[i].Text()
		}
		return forge.Pending, waits[i].Text()
	}
	if r.Suspended && len(r.Plan.Steps) > 0 {
		return forge.Pending, wording.Wait{Hold: step.HeldSuspended, Steps: r.Plan.Steps}.Text()
	}
	return "", ""
}

// heldOrder lists the holds that a status reports. The first one present is reported: holds that fail the
// commit, then holds that people can end, then all others. A pause and a stop are reported differently.
var heldOrder = []step.Hold{
	step.HeldConflict, step.HeldPruneLimit, step.HeldSuspended, step.HeldApproval, step.HeldPreflight, step.HeldPolicy, step.HeldGate, step.HeldWave, step.HeldWindow, step.HeldRolloutLimit,
	step.HeldControlPlane, step.HeldWaiting,
}
