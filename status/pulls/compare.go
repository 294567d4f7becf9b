package pulls

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/wording"
)

// merge describes the application of a merge, as far as weir can tell.
type merge struct {
	// commit is the commit of the source that contains the merge, and head the merged head.
	commit
	head string
	// alone says that the commit contains only the pull request.
	alone bool
	// explains reports whether another pull request showed a target's plan.
	explains func(target, digest string) bool
}

// findings lists the differences between the plan of a merge and the plan that was shown, and the parts
// that weir cannot compare.
type findings struct{ differs, uncompared []string }

// compare compares the first plans after a merge with the plans that were shown.
func compare(r reviewed, m merge) findings {
	var out findings
	for _, target := range targetsOf(r, m) {
		differs, uncompared := compareTarget(r, m, target)
		for _, line := range differs {
			out.differs = append(out.differs, target+": "+line)
		}
		for _, line := range uncompared {
			out.uncompared = append(out.uncompared, target+": "+line)
		}
	}
	why := ""
	switch {
	case r.Base == "":
		why = "no plan of the merged commit " + wording.Short(m.head) + " was shown before the merge"
	case r.Head != m.head:
		why = "the merged commit " + wording.Short(m.head) + " was not planned before the merge; what was shown was the plan of " + wording.Short(r.Head)
	}
	switch {
	case why == "":
	case len(out.differs) > 0:
		out.differs = slices.Insert(out.differs, 0, why)
	case len(out.uncompared) > 0:
		out.uncompared = slices.Insert(out.uncompared, 0, why)
	}
	return out
}

func targetsOf(r reviewed, m merge) []string {
	all := slices.Concat(slices.Collect(maps.Keys(r.Digests)), slices.Collect(maps.Keys(m.Plans)))
	slices.Sort(all)
	return slices.Compact(all)
}

// agreement is the relation between a target's first plan after a merge and the reviewed plan. These texts
// are for tests and readers of the code; compareTarget has the texts for users.
type agreement string

const (
	awaited        agreement = "it is not planned yet, which the merge reports as waiting"
	nothingLeft    agreement = "the commits that were applied together change nothing of it"
	notChanged     agreement = "the merge does not change it"
	failsNow       agreement = "it cannot be planned, which the review did not show"
	failsAsShown   agreement = "it cannot be planned, as the review showed"
	samePlan       agreement = "the plan is the reviewed one"
	emptyUnshown   agreement = "the review did not show it, and its plan is empty"
	fromOthers     agreement = "the review did not show it; another pull request did"
	afterRestart   agreement = "weir restarted while it applied the merge"
	mergedBefore   agreement = "the review did not show it, and weir started after the merge"
	changedWith    agreement = "the review did not show it, and several commits were applied together"
	noReview       agreement = "the review showed no plan at all"
	changedUnshown agreement = "the review did not show that it changes"
	shownUnplanned agreement = "the review showed it without a plan"
	withoutSecrets agreement = "its plan was made without secrets"
	plannedWith    agreement = "it was planned together with other commits"
	otherPlan      agreement = "the plan is not the reviewed one"
)

// planFacts contains the facts that determine the agreement of a target.
type planFacts struct {
	// planned: there is a first plan after the merge. touched: the commit changes the target.
	planned, touched bool
	// failed, empty, digested and unsure describe that plan.
	failed, empty, digested, unsure bool
	// shown: the review showed the target. comparable: it showed a digest. same: the plan has this
	// digest.
	shown, comparable, same bool
	// reviewed: the review had a plan. failing: it showed a failure.
	reviewed, failing bool
	// together: the plan may contain other commits. began: weir started after the merge. explained:
	// another pull request showed the plan.
	together, began, explained bool
}

// agreement classifies the facts. The first matching case wins.
func (f planFacts) agreement() agreement {
	switch {
	case !f.planned && f.touched:
		return awaited
	case !f.planned && f.together:
		return nothingLeft
	case !f.planned:
		return notChanged
	case f.failed && f.shown && f.failing:
		return failsAsShown
	case f.failed:
		return failsNow
	case f.same:
		return samePlan
	case !f.shown:
		return f.unshown()
	case f.unsure:
		return afterRestart
	case !f.comparable:
		return shownUnplanned
	case !f.digested:
		return withoutSecrets
	case f.together:
		return plannedWith
	}
	return otherPlan
}

// unshown classifies the facts of a target that was not in the reviewed plan.
func (f planFacts) unshown() agreement {
	switch {
	case f.empty:
		return emptyUnshown
	case (f.together || f.unsure || f.began) && f.explained:
		return fromOthers
	case f.unsure:
		return afterRestart
	case f.began:
		return mergedBefore
	case f.together:
		return changedWith
	case !f.reviewed:
		return noReview
	}
	return changedUnshown
}

