package pulls

import (
	"cmp"
	"context"
	"fmt"
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
	if r.Touched && r.Revision != "" && w.commit(r.Revision).take(r) {
		w.ring()
	}
}

// Forget lets go of a target that has gone.
func (w *Watcher) Forget(target string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.live, target)
	delete(w.moved, target)
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
		k.drop()
		k.pr, k.Seen, k.MergeSHA, k.MergedAt = pr, cmp.Or(pr.HeadSHA, k.Seen), pr.MergeSHA, w.o.Now()
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
func (w *Watcher) settle(ctx context.Context, base *fleet.Base, k *work) time.Duration {
	at, first := w.at(k.MergeSHA)
	view := base.View(w.o.Source)
	now := view.Snapshot.Revision
	complete, over := at.complete(), w.o.Now().After(k.MergedAt.Add(waiting))
	// The source was at the merge and went on, or came to a later commit at once. One
	// that has not come to the merge yet is waited for: the forge may tell first.
	passed := now != k.MergeSHA && view.Err == nil && w.o.Now().After(k.MergedAt.Add(3*w.o.Interval)) && w.passed(now)
	if passed && !over {
		follows, err := w.o.Git.Descends(ctx, now, k.MergeSHA)
		passed = follows && err == nil
	}
	if !complete && !over && !passed {
		if k.shown.State != status.PullMerged && k.Told {
			w.show(k, w.merged(k, nil, false))
		}
		return w.o.Interval
	}
	if k.Told {
		var differs []string
		if at.followed && !first {
			differs = difference(k.record, at)
		}
		switch {
		case complete:
		case passed && (len(k.Digests) > 0 || len(at.touched) > 0):
			differs = append(differs, "it was applied together with later commits, as "+short(now))
		case over:
			for _, target := range at.missing() {
				differs = append(differs, fmt.Sprintf("%s: it was not planned within %.0f hours of the merge", target, waiting.Hours()))
			}
		}
		for _, line := range differs {
			w.o.Event(status.Event{Kind: "plan-differs", Source: w.o.Source, Text: fmt.Sprintf("pull request %d: %s", k.Number, line)})
		}
		w.show(k, w.merged(k, differs, complete && !first))
	}
	w.forget(k)
	return w.o.Interval
}

// merged is the shown plan after the merge. Of an earlier process only what the
// record holds is known.
func (w *Watcher) merged(k *work, differs []string, compared bool) status.Pull {
	p := k.shown
	p.BaseSHA, p.Digest, p.Digests = k.Base, k.Digest, k.Digests
	p.State, p.Differs, p.Compared, p.Stale, p.Reason = status.PullMerged, differs, compared, "", ""
	return p
}

func short(revision string) string { return revision[:min(7, len(revision))] }
