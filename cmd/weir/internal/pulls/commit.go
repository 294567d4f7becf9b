package pulls

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/cmd/weir/internal/fleet"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status"
)

// commit is what is known of a commit that the source came to.
type commit struct {
	// touched are the targets that it changes; followed says that they are known.
	touched  []string
	followed bool
	// plans are the first ones, by target.
	plans map[string]applied
}

// applied is the first plan of a target at a commit. One with a fault has none.
type applied struct {
	digest  string
	summary plan.Summary
	holding plan.Holding
	fault   string
}

// take takes in what a pass found, and reports whether that is news. What fails
// outside of the commit is waited for.
func (c *commit) take(r *plan.Report) bool {
	a := applied{}
	switch {
	case r.Plan != nil && r.Plan.Waits():
		return false
	case r.Plan != nil:
		a = applied{digest: r.Plan.Digest(), summary: r.Plan.Summary, holding: r.Plan.Holding()}
	case r.Err == nil && r.Diagnostics.HasErrors():
		a.fault = firstFault(r)
	default:
		return false
	}
	if old, known := c.plans[r.Target]; known && (old.fault == "" || a.fault != "") {
		return false
	}
	c.plans[r.Target] = a
	return true
}

// missing are the touched targets of which nothing was reported yet.
func (c commit) missing() []string {
	return slices.DeleteFunc(slices.Clone(c.touched), func(target string) bool { _, known := c.plans[target]; return known })
}

// complete reports whether all is known that the commit changes. Targets are
// reported one after the other: what has come says nothing of the rest.
func (c commit) complete() bool { return c.followed && len(c.missing()) == 0 }

// commit is the entry of a revision; mu is held.
func (w *Watcher) commit(revision string) *commit {
	c := w.commits[revision]
	if c == nil {
		c = &commit{plans: map[string]applied{}}
		w.commits[revision] = c
		if w.order = append(w.order, revision); len(w.order) > remembered {
			delete(w.commits, w.order[0])
			w.order = w.order[1:]
		}
	}
	return c
}

// follow notes what the source's commit changes.
func (w *Watcher) follow(base *fleet.Base) {
	revision := base.View(w.o.Source).Snapshot.Revision
	if revision == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.commit(revision)
	c.touched, c.followed = base.Touched(w.o.Source), true
}

// at is what is known of a commit, and whether it was the first that was seen.
func (w *Watcher) at(revision string) (c commit, first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if known := w.commits[revision]; known != nil {
		c = *known
		c.plans = maps.Clone(c.plans)
	}
	return c, len(w.order) > 0 && w.order[0] == revision
}

// passed reports whether the source was applied at a commit, so that another one
// is not waited for.
func (w *Watcher) passed(revision string) bool {
	c, _ := w.at(revision)
	return len(c.plans) > 0 || c.complete()
}

// difference says what was planned at the merge otherwise than it was reviewed.
func difference(r record, at commit) []string {
	var out []string
	say := func(target, format string, args ...any) { out = append(out, target+": "+fmt.Sprintf(format, args...)) }
	all := slices.Concat(slices.Collect(maps.Keys(r.Digests)), slices.Collect(maps.Keys(at.plans)))
	slices.Sort(all)
	for _, target := range slices.Compact(all) {
		a, planned := at.plans[target]
		reviewed, comparable := r.Digests[target]
		shown := comparable || slices.Contains(r.Undigested, target)
		switch {
		case !planned && slices.Contains(at.touched, target): // who waits says so
		case !planned:
			say(target, "the merge does not change it")
		case a.fault != "":
			if !shown || r.State != status.PullFailing {
				say(target, "it cannot be planned: %s", strings.TrimPrefix(a.fault, target+": "))
			}
		case !shown:
			say(target, "it is changed too, which the review did not show; the plan %s", words(a.summary))
		case !comparable:
			say(target, "the review had no plan of it to compare with; the plan %s", words(a.summary))
		case a.digest == "":
			say(target, "its plan was made without secrets and cannot be compared with the reviewed one")
		case a.digest != reviewed:
			say(target, "the plan is not the reviewed one; it %s", words(a.summary))
		}
		if before := r.Held[target]; planned && shown && a.fault == "" && before.Sum != a.holding.Sum {
			say(target, "%s", heldOtherwise(before, a.holding))
		}
	}
	return out
}

// heldOtherwise says that other steps are held than were shown so.
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

// words say what a plan does.
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
