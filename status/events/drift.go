package events

import (
	"slices"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/visible"
	"github.com/weir-gitops/weir/status/report"
)

// driftState is the drift state of a pool or AWSLaunchConfig.
type driftState string

const (
	noDrift     driftState = "AWS matches Git, or Git changed"
	driftFound  driftState = "AWS differs although Git did not change"
	driftStays  driftState = "it was announced, and AWS still differs"
	driftMended driftState = "AWS matches Git again, after a step of weir"
	driftGone   driftState = "AWS matches Git again, without a step of weir"
	notWanted   driftState = "it was announced, and Git wants the pool no more"
)

// driftFacts contains the facts that determine the drift state of a pool or AWSLaunchConfig.
type driftFacts struct {
	// known says that the drift was announced, and mended that weir has completed a step since.
	known, mended bool
	// planned says that the plan has steps for the object, and drifts that these steps correct drift.
	planned, drifts bool
	// wanted says that Git contains the object, and changing that its pool has not converged.
	wanted, changing bool
}

// state classifies the facts. The first matching case wins.
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

// drift announces the pools and AWSLaunchConfigs that differ in AWS although Git did not change, and those
// that match again.
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

// driftFacts returns the facts about an owner. steps are its steps in the plan, if any.
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

// driftEvent returns the event for the drift that some steps of one owner correct.
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

// drifts returns the drift that the planner found in steps: the first with a cause, otherwise the first. It
// returns nil without drift.
func drifts(steps []step.Step) (found *step.Drift) {
	for _, s := range steps {
		if s.Drift != nil && (found == nil || found.Cause == "" && s.Drift.Cause != "") {
			found = s.Drift
		}
	}
	return found
}

// wasConverged reports whether the owner of a step matched Git before.
func (t *finder) wasConverged(s step.Step) bool {
	pools := s.Pools
	if s.Pool != "" {
		pools = []string{s.Pool}
	}
	return len(pools) > 0 && !slices.ContainsFunc(pools, func(p string) bool { return !t.old.Pools[p].Converged })
}
