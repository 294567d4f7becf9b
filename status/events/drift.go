package events

import (
	"slices"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/visible"
	"github.com/weir-gitops/weir/status/report"
)

// driftState is the state of a pool or AWSLaunchConfig with regard to drift.
type driftState string

const (
	noDrift     driftState = "AWS matches Git, or Git changed"
	driftFound  driftState = "AWS differs although Git did not change"
	driftStays  driftState = "it was announced, and AWS still differs"
	driftMended driftState = "AWS matches Git again, after a step of weir"
	driftGone   driftState = "AWS matches Git again, without a step of weir"
	notWanted   driftState = "it was announced, and Git wants the pool no more"
)

// driftFacts holds the facts that decide the state of drift.
type driftFacts struct {
	// known says that the drift was announced, mended that a step of weir completed since.
	known, mended bool
	// planned says that the plan has steps for it, drifts that these steps are drift.
	planned, drifts bool
	// wanted says that Git has it, changing that its pool has not converged.
	wanted, changing bool
}

// state classifies the facts; the first case that fits decides.
func (f driftFacts) state() driftState {
	switch {
	case f.planned && f.known:
		return driftStays
	case f.planned && f.drifts:
		return driftFound
	case !f.known, f.planned:
		return noDrift
	case !f.wanted:
		return notWanted
	case f.changing:
		return driftStays
	case f.mended:
		return driftMended
	}
	return driftGone
}

// drift announces the pools that differ in AWS although Git did not change them,
// and which were put right since.
func (t *finder) drift() {
	steps := map[string][]step.Step{}
	var owners []string
	for _, s := range t.r.Plan.Steps {
		if steps[s.Owner()] == nil {
			owners = append(owners, s.Owner())
		}
		steps[s.Owner()] = append(steps[s.Owner()], s)
	}
	for _, owner := range t.old.Drift {
		if steps[owner] == nil {
			owners = append(owners, owner)
		}
	}
	done := map[string]bool{}
	for _, o := range t.r.Outcomes {
		done[o.Step.Owner()] = done[o.Step.Owner()] || o.Status == step.Done
	}
	for _, owner := range owners {
		f := t.driftFacts(owner, steps[owner])
		f.mended = f.mended || f.planned && done[owner]
		is := f.state()
		if is == driftFound || is == driftStays {
			t.next.Drift = append(t.next.Drift, owner)
			if f.mended {
				t.next.Mended = append(t.next.Mended, owner)
			}
		}
		switch is {
		case driftFound:
			t.add(driftEvent(steps[owner]))
		case driftMended:
			t.add(Event{Kind: "drift-corrected", Pool: plainOwner(owner), Text: "AWS matches Git again"})
		case driftGone:
			t.add(Event{Kind: "drift-gone", Pool: plainOwner(owner), Text: "AWS matches Git again, without a step of weir"})
		case noDrift, driftStays, notWanted:
		}
	}
	slices.Sort(t.next.Drift)
	slices.Sort(t.next.Mended)
}

// driftFacts reads the facts about the owner of some steps, or of none.
func (t *finder) driftFacts(owner string, steps []step.Step) driftFacts {
	f := driftFacts{known: slices.Contains(t.old.Drift, owner), mended: slices.Contains(t.old.Mended, owner), planned: len(steps) > 0}
	if f.planned {
		unchanged := t.old.Revision == t.r.Revision || !t.r.Touched
		f.drifts = drifts(steps) != nil || t.first && unchanged && t.wasConverged(steps[0])
		return f
	}
	i := slices.IndexFunc(t.r.Pools, func(p plan.PoolStatus) bool { return report.PoolKey(p) == owner })
	f.wanted = i >= 0 || step.OfLaunchConfig(owner)
	f.changing = i >= 0 && !t.r.Pools[i].Converged
	return f
}

// driftEvent announces the drift that some steps of one owner correct.
func driftEvent(steps []step.Step) Event {
	first := steps[0]
	e := Event{
		Kind: "drift-found", Pool: OwnerPool(first), Resource: first.Resource, Name: first.Name, Reason: first.Reason,
		Text: "AWS differs, although Git did not change: " + report.StepList(steps) + changeList(steps), Changes: changesOf(steps),
	}
	if d := drifts(steps); d != nil && d.Cause != "" {
		e.Facts = map[string]string{"cause": visible.Clip(d.Cause, report.LongestValue)}
	}
	return e
}

// drifts returns the planner's drift in steps, nil without drift: the first with a cause, otherwise
// the first.
func drifts(steps []step.Step) (found *step.Drift) {
	for _, s := range steps {
		if s.Drift != nil && (found == nil || found.Cause == "" && s.Drift.Cause != "") {
			found = s.Drift
		}
	}
	return found
}

// wasConverged reports whether what a step belongs to was as Git says before.
func (t *finder) wasConverged(s step.Step) bool {
	pools := s.Pools
	if s.Pool != "" {
		pools = []string{s.Pool}
	}
	return len(pools) > 0 && !slices.ContainsFunc(pools, func(p string) bool { return !t.old.Pools[p].Converged })
}
