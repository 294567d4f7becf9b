package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
)

// Standing is the state of a target after a pass, for the targets that wait for it.
type Standing struct {
	// Seen reports whether there was a pass.
	Seen   bool
	Source string
	// Ground is the basis of the last pass. Reached is the basis of the last pass in which the
	// target had converged.
	Ground, Reached Ground
	// Converged reports whether AWS matches Ground. Failing reports whether something is wrong.
	// Resting reports whether no step is left and no rollout is in progress. The size of a group
	// may still be changing.
	Converged, Failing, Resting bool
	// Why explains briefly why the target has not converged, and who can end that.
	Why string
	// Held is the hold on the first of its held steps.
	Held step.Hold

	// behind reports whether a pool follows images and has not moved to the newest yet. A later
	// pass does that, after the reviewed steps.
	behind          bool
	account, region string
	fresh           time.Time
}

// Ground is the basis of a pass over a target.
type Ground struct {
	Revision string
	// Seq distinguishes two times at which the source arrived at the same revision. What was
	// applied between them may not be undone yet.
	Seq int64
	// Wanted identifies the desired state in Git and the configuration, like Desired.Wanted.
	Wanted string
	// Levels are AWS's answers, which change without a commit.
	Levels []model.Level
}

func (g Ground) is(o Ground) bool {
	return g.Revision == o.Revision && g.Seq == o.Seq && g.Wanted == o.Wanted && slices.EqualFunc(g.Levels, o.Levels, func(a, b model.Level) bool { return a.ID == b.ID })
}

// After returns the state of the target after another pass.
func (s Standing) After(r *Report) Standing {
	next := Standing{
		Seen: true, Source: r.Source, Ground: Ground{Revision: r.Revision, Seq: r.Seq, Wanted: r.Wanted, Levels: r.Levels}, Reached: s.Reached, Converged: r.Converged(),
		account: r.Account, region: r.Region, fresh: s.fresh,
	}
	if r.Fresh.After(s.fresh) {
		next.fresh = r.Fresh // answers never become older
	}
	rolling := slices.ContainsFunc(r.Pools, func(p PoolStatus) bool { return p.Rollout != nil })
	next.Failing = r.Err != nil || r.Diagnostics.HasErrors() || len(r.Failures()) > 0
	next.Resting = r.Plan != nil && r.Plan.Empty() && !rolling && !next.Failing
	next.behind = r.Plan != nil && r.Plan.behind()
	if next.Converged && !next.behind {
		next.Reached = next.Ground
	}
	switch {
	case next.Converged && next.behind:
		next.Why = "has not yet moved to a newer image that it follows"
	case next.Converged:
	case next.Failing:
		next.Why = "failed: " + firstTrouble(r)
	case r.Plan == nil:
		next.Why = "has no plan"
	case r.ReportOnly && !r.Plan.Empty():
		next.Why = "is in report mode: it changes nothing until its configuration sets mode: correct"
	case rolling:
		next.Why = "rolls out"
	case r.Plan.Runnable() < len(r.Plan.Steps):
		next.Held, next.Why = heldWhy(r)
	default:
		next.Why = "has not converged yet"
		if i := slices.IndexFunc(r.Pools, func(p PoolStatus) bool { return p.Rests() }); i >= 0 {
			next.Why += ": " + r.Pools[i].Namespace + "/" + r.Pools[i].Name + ": " + r.Pools[i].Ready().Message
		}
	}
	return next
}

// Lets reports whether the targets that depend on this one may go on. Once it has converged, a
// group that grows or shrinks does not stop them. A new step, a rollout, a failure or another
// ground does.
func (s Standing) Lets() bool {
	return !s.behind && (s.Converged || s.Resting && s.Reached.is(s.Ground))
}

// Opens reports whether the targets that depend on this one may do more than in the state old.
func (s Standing) Opens(old Standing) bool {
	return s.Lets() && (!old.Lets() || !old.Ground.is(s.Ground) || s.fresh.After(old.fresh))
}

// Earlier returns the view of the target for the targets that depend on it.
func (s Standing) Earlier(target string) model.Earlier {
	return model.Earlier{Target: target, Account: s.account, Region: s.region, Levels: s.Ground.Levels, Fresh: s.fresh}
}

// heldWhy returns the hold of the target, and who can end it.
func heldWhy(r *Report) (step.Hold, string) {
	i := slices.IndexFunc(r.Plan.Steps, func(s step.Step) bool { return s.Held != "" })
	s := r.Plan.Steps[i]
	text := "is held (" + string(s.Held) + ")"
	if s.HeldReason != "" {
		text += ": " + s.HeldReason
	}
	switch {
	case s.Held == step.HeldSuspended && s.HeldReason == "":
		text += ": by its configuration"
	case s.Held == step.HeldPaused:
		text += ": the pool " + s.Pool + ", until a commit removes the pause"
	}
	return s.Held, text
}

// triedAgain lists the faults of pools that weir does not retry until somebody requests it.
var triedAgain = []string{"rollout-failed", "rollout-cancelled", "rollout-contested", "nodegroup-update-failed"}

// firstTrouble returns the first failure, by its code if any, and who can end it. It is about
// another target, whose own report has all details.
func firstTrouble(r *Report) string {
	if f := r.Failures(); len(f) > 0 && f[0].Err != nil {
		text := f[0].Err.Operation + ": " + f[0].Err.Code
		if owner := f[0].Step.Owner(); owner != "" {
			text += " for " + owner
		}
		if f[0].Parked {
			text += "; released by: a commit that changes it, or weir reconcile " + r.Target + " --retry"
		}
		return text
	}
	for _, d := range r.Diagnostics {
		if d.Severity != diag.Error {
			continue
		}
		text := d.Code
		if d.Object != "" {
			text += " for " + d.Object
		}
		switch {
		case r.Plan == nil, r.Fallback != nil:
			text += "; released by: a commit that fixes it"
		case slices.Contains(triedAgain, d.Code):
			text += "; released by: a commit that changes the pool, or weir reconcile " + r.Target + " --retry"
		}
		return text
	}
	if r.Err != nil {
		return "its source or its account cannot be reached"
	}
	return ""
}

// WaitFor explains why a target that follows a revision of a source waits for target on with the
// state s. It is empty if the target does not wait. A target of the same source must have converged
// at the same revision, and a target of another source at its own. Its last pass must also use its
// current desired state (wanted, at seq or later).
func WaitFor(source, revision, on, wanted string, seq int64, s Standing) string {
	switch {
	case !s.Seen:
		return WaitText(on, "has not been observed yet")
	case s.Source == source && s.Ground.Revision != revision:
		return WaitText(on, "is not at "+cmp.Or(rollout.ShortRevision(revision), "this revision")+" yet")
	case s.Ground.Wanted != wanted || s.Ground.Seq < seq:
		return WaitText(on, "has not been observed since its desired state changed")
	case s.Lets():
		return ""
	}
	return WaitText(on, s.Why)
}

// WaitText returns the text that a target waits for another one, with the reason.
func WaitText(target, why string) string { return "waits for the target " + target + ", which " + why }

// Await holds all steps that are not held yet, because an earlier target comes first. It is for
// plans that are shown before the state of that target is available.
func (p *Plan) Await(why string) {
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Held == "" {
			s.Held, s.HeldReason, s.HeldEnds = step.HeldWave, why, model.EarlierEnds
		}
	}
}
