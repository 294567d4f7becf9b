package gates

import (
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
)

// waves finds out which earlier targets the targets wait for. It caches the result for targets of one source
// and commit with the same dependencies, because there may be hundreds of both.
type waves struct {
	conditions map[string]Conditions
	records    Records
	before     Before
	known      map[waveKey]waveOf
}

type waveKey struct {
	on               *string // the first dependency; targets with the same dependencies share the slice
	source, revision string
}

type waveOf struct {
	wait    string
	earlier []model.Earlier
}

// of returns the earlier target that a target waits for. If it waits for none, of returns the states of all
// earlier targets.
func (w *waves) of(d *reconciler.Desired) (wait string, earlier []model.Earlier) {
	on := w.conditions[d.Policy.Target].DependsOn
	if len(on) == 0 {
		return "", nil
	}
	key := waveKey{&on[0], d.Source, d.Commit.Revision}
	found, known := w.known[key]
	if !known {
		found.wait, found.earlier = w.find(d, on)
		w.known[key] = found
	}
	return found.wait, found.earlier
}

// find returns the text about the first of the earlier targets in on that d must wait for, or the states of
// all of them.
func (w *waves) find(d *reconciler.Desired, on []string) (wait string, earlier []model.Earlier) {
	for _, name := range on {
		wants, there := w.conditions[name]
		stands := w.before.Standings[name]
		switch why := plan.WaitFor(d.Source, d.Commit.Revision, name, wants.Wanted, wants.Seq, stands); {
		case !there:
			return plan.WaitText(name, "does not exist: a commit must add it, or dependsOn must name another target"), nil
		case why == "":
			earlier = append(earlier, stands.Earlier(name))
		case stands.Held == step.HeldSuspended && suspendedText(w.records, name) != "":
			return plan.WaitText(name, suspendedText(w.records, name)), nil
		default:
			return why, nil
		}
	}
	return "", earlier
}

// Wave returns which earlier target a target waits for, and why. It is empty if the target waits for none.
func Wave(d *reconciler.Desired, conditions map[string]Conditions, r Records, before Before) string {
	w := waves{conditions: conditions, records: r, before: before, known: map[waveKey]waveOf{}}
	wait, _ := w.of(d)
	return wait
}

// suspendedText returns who suspended a target or one of its pools, and how to resume it. It is empty if
// nothing is suspended.
func suspendedText(r Records, target string) string {
	for _, s := range r.Suspensions { // the suspension of all targets is sorted first
		switch {
		case s.Target == "":
			return "is suspended with all others, " + s.textSince() + "; weir resume --all"
		case s.Target != target:
		case s.Pool == "":
			return "is " + s.textSince() + "; weir resume " + target
		default:
			return "has the pool " + s.Pool + " " + s.textSince() + "; weir resume " + target + " " + s.Pool
		}
	}
	return ""
}

func (s Suspension) textSince() string {
	if s.Since.IsZero() {
		return s.Text()
	}
	return s.Text() + " (since " + s.Since.UTC().Format("2 Jan 2006 15:04 MST") + ")"
}

// Renewals returns the earlier targets that must read AWS again, each with the minimum time of the new
// answers. The later target has seen a newer fact than they have, so they may be about to change.
func Renewals(target string, conditions map[string]Conditions, before Before) map[string]time.Time {
	r := before.Reports[target]
	if r == nil || len(r.Levels) == 0 {
		return nil
	}
	out := map[string]time.Time{}
	for _, name := range conditions[target].DependsOn {
		stands := before.Standings[name]
		if !stands.Lets() {
			continue // the later target waits for it anyway
		}
		e := stands.Earlier(name)
		for _, l := range r.Levels {
			if e.Unaware(r.Account, r.Region, l) && l.Since.After(out[name]) {
				out[name] = l.Since
			}
		}
	}
	return out
}
