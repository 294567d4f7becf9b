package pulls

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/status/report"
)

// errSilent ends a plan that waits for AWS too long, and errSlow a plan whose render takes too long.
var (
	errSilent = fmt.Errorf("AWS did not answer within %s", answering)
	errSlow   = fmt.Errorf("its changes were not rendered within %s", rendering)
	// errMerging delays a plan of a pull request that may already be merged.
	errMerging = errors.New("the forge may report in a moment that it was merged")
)

// planner plans pull requests, and tracks each until it ends. Only Run uses it. The plans run in parallel
// with Run.
type planner struct {
	records
	log       *slog.Logger
	pulls     *pullRequests
	listing   *listing
	commits   *commits
	standings *standings
	merges    *mergeCheck
	// config is the configuration of the last round.
	config *fleet.Config

	// beside is the maximum number of parallel plans, and under the current number. finished passes results
	// to Run, with room for all plans.
	beside, under int
	plans         sync.WaitGroup
	finished      chan *planning
}

// wait waits until all plans in progress have ended.
func (pl *planner) wait() { pl.plans.Wait() }

// configured plans everything again if the configuration has changed since the last round, because it
// contains properties and inputs of targets that are in no commit.
func (pl *planner) configured(c *fleet.Config) {
	if pl.config != nil && pl.config != c {
		pl.pulls.planAgain()
	}
	pl.config = c
}

// advanceAll advances all pull requests, and returns the time until it must be called again.
func (pl *planner) advanceAll(ctx context.Context, base *fleet.Base) time.Duration {
	next := pl.Interval
	for _, number := range pl.pulls.open.oldestFirst() {
		if ctx.Err() != nil {
			break
		}
		next = min(next, pl.advance(ctx, base, pl.pulls.open[number]))
	}
	return next
}

// advance acts on the stage of a pull request, and returns the time until it must be called again.
func (pl *planner) advance(ctx context.Context, base *fleet.Base, k *openPull) time.Duration {
	at, now := base.View(pl.Source).Snapshot.Revision, pl.Now()
	dirty, blocked := pl.standings.dirty(k) > 0, k.wait(pl.Policy)
	is := stageFacts{
		merged: k.merged(), read: k.pr.HeadSHA != "" && k.pr.BaseRef != "", blocked: blocked != "", planning: k.planning != nil,
		killed: k.Killed == k.pr.HeadSHA, asked: k.asked, dirty: dirty, settling: now.Before(k.planned.Add(settling)),
		current: k.shown.HeadSHA == k.pr.HeadSHA && k.base == at, retry: !k.due.IsZero(), later: k.due.After(now),
	}.stage()
	switch is {
	case stageMerged:
		return pl.merges.compareMerge(ctx, base, k)
	case stageBlocked:
		k.drop()
		k.asked = false
		if k.shown.State != report.PullWaiting || !k.shows(blocked) {
			pl.pulls.show(k, report.Pull{State: report.PullWaiting, Reason: blocked})
		}
	case stageKilled:
		if !k.shows(killedText) {
			pl.log.Error("a pull request is not planned: an earlier attempt killed the process", "pull", k.Number, "head", k.pr.HeadSHA)
			pl.pulls.show(k, report.Pull{State: report.PullFailing, Reason: killedText})
		}
	case stageUnsettled:
		return settling
	case stagePostponed:
		return k.due.Sub(now)
	case stagePlanned:
		pl.describe(k)
	case stageDue:
		if pl.under < pl.beside && (!k.heavy || pl.Turns.takeHeavy()) { // otherwise when a running plan ends
			pl.plan(ctx, base, at, k, dirty)
		}
	case stageUnread, stagePlanning: // a later event continues it
	}
	return pl.Interval
}

// describe shows a changed title.
func (pl *planner) describe(k *openPull) {
	switch {
	case k.shown.Title == k.pr.Title:
	case k.shown.Unkept:
		k.asked = true
	default:
		pl.pulls.show(k, k.shown)
	}
}