// holdsComparable reports whether the held steps can be compared with those in the reviewed plan.
func (f planFacts) holdsComparable() bool {
	return f.planned && f.shown && !f.failed && !f.unsure && (f.same || !f.together)
}

// compareTarget returns, for one target, the differences between its plan and the plan that was shown, and
// the parts that weir cannot compare.
func compareTarget(r reviewed, m merge, target string) (differs, uncompared []string) {
	a, planned := m.Plans[target]
	digest, comparable := r.Digests[target]
	f := planFacts{
		planned: planned, touched: slices.Contains(m.Touched, target),
		failed: a.Fault != "", empty: a.Empty, digested: a.Digest != "", unsure: a.Unsure,
		shown: comparable || slices.Contains(r.Undigested, target), comparable: comparable, same: comparable && a.Digest != "" && a.Digest == digest,
		reviewed: r.Base != "", failing: r.State == report.PullFailing,
		together: !m.alone || a.With != "", began: m.Began, explained: m.explains(target, a.Digest),
	}
	upTo, does := wording.Short(cmp.Or(a.With, m.Revision)), words(a.Summary)
	addDiffers := func(text string) { differs = append(differs, text) }
	addUncompared := func(text string) { uncompared = append(uncompared, text) }
	switch f.agreement() {
	case awaited, failsAsShown, samePlan, emptyUnshown, fromOthers:
	case nothingLeft:
		addDiffers("together with the other commits up to " + upTo + " nothing changes here")
	case notChanged:
		addDiffers("the merge does not change it")
	case failsNow:
		addDiffers("it cannot be planned: " + strings.TrimPrefix(a.Fault, target+": "))
	case afterRestart:
		addUncompared("weir restarted while it applied the merge, so the plan from before the restart is unknown; the plan after the restart " + does)
	case mergedBefore:
		addUncompared("weir started after the merge, so it does not know what the merge changes; the plan " + does)
	case changedWith:
		addUncompared("it is changed too, by the merge or by another of the commits up to " + upTo + ", which were applied together; the plan " + does)
	case noReview:
		addDiffers("the plan " + does)
	case changedUnshown:
		addDiffers("it is changed too, which the review did not show; the plan " + does)
	case shownUnplanned:
		addDiffers("the review showed no plan for it; the plan " + does)
	case withoutSecrets:
		addUncompared("its plan was made without secrets and cannot be compared with the reviewed one")
	case plannedWith:
		addUncompared("it was planned together with other commits, up to " + upTo + ", and that plan cannot be compared with the one of the pull request alone; it " + does)
	case otherPlan:
		addDiffers("the plan is not the reviewed one; it " + does)
	}
	if before := r.Held[target]; f.holdsComparable() && before.Sum != a.Holding.Sum {
		addDiffers(heldOtherwise(before, a.Holding))
	}
	return differs, uncompared
}

// heldOtherwise describes how the held steps differ from the ones in the reviewed plan.
func heldOtherwise(before, now plan.Holding) string {
	shown, is := heldText(before), heldText(now)
	switch {
	case shown == "":
		return "the review showed no step as held, and " + is + " held"
	case is == "":
		return "the review showed that " + shown + " held, and now none is"
	case shown == is:
		return "the review showed that " + shown + " held, and now others are"
	default:
		return "the review showed that " + shown + " held, and now " + is
	}
}

// heldText describes numbers of held steps.
func heldText(h plan.Holding) string {
	n := 0
	var why []string
	for _, hold := range slices.Sorted(maps.Keys(h.Counts)) {
		n += h.Counts[hold]
		why = append(why, string(hold))
	}
	switch n {
	case 0:
		return ""
	case 1:
		return "1 step (" + why[0] + ") is"
	default:
		return fmt.Sprintf("%d steps (%s) are", n, strings.Join(why, ", "))
	}
}

// words summarizes a plan.
func words(s plan.Summary) string {
	var parts []string
	for _, p := range []struct {
		n    int
		verb string
	}{{s.Create, "creates"}, {s.Update, "updates"}, {s.Rollout, "rolls"}, {s.Replace, "replaces"}, {s.Delete, "deletes"}} {
		if p.n == 1 {
			parts = append(parts, fmt.Sprintf("%s 1 pool", p.verb))
		} else if p.n > 1 {
			parts = append(parts, fmt.Sprintf("%s %d pools", p.verb, p.n))
		}
	}
	if parts == nil {
		return "changes no pool"
	}
	return strings.Join(parts, ", ")
}
