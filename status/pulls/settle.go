package pulls

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/wording"
)

// mergeCheck compares the applied plans of merged pull requests with the reviewed plans, and ends the pull
// requests.
type mergeCheck struct {
	records
	log     *slog.Logger
	pulls   *pullRequests
	commits *commits
}

// compareMerge compares the applied plan with the reviewed plan as soon as both are available, and then
// ends the pull request. It returns the time until it must be called again.
func (m *mergeCheck) compareMerge(ctx context.Context, base *fleet.Base, k *openPull) time.Duration {
	over := m.Now().After(k.MergedAt.Add(waiting))
	found, known, err := m.judge(ctx, base, k)
	shown, err2 := k.reviewOf(ctx, m.Git, k.MergeSHA)
	if err = errors.Join(err, err2); err != nil && !over {
		m.log.Debug("a merge cannot be compared yet", "pull", k.Number, "error", err)
		return m.Interval
	}
	switch {
	case known:
	case !over:
		if k.shown.State != report.PullMerged && k.Reported {
			m.pulls.show(k, k.mergedAs(shown))
		}
		return m.Interval
	default:
		found = m.commits.at(k.MergeSHA).unplanned(k.MergeSHA)
	}
	if k.Reported {
		for _, line := range found.differs {
			m.Event(events.Event{Kind: "plan-differs", Source: m.Source, Text: fmt.Sprintf("pull request %d: %s", k.Number, line)})
		}
		for _, line := range found.uncompared {
			m.log.Info("a merge cannot be compared", "pull", k.Number, "why", line)
		}
		p := k.mergedAs(shown)
		p.Differs, p.Uncompared, p.Compared = found.differs, found.uncompared, known && len(found.uncompared) == 0
		m.pulls.show(k, p)
	}
	m.pulls.forget(k)
	return m.Interval
}

// judge compares the plan of a merge with the reviewed one. known is false while it waits for the forge,
// the source or plans.
func (m *mergeCheck) judge(ctx context.Context, base *fleet.Base, k *openPull) (out findings, known bool, err error) {
	view := base.View(m.Source)
	if k.MergeSHA == "" {
		// The forge does not report the merge commit. Git shows it if main contains the head.
		with, err := m.commits.bringing(ctx, k.Seen)
		if err != nil || with == "" {
			return out, false, err
		}
		k.MergeSHA = with
		m.save(k)
	}
	with, err := m.commits.bringing(ctx, k.MergeSHA)
	if err != nil {
		return out, false, err
	}
	if with == "" {
		// The source may not have reached the merge yet, because the forge may report it first. In
		// that case, weir waits. A source that has since moved to another commit will not reach it.
		now := m.commits.at(view.Snapshot.Revision)
		gone := view.Err == nil && now.seen.After(k.MergedAt) && m.Now().After(k.MergedAt.Add(3*m.Interval))
		if gone {
			out.uncompared = []string{fmt.Sprintf("%s was moved to %s, which does not contain the merge, before weir planned the merge", k.pr.BaseRef, wording.Short(now.Revision))}
		}
		return out, gone, nil
	}
	at := m.commits.at(with)
	if !at.complete() {
		return out, false, nil
	}
	shown, err := k.reviewOf(ctx, m.Git, k.MergeSHA)
	if err != nil {
		return out, false, err
	}
	merged := merge{commit: at, head: k.Seen, explains: m.pulls.explains(k, at)}
	merged.alone = at.Before != "" && (with == k.MergeSHA && at.Parent == at.Before || m.gives(ctx, k, at.Before, at.Tree))
	m.commits.reviewedAt(with, shown)
	return compare(shown, merged), true, nil
}

// unplanned describes the missing plans of a merge after too long a wait.
func (c commit) unplanned(merge string) (out findings) {
	for _, target := range c.missing() {
		out.uncompared = append(out.uncompared, fmt.Sprintf("%s: it was not planned within %.0f hours of the merge", target, waiting.Hours()))
	}
	switch {
	case len(out.uncompared) > 0:
	case merge == "":
		out.uncompared = []string{"the forge does not say as which commit it was merged"}
	default:
		out.uncompared = []string{fmt.Sprintf("weir has not reached the commit %s within %.0f hours of the merge", wording.Short(merge), waiting.Hours())}
	}
	return out
}

// mergedAs returns the reviewed plan after the merge. If an earlier process made the plan, or another plan
// replaced it, only the data in the record is available.
func (k *openPull) mergedAs(r reviewed) report.Pull {
	p := k.shown
	if p.HeadSHA != r.Head || p.BaseSHA != r.Base || p.Digest != r.Digest {
		p = report.Pull{AsReviewed: p.AsReviewed}
	}
	p.BaseSHA, p.Digest, p.Digests = r.Base, r.Digest, r.Digests
	p.State, p.Differs, p.Uncompared, p.Compared, p.Stale, p.Reason = report.PullMerged, nil, nil, false, "", ""
	return p
}