// killedText explains that weir does not retry a plan by itself, and describes the remedy.
const killedText = "weir was killed while it planned this commit and does not retry by itself: push another commit, or comment weir plan to try again"

// plan starts a plan of a pull request against the followed commit.
func (pl *planner) plan(ctx context.Context, base *fleet.Base, at string, k *openPull, dirty bool) {
	// The state that an earlier process showed for this head stays until there is a newer one.
	if k.shown.HeadSHA != k.pr.HeadSHA && (!k.Reported || k.Head != k.pr.HeadSHA) {
		pl.Display.Begin(pl.Source, k.Number, k.pr.HeadSHA)
		k.Reported = true // so that its end is reported, even without a plan
	}
	ctx, stop := context.WithCancel(ctx)
	p := &planning{records: pl.records, k: k, was: *k, heavy: k.heavy, base: base, at: at, dirty: dirty, early: pl.listing.read.Before(pl.commits.reportedBy(at)), from: pl.Now(), began: time.Now(), stop: stop}
	k.planning, k.asked, k.Killed = p, false, ""
	pl.under++
	pl.plans.Go(func() {
		defer stop()
		p.shown, p.review, p.err = p.propose(ctx)
		pl.finished <- p
	})
}

// finish shows the result of a plan, and decides whether the pull request is planned again. It drops the
// result if the pull request has been closed meanwhile, and leaves a result that needs the slot for heavy
// work to a later plan.
func (pl *planner) finish(ctx context.Context, p *planning) {
	k, head, at, shown, err := p.k, p.was.pr.HeadSHA, p.at, p.shown, p.err
	pl.under--
	k.planning = nil
	if ctx.Err() != nil || p.dropped || pl.pulls.open[k.Number] != k {
		return
	}
	if k.heavy = p.heavy || errors.Is(err, fleet.ErrHeavy); k.heavy && !p.heavy {
		k.asked = k.asked || p.was.asked
		return
	}
	if pl.Metrics != nil {
		pl.Metrics.PullPlan(pl.Source, time.Since(p.began))
	}
	k.planned, k.slow = p.from, p.slow
	var moved *source.MovedError
	switch {
	case errors.Is(err, errMerging):
		// The reviewed plan stays, because the merge will be compared with it.
		pl.again(k)
		k.tries = 0
		if by := pl.commits.reportedBy(at); by.After(pl.Now()) {
			k.due, pl.listing.revisit = by, by
		}
		return
	case errors.As(err, &moved):
		// The forge's list and its Git repository are from different moments.
		pl.listing.again()
		pl.again(k)
		return
	case err != nil:
		pl.again(k)
		if k.shown.HeadSHA == head && k.shown.State == report.PullPlanned && !k.shown.Unkept {
			shown = k.shown
			shown.Stale = "weir could not plan again: " + err.Error()
		} else {
			shown = report.Pull{State: report.PullFailing, BaseSHA: at, Reason: err.Error()}
		}
		pl.pulls.show(k, shown)
		return
	}
	k.base = at
	if p.review == nil {
		return // the shown plan is still valid
	}
	k.review = p.review
	shown.Before = pl.standings.before(shown.Reports)
	if broken(shown.Reports) {
		pl.again(k)
	} else {
		k.tries, k.due = 0, time.Time{}
	}
	pl.pulls.show(k, shown)
}

// again schedules the next attempt after a temporary failure, with a growing delay.
func (pl *planner) again(k *openPull) {
	k.tries++
	k.due = pl.Now().Add(min(pl.Interval<<min(k.tries-1, 6), 30*time.Minute))
}

// broken reports whether a cause outside of the commit kept, or may have kept, a target from being planned:
// a resource that is missing in AWS may exist later.
func broken(reports []*plan.Report) bool {
	return slices.ContainsFunc(reports, func(r *plan.Report) bool { return r.Err != nil || r.Plan != nil && r.Diagnostics.HasErrors() })
}
