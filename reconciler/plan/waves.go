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
	// Seen says that there was a pass.
	Seen   bool
	Source string
	// Ground is the basis of the pass, Reached its basis when the target was last seen
	// converged.
	Ground, Reached Ground
	// Converged says that AWS matches the ground; Failing that something is wrong;
	// Resting that nothing is left to do and nothing rolls, though the size of a group
	// may be on its way.
	Converged, Failing, Resting bool
	// Why says briefly why it has not converged, and who can end that.
	Why string
	// Held is the hold on the first of its held steps.
	Held step.Hold

	// behind says that a pool follows images and is yet to move to the newest: a later
	// pass does that, after the reviewed steps.
	behind          bool
	account, region string
	fresh           time.Time
}

// Ground is the basis of a pass over a target.
type Ground struct {
	Revision string
	// Seq tells two times apart at which the source came to one revision: what was applied
	// between them need not be undone yet.
	Seq int64
	// Wanted identifies what Git and the configuration want, like Desired.Wanted.
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
		next.fresh = r.Fresh // what was asked once is never again of before that
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

// Lets reports whether those that come after the target may go on. Once it has
// converged, a group of it that grows or shrinks closes nothing; a new step, a
// rollout or a failure does, and so does another ground.
func (s Standing) Lets() bool {
	return !s.behind && (s.Converged || s.Resting && s.Reached.is(s.Ground))
}

// Opens reports whether those that come after the target may do more than after the
// pass that left it at old.
func (s Standing) Opens(old Standing) bool {
	return s.Lets() && (!old.Lets() || !old.Ground.is(s.Ground) || s.fresh.After(old.fresh))
}

// Earlier is the target as seen by those that come after it.
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

// triedAgain are the faults of pools that are parked until somebody asks.
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

// WaitFor says why a target that follows a revision of a source waits for another one,
// which stands so; empty if it does not. A target of the same source must have
// converged at the same revision, one of another source at its own, and each with what
// is wanted of it now, and since its source came to that: seq or later.
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

// WaitText says for which target another waits, and why.
func WaitText(target, why string) string { return "waits for the target " + target + ", which " + why }

// Await holds all steps that would run before an earlier target has changed. It is for plans that
// are shown before the state of that target is available.
func (p *Plan) Await(why string) {
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Held == "" {
			s.Held, s.HeldReason, s.HeldEnds = step.HeldWave, why, model.EarlierEnds
		}
	}
}
