package pulls

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/report"
)

// listing reads the list of open pull requests, and determines the result of pull requests that are no
// longer in it. Only Run uses it.
type listing struct {
	records
	pulls   *pullRequests
	commits *commits
	images  *images

	// cursor is the position of the last read, and listed the time of the last attempt.
	cursor forge.Cursor
	listed time.Time
	// read is the time of the request for the last list that was read. revisit is the time of the next
	// request, independent of read.
	read, revisit time.Time
	// missing is the number of consecutive responses that the list does not exist.
	missing int
}

// soon is the delay before the list is read again after the forge responded that something does not exist.
// mostSoon bounds these reads. Forges process the first push for a second or two.
const (
	soon     = 2 * time.Second
	mostSoon = 5
)

// early records whether the forge had the list, and requests it again soon if it did not.
func (l *listing) early(err error) {
	var refusal *forgehttp.Error
	if !errors.As(err, &refusal) || refusal.Fault != forgehttp.FaultMissing {
		l.missing = 0
		return
	}
	if l.missing++; l.missing <= mostSoon {
		l.revisit = l.Now().Add(soon)
	}
}

// again makes the next poll read the whole list even if the forge reports no change.
func (l *listing) again() { l.cursor = "" }

// due returns the time of the next read of the list.
func (l *listing) due() time.Time {
	due := l.listed.Add(l.Interval)
	if l.listed.Before(l.revisit) && l.revisit.Before(due) {
		due = l.revisit
	}
	return due
}

// list reads the open pull requests, and handles pull requests that are no longer open.
func (l *listing) list(ctx context.Context) error {
	asked := l.Now()
	list, cursor, unchanged, err := l.Forge.Pulls(ctx, l.cursor)
	l.early(err)
	if err != nil {
		l.again()
		return err
	}
	l.cursor, l.read = cursor, asked
	if unchanged {
		return nil
	}
	listed := map[int64]bool{}
	for _, pr := range list {
		if l.Follows("refs/heads/" + pr.BaseRef) {
			listed[pr.Number] = true
			l.pulls.update(pr)
		}
	}
	var errs []error
	for _, number := range l.pulls.open.numbers() {
		if k := l.pulls.open[number]; !listed[number] && k.MergeSHA == "" {
			errs = append(errs, l.gone(ctx, k))
		}
	}
	return errors.Join(errs...)
}

// gone determines the result of a pull request that is no longer open, or no longer targets the followed
// branch.
func (l *listing) gone(ctx context.Context, k *openPull) error {
	pr, err := l.Forge.Pull(ctx, k.Number)
	if forge.Gone(err) {
		if k.Reported {
			l.pulls.show(k, report.Pull{State: report.PullClosed, Reason: "the forge no longer has it"})
		}
		l.pulls.forget(k)
		return nil
	}
	if err != nil {
		l.again() // read the list again even if it is unchanged
		return err
	}
	follows := l.Follows("refs/heads/" + pr.BaseRef)
	byHand, err := l.mergedByHand(ctx, k, pr)
	if err != nil {
		l.again()
		return err
	}
	switch {
	case pr.State == forge.Open && follows:
		l.pulls.update(pr) // the list was outdated
	case follows && (pr.State == forge.Merged || byHand != ""):
		k.drop()
		k.pr, k.Seen, k.MergeSHA = pr, cmp.Or(pr.HeadSHA, k.Seen), cmp.Or(pr.MergeSHA, byHand)
		if !k.merged() {
			k.MergedAt = l.Now()
		}
		if k.MergeSHA == "" {
			l.again() // the forge may report the commit later
		}
		l.save(k)
		l.images.markMerged(k.Number)
	default:
		k.pr = pr
		reason := ""
		if pr.State == forge.Open {
			reason = "its target branch has changed"
		}
		if k.Reported {
			l.pulls.show(k, report.Pull{State: report.PullClosed, Reason: reason})
		}
		l.pulls.forget(k)
	}
	return nil
}

// mergedByHand returns the commit that brought the head of a closed pull request into the followed branch,
// "" if none exists. Not every forge reports a pull request as merged if a user pushed the merge.
func (l *listing) mergedByHand(ctx context.Context, k *openPull, pr forge.PullRequest) (string, error) {
	if pr.State != forge.Closed || pr.HeadSHA == "" {
		return "", nil
	}
	with, err := l.commits.bringing(ctx, pr.HeadSHA)
	if err != nil || with == "" {
		return "", err
	}
	r, err := k.reviewOf(ctx, l.Git, with)
	if err != nil || r.Base == "" {
		return "", err // the branch already contained the head
	}
	return with, nil
}
