package plan

import (
	"slices"

	"github.com/weir-gitops/weir/render/diag"
)

// Standing is how a target stood after a pass, for those that wait for it.
type Standing struct {
	Source   string
	Revision string
	// Converged says that AWS is what that revision says; Failing that something
	// is wrong; Resting that nothing is left to do and nothing rolls, though the
	// size of a group may be on its way.
	Converged, Failing, Resting bool
	// Reached is the last revision at which the target was seen converged.
	Reached string
	// Why says in a few words why it has not converged.
	Why string
}

// After is how the target stands after another pass.
func (s Standing) After(r *Report) Standing {
	next := Standing{Source: r.Source, Revision: r.Revision, Reached: s.Reached, Converged: r.Converged()}
	rolling := false
	for _, p := range r.Pools {
		rolling = rolling || p.Rollout != nil
	}
	next.Failing = r.Err != nil || r.Diagnostics.HasErrors() || len(r.Failures()) > 0
	next.Resting = r.Plan != nil && r.Plan.Empty() && !rolling && !next.Failing
	if next.Converged {
		next.Reached = r.Revision
	}
	switch {
	case next.Converged:
	case next.Failing:
		next.Why = "failed: " + firstTrouble(r)
	case r.Plan == nil:
		next.Why = "has no plan"
	case rolling:
		next.Why = "rolls out"
	case r.Plan.Runnable() < len(r.Plan.Steps):
		next.Why = "is held (" + string(firstHold(r.Plan)) + ")"
	default:
		next.Why = "is not converged yet"
		if i := slices.IndexFunc(r.Pools, func(p PoolStatus) bool { return p.Rests() }); i >= 0 {
			next.Why += ": " + r.Pools[i].Namespace + "/" + r.Pools[i].Name + ": " + r.Pools[i].Ready().Message
		}
	}
	return next
}

func firstHold(p *Plan) Hold {
	for _, s := range p.Steps {
		if s.Held != "" {
			return s.Held
		}
	}
	return ""
}

// firstTrouble is what went wrong first, by its code where it has one: this is
// said of another target, whose own report says all of it.
func firstTrouble(r *Report) string {
	if f := r.Failures(); len(f) > 0 && f[0].Err != nil {
		return f[0].Err.Operation + ": " + f[0].Err.Code
	}
	for _, d := range r.Diagnostics {
		if d.Severity == diag.Error {
			return d.Code
		}
	}
	if r.Err != nil {
		return "its source or its account cannot be reached"
	}
	return ""
}

// WaitFor returns which of the targets that a target depends on it waits for, and
// why; empty if for none. A target of the same source must have converged at the
// same revision, one of another source at its own. Once it has, a group of it that
// grows or shrinks closes nothing; a new step, a rollout or a failure does.
func WaitFor(source, revision string, on []string, at map[string]Standing) string {
	for _, name := range on {
		s, known := at[name]
		why := s.Why
		switch {
		case !known:
			why = "has not been looked at yet"
		case s.Source == source && s.Revision != revision:
			why = "is not at " + shortRevision(revision) + " yet"
		case s.Converged, s.Resting && s.Reached == s.Revision:
			continue
		}
		return "waits for the target " + name + ", which " + why
	}
	return ""
}

func shortRevision(revision string) string {
	if revision == "" {
		return "this revision"
	}
	return revision[:min(7, len(revision))]
}
