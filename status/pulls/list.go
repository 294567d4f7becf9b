package pulls

import (
	"context"
	"errors"
	"time"

	"github.com/weir-gitops/weir/status/forge"
)

// look reads the forge, where it is time to or the forge told of a change.
func (w *Watcher) look(ctx context.Context) error {
	w.mu.Lock()
	heard := w.heard
	w.heard = false
	w.mu.Unlock()
	due := w.listed.Add(w.o.Interval)
	if w.listed.Before(w.revisit) && w.revisit.Before(due) {
		due = w.revisit
	}
	if !heard && w.o.Now().Before(due) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	w.listed = w.o.Now()
	if w.self.Load() == nil {
		self, err := w.o.Forge.Self(ctx)
		if err != nil {
			return err
		}
		w.self.Store(&self)
	}
	return errors.Join(w.list(ctx), w.comments(ctx))
}

// list takes in the open pull requests, and sees those to their end that are not
// open any more.
func (w *Watcher) list(ctx context.Context) error {
	asked := w.o.Now()
	list, cursor, unchanged, err := w.o.Forge.Pulls(ctx, w.cursor)
	if err != nil {
		w.heardAgain()
		return err
	}
	w.cursor, w.read = cursor, asked
	if unchanged {
		return nil
	}
	listed := map[int64]bool{}
	for _, pr := range list {
		if w.o.Follows("refs/heads/" + pr.BaseRef) {
			listed[pr.Number] = true
			w.take(pr)
		}
	}
	var errs []error
	for _, number := range w.numbers() {
		if k := w.open[number]; !listed[number] && k.MergeSHA == "" {
			errs = append(errs, w.gone(ctx, k))
		}
	}
	return errors.Join(errs...)
}

// heardAgain has the next round look anew, though nobody tells of it once more.
func (w *Watcher) heardAgain() {
	w.cursor = ""
}

// take takes in an open pull request.
func (w *Watcher) take(pr forge.PullRequest) {
	k := w.open[pr.Number]
	if k == nil {
		k = &work{record: record{Number: pr.Number}}
		w.open[pr.Number] = k
	}
	k.pr, k.MergeSHA, k.MergedAt = pr, "", time.Time{}
	if k.Seen == pr.HeadSHA {
		k.label(w.o.Policy, false)
		return
	}
	k.drop()
	k.Seen, k.SeenAt, k.tries, k.due, k.slow, k.heavy = pr.HeadSHA, pr.UpdatedAt, 0, time.Time{}, false, false
	k.label(w.o.Policy, true)
	w.save(k)
}
