package pulls

import (
	"context"
	"errors"
	"time"

	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// listing records how far the list of open pull requests was read.
type listing struct {
	// cursor is the position of the last read, listed the time of the last try.
	cursor forge.Cursor
	listed time.Time
	// read is the time of the request for the list that was read last. revisit is the time of the
	// next request, whatever read is.
	read, revisit time.Time
	// missing counts the answers in a row that the forge does not have the list.
	missing int
}

// soon is the delay before the list is read again after the forge answered that something does not
// exist, and mostSoon bounds these reads: the forge processes the first push for a second or two.
const (
	soon     = 2 * time.Second
	mostSoon = 5
)

// early notes whether the forge had the list, and requests it again soon if it did not.
func (l *listing) early(err error, now time.Time) {
	var refusal *forgehttp.Error
	if !errors.As(err, &refusal) || refusal.Fault != forgehttp.FaultMissing {
		l.missing = 0
		return
	}
	if l.missing++; l.missing <= mostSoon {
		l.revisit = now.Add(soon)
	}
}

// again makes the next poll read the whole list, though the forge reports no change.
func (l *listing) again() { l.cursor = "" }

// due returns the time of the next read of the list.
func (l *listing) due(interval time.Duration) time.Time {
	due := l.listed.Add(interval)
	if l.listed.Before(l.revisit) && l.revisit.Before(due) {
		due = l.revisit
	}
	return due
}

// poll reads the forge, if it is time to or the forge has reported a change.
func (w *Watcher) poll(ctx context.Context) error {
	if !w.heard.Swap(false) && w.o.Now().Before(w.listing.due(w.o.Interval)) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	w.listing.listed = w.o.Now()
	if w.self.Load() == nil {
		self, err := w.o.Forge.Self(ctx)
		if err != nil {
			return err
		}
		w.self.Store(&self)
	}
	return errors.Join(w.list(ctx), readComments(ctx, w))
}

// list takes in the open pull requests, and sees those to their end that are not
// open any more.
func (w *Watcher) list(ctx context.Context) error {
	asked := w.o.Now()
	list, cursor, unchanged, err := w.o.Forge.Pulls(ctx, w.listing.cursor)
	w.listing.early(err, w.o.Now())
	if err != nil {
		w.listing.again()
		return err
	}
	w.listing.cursor, w.listing.read = cursor, asked
	if unchanged {
		return nil
	}
	listed := map[int64]bool{}
	for _, pr := range list {
		if w.o.Follows("refs/heads/" + pr.BaseRef) {
			listed[pr.Number] = true
			w.update(pr)
		}
	}
	var errs []error
	for _, number := range w.open.numbers() {
		if k := w.open[number]; !listed[number] && k.MergeSHA == "" {
			errs = append(errs, w.gone(ctx, k))
		}
	}
	return errors.Join(errs...)
}

// update takes in an open pull request.
func (w *Watcher) update(pr forge.PullRequest) {
	k := w.open[pr.Number]
	if k == nil {
		k = &work{record: record{Number: pr.Number, Comment: w.left[pr.Number].Comment}}
		delete(w.left, pr.Number)
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
	w.records.save(k)
}
