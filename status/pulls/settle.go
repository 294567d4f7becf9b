package pulls

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
)

// gone finds out what became of a pull request that is not open any more, or not
// into the followed branch.
func (w *Watcher) gone(ctx context.Context, k *work) error {
	pr, err := w.o.Forge.Pull(ctx, k.Number)
	if forge.Gone(err) {
		if k.Reported {
			w.show(k, report.Pull{State: report.PullClosed, Reason: "the forge no longer has it"})
		}
		w.forget(k)
		return nil
	}
	if err != nil {
		w.listing.again() // to ask once more though the list stays as it is
		return err
	}
	follows := w.o.Follows("refs/heads/" + pr.BaseRef)
	byHand, err := w.mergedByHand(ctx, k, pr)
	if err != nil {
		w.listing.again()
		return err
	}
	switch {
	case pr.State == forge.Open && follows:
		w.update(pr) // the list was of another moment
	case follows && (pr.State == forge.Merged || byHand != ""):
		k.drop()
		k.pr, k.Seen, k.MergeSHA = pr, cmp.Or(pr.HeadSHA, k.Seen), cmp.Or(pr.MergeSHA, byHand)
		if !k.merged() {
			k.MergedAt = w.o.Now()
		}
		if k.MergeSHA == "" {
			w.listing.again() // it may be said later
		}
		w.records.save(k)
		w.images.merge(k.Number)
	default:
		k.pr = pr
		reason := ""
		if pr.State == forge.Open {
			reason = "its target branch has changed"
		}
		if k.Reported {
			w.show(k, report.Pull{State: report.PullClosed, Reason: reason})
		}
		w.forget(k)
	}
	return nil
}

// mergedByHand is the commit that brought the head of a closed pull request into main,
// "" for none: not every forge sees that it was merged where a person pushed it there.
func (w *Watcher) mergedByHand(ctx context.Context, k *work, pr forge.PullRequest) (string, error) {
	if pr.State != forge.Closed || pr.HeadSHA == "" {
		return "", nil
	}
	with, err := w.commits.bringing(ctx, pr.HeadSHA)
	if err != nil || with == "" {
		return "", err
	}
	r, err := k.reviewOf(ctx, w.o.Git, with)
	if err != nil || r.Base == "" {
		return "", err // it was there before
	}
	return with, nil
}

// settle compares what was applied with what was reviewed, as soon as it is known, and ends a
// merged pull request.
func (w *Watcher) settle(ctx context.Context, base *fleet.Base, k *work) time.Duration {
	over := w.o.Now().After(k.MergedAt.Add(waiting))
	found, known, err := w.judgeMerge(ctx, base, k)
	shown, err2 := k.reviewOf(ctx, w.o.Git, k.MergeSHA)
	if err = errors.Join(err, err2); err != nil && !over {
		w.log.Debug("a merge cannot be compared yet", "pull", k.Number, "error", err)
		return w.o.Interval
	}
	switch {
	case known:
	case !over:
		if k.shown.State != report.PullMerged && k.Reported {
			w.show(k, k.mergedAs(shown))
		}
		return w.o.Interval
	default:
		found = w.commits.at(k.MergeSHA).unplanned(k.MergeSHA)
	}
	if k.Reported {
		for _, line := range found.differs {
			w.o.Event(events.Event{Kind: "plan-differs", Source: w.o.Source, Text: fmt.Sprintf("pull request %d: %s", k.Number, line)})
		}
		for _, line := range found.uncompared {
			w.log.Info("a merge cannot be compared", "pull", k.Number, "why", line)
		}
		p := k.mergedAs(shown)
		p.Differs, p.Uncompared, p.Compared = found.differs, found.uncompared, known && len(found.uncompared) == 0
		w.show(k, p)
	}
	w.forget(k)
	return w.o.Interval
}

// judgeMerge compares the plan of a merge with the reviewed one. known is false as long
// as there is something that it waits for.
func (w *Watcher) judgeMerge(ctx context.Context, base *fleet.Base, k *work) (out findings, known bool, err error) {
	view := base.View(w.o.Source)
	if k.MergeSHA == "" {
		// The forge does not say which commit it was. Git does, if the head is in main.
		with, err := w.commits.bringing(ctx, k.Seen)
		if err != nil || with == "" {
			return out, false, err
		}
		k.MergeSHA = with
		w.records.save(k)
	}
	with, err := w.commits.bringing(ctx, k.MergeSHA)
	if err != nil {
		return out, false, err
	}
	if with == "" {
		// weir waits for a source that has not reached the merge yet: the forge may report it
		// first. A source that moved elsewhere since then will not reach it.
		now := w.commits.at(view.Snapshot.Revision)
		gone := view.Err == nil && now.seen.After(k.MergedAt) && w.o.Now().After(k.MergedAt.Add(3*w.o.Interval))
		if gone {
			out.uncompared = []string{fmt.Sprintf("%s was moved to %s, which does not have the merge, before that was planned", k.pr.BaseRef, shortRevision(now.Revision))}
		}
		return out, gone, nil
	}
	at := w.commits.at(with)
	if !at.complete() {
		return out, false, nil
	}
	shown, err := k.reviewOf(ctx, w.o.Git, k.MergeSHA)
	if err != nil {
		return out, false, err
	}
	m := merge{commit: at, head: k.Seen, explains: w.explains(k, at)}
	m.alone = at.Before != "" && (with == k.MergeSHA && at.Parent == at.Before || w.o.gives(ctx, k, at.Before, at.Tree))
	w.commits.reviewedAt(with, shown)
	return compare(shown, m), true, nil
}

// explains compares with the plans that other pull requests showed, including those of the same
// commit.
func (w *Watcher) explains(k *work, at commit) func(target, digest string) bool {
	return func(target, digest string) bool {
		if slices.Contains(at.Reviewed[target], digest) {
			return true
		}
		for _, other := range w.open {
			for _, r := range append(slices.Clone(other.Earlier), other.reviewed) {
				if other != k && r.Digests[target] == digest {
					return true
				}
			}
		}
		return false
	}
}

// unplanned names the missing plans of a merge after too long a wait.
func (c commit) unplanned(merge string) (out findings) {
	for _, target := range c.missing() {
		out.uncompared = append(out.uncompared, fmt.Sprintf("%s: it was not planned within %.0f hours of the merge", target, waiting.Hours()))
	}
	switch {
	case len(out.uncompared) > 0:
	case merge == "":
		out.uncompared = []string{"the forge does not say as which commit it was merged"}
	default:
		out.uncompared = []string{fmt.Sprintf("weir has not reached the commit %s within %.0f hours of the merge", shortRevision(merge), waiting.Hours())}
	}
	return out
}

// mergedAs returns the reviewed plan after the merge. If an earlier process made the plan, or
// another plan replaced it, weir knows only what the record holds.
func (k *work) mergedAs(r reviewed) report.Pull {
	p := k.shown
	if p.HeadSHA != r.Head || p.BaseSHA != r.Base || p.Digest != r.Digest {
		p = report.Pull{AsReviewed: p.AsReviewed}
	}
	p.BaseSHA, p.Digest, p.Digests = r.Base, r.Digest, r.Digests
	p.State, p.Differs, p.Uncompared, p.Compared, p.Stale, p.Reason = report.PullMerged, nil, nil, false, "", ""
	return p
}

func shortRevision(revision string) string { return revision[:min(7, len(revision))] }
