package pulls

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/report"
)

// merge describes how a merge was applied, as far as weir knows.
type merge struct {
	// commit is the commit of the source that contains the merge, head the merged head.
	commit
	head string
	// alone says that nothing came with it but the pull request.
	alone bool
	// explains reports whether another pull request showed a target's plan.
	explains func(target, digest string) bool
}

// findings holds the differences between the plan of a merge and the plan that was shown, and what
// weir cannot compare.
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
		why = "no plan of the merged commit " + short(m.head) + " was shown before the merge"
	case r.Head != m.head:
		why = "the merged commit " + short(m.head) + " was not planned before the merge; what was shown was the plan of " + short(r.Head)
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

// compareTarget returns, for one target, how its plan differs from the plan that was shown, and
// what weir cannot compare.
func compareTarget(r reviewed, m merge, target string) (differs, uncompared []string) {
	a, planned := m.Plans[target]
	digest, comparable := r.Digests[target]
	shown := comparable || slices.Contains(r.Undigested, target)
	upTo := cmp.Or(a.With, m.Revision)
	together := !m.alone || a.With != ""
	does := "the plan " + words(a.Summary)
	addDiffers := func(text string) { differs = append(differs, text) }
	addUncompared := func(text string) { uncompared = append(uncompared, text) }
	same := comparable && a.Digest != "" && a.Digest == digest
	switch {
	case !planned && slices.Contains(m.Touched, target): // who waits says so
	case !planned && together:
		addDiffers("with the commits that it was applied with, up to " + short(upTo) + ", nothing of it changes")
	case !planned:
		addDiffers("the merge does not change it")
	case a.Fault != "":
		if !shown || r.State != report.PullFailing {
			addDiffers("it cannot be planned: " + strings.TrimPrefix(a.Fault, target+": "))
		}
	case same:
	case !shown && a.Empty: // there was nothing to show
	case (together || a.Unsure || m.Began) && !shown && m.explains(target, a.Digest): // others' doing
	case a.Unsure:
		addUncompared("weir was started anew while the merge was applied, and what it planned before is not known; after that " + does)
	case m.Began && !shown:
		addUncompared("weir was started when this was merged already, and what the merge changes of it is not known; " + does)
	case together && !shown:
		addUncompared("it is changed too, by the merge or by another of the commits up to " + short(upTo) + ", which were applied together; " + does)
	case !shown && r.Base == "":
		addDiffers(does)
	case !shown:
		addDiffers("it is changed too, which the review did not show; " + does)
	case !comparable:
		addDiffers("the review had no plan of it to compare with; " + does)
	case a.Digest == "":
		addUncompared("its plan was made without secrets and cannot be compared with the reviewed one")
	case together:
		addUncompared("it was planned together with other commits, up to " + short(upTo) + ", and that plan cannot be compared with the one of the pull request alone; it " + words(a.Summary))
	default:
		addDiffers("the plan is not the reviewed one; it " + words(a.Summary))
	}
	if before := r.Held[target]; planned && shown && a.Fault == "" && !a.Unsure && (same || !together) && before.Sum != a.Holding.Sum {
		addDiffers(heldOtherwise(before, a.Holding))
	}
	return differs, uncompared
}

// heldOtherwise says that the held steps differ from those that were shown.
func heldOtherwise(before, now plan.Holding) string {
	shown, is := held(before), held(now)
	switch {
	case shown == "":
		return "the review showed no step as held, and " + is + " held"
	case is == "":
		return "the review showed that " + shown + " held, and none is"
	case shown == is:
		return "the review showed that " + shown + " held, and now these are others"
	default:
		return "the review showed that " + shown + " held, and now " + is
	}
}

// held counts held steps.
func held(h plan.Holding) string {
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

// words describe what a plan does.
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
