package pulls

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/fleet"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/source/forge"
	"github.com/weir-gitops/weir/status"
)

// Reported takes in what a pass found: whether AWS or what is followed moved under
// a plan, and what was planned first at a commit.
func (w *Watcher) Reported(r *plan.Report) {
	if r.Source != w.o.Source {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := standing(r)
	if last, known := w.live[r.Target]; known && last != seen {
		w.moved[r.Target] = w.o.Now()
	}
	w.live[r.Target] = seen
	if r.Plan == nil || !r.Touched || r.Revision == "" {
		return
	}
	at := w.applied[r.Revision]
	if at == nil {
		at = map[string]applied{}
		w.applied[r.Revision] = at
		w.order = append(w.order, r.Revision)
		if len(w.order) > remembered {
			delete(w.applied, w.order[0])
			w.order = w.order[1:]
		}
	}
	if _, known := at[r.Target]; !known {
		at[r.Target] = applied{r.Plan.Digest(), r.Plan.Summary}
		w.ring()
	}
}

// standing is what a plan of the target depends on beside Git.
func standing(r *plan.Report) string {
	var b strings.Builder
	if r.Err != nil {
		b.WriteString("unread")
	}
	if r.Plan != nil {
		b.WriteString(r.Plan.Digest())
	}
	for _, o := range r.Outcomes {
		if o.Status == plan.Done {
			fmt.Fprintf(&b, " %s %s %s", o.Step.Verb, o.Step.Resource, o.Step.Name)
		}
	}
	return b.String()
}

// dirty counts the targets that moved since a pull request was planned.
func (w *Watcher) dirty(k *work) int {
	if k.review == nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, target := range k.review.Touched {
		if at, ok := w.moved[target]; ok && !at.Before(k.planned) {
			n++
		}
	}
	return n
}

// gone finds out what became of a pull request that is not open any more, or not
// into the followed branch.
func (w *Watcher) gone(ctx context.Context, k *work) error {
	pr, err := w.o.Forge.Pull(ctx, k.Number)
	if missing(err) {
		if k.Told {
			w.show(k, status.Pull{State: status.PullClosed, Reason: "the forge does not know it any more"})
		}
		w.forget(k)
		return nil
	}
	if err != nil {
		w.heardAgain() // to ask once more though the list stays as it is
		return err
	}
	follows := w.o.Follows("refs/heads/" + pr.BaseRef)
	switch {
	case pr.State == forge.Open && follows:
		w.take(pr) // the list was of another moment
	case pr.State == forge.Merged && follows && pr.MergeSHA != "":
		k.pr, k.MergeSHA, k.MergedAt = pr, pr.MergeSHA, w.o.Now()
		w.save(k)
	default:
		k.pr = pr
		reason := ""
		if pr.State == forge.Open {
			reason = "it goes into another branch now"
		}
		if k.Told {
			w.show(k, status.Pull{State: status.PullClosed, Reason: reason})
		}
		w.forget(k)
	}
	return nil
}

// settle compares what was applied with what was reviewed, once it is known, and
// ends a merged pull request.
func (w *Watcher) settle(base *fleet.Base, k *work) time.Duration {
	w.mu.Lock()
	at, first := maps.Clone(w.applied[k.MergeSHA]), len(w.order) > 0 && w.order[0] == k.MergeSHA
	w.mu.Unlock()
	view := base.View(w.o.Source)
	now := view.Snapshot.Revision
	complete := len(at) > 0
	for target := range k.Digests {
		if _, known := at[target]; !known {
			complete = false
		}
	}
	over := w.o.Now().After(k.MergedAt.Add(waiting))
	// A source that could have come to the merge for long was there and went on, or
	// came to a later commit at once.
	passed := now != "" && now != k.MergeSHA && view.Err == nil && w.o.Now().After(k.MergedAt.Add(3*w.o.Interval)) && w.passed(now)
	if !complete && !over && !passed && (len(k.Digests) > 0 || now != k.MergeSHA) {
		if k.shown.State != status.PullMerged && k.Told {
			w.show(k, w.merged(k, nil, false))
		}
		return w.o.Interval
	}
	if k.Told {
		var differs []string
		switch {
		case complete && !first:
			differs = difference(k.Digests, at)
		case passed && len(k.Digests) > 0:
			differs = []string{"it was applied together with later commits, as " + short(now)}
		}
		for _, line := range differs {
			w.o.Event(status.Event{Kind: "plan-differs", Source: w.o.Source, Text: fmt.Sprintf("pull request %d: %s", k.Number, line)})
		}
		w.show(k, w.merged(k, differs, complete && !first))
	}
	w.forget(k)
	return w.o.Interval
}

// passed reports whether the source was applied at a commit, so that another one
// is not waited for.
func (w *Watcher) passed(revision string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.applied[revision]) > 0
}

// merged is the shown plan after the merge. Of an earlier process only what the
// record holds is known.
func (w *Watcher) merged(k *work, differs []string, compared bool) status.Pull {
	p := k.shown
	p.BaseSHA, p.Digest, p.Digests = k.Base, k.Digest, k.Digests
	p.State, p.Differs, p.Compared, p.Stale, p.Reason = status.PullMerged, differs, compared, "", ""
	return p
}

// difference says what was planned at the merge otherwise than it was reviewed.
func difference(reviewed map[string]string, at map[string]applied) []string {
	var out []string
	for _, target := range slices.Sorted(maps.Keys(reviewed)) {
		switch a := at[target]; a.Digest {
		case reviewed[target]:
		case "":
			out = append(out, target+": its plan was made without secrets and cannot be compared with the reviewed one")
		default:
			out = append(out, target+": the plan is not the reviewed one; it "+words(a.Summary))
		}
	}
	for _, target := range slices.Sorted(maps.Keys(at)) {
		if _, known := reviewed[target]; !known {
			out = append(out, target+": it is changed too, which the review did not show; the plan "+words(at[target].Summary))
		}
	}
	return out
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

func short(revision string) string { return revision[:min(7, len(revision))] }
