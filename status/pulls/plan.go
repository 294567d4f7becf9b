package pulls

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/status/report"
)

// errSilent ends a plan that waits for AWS too long, errSlow a plan whose render takes too long.
var (
	errSilent = fmt.Errorf("AWS did not answer within %s", answering)
	errSlow   = fmt.Errorf("its changes were not rendered within %s", rendering)
	// errMerging delays a plan that may be of an already merged pull request.
	errMerging = errors.New("the forge may report in a moment that it was merged")
)

// stage is the state of a pull request with regard to its plan.
type stage string

const (
	stageMerged    stage = "it is merged"
	stageUnread    stage = "it was not read since the restart"
	stageBlocked   stage = "it needs a permission to be planned"
	stagePlanning  stage = "its plan is under way"
	stageKilled    stage = "its plan killed a process, and nobody asked to try again"
	stageUnsettled stage = "its targets change; they may change more"
	stagePostponed stage = "a later time is set for its next plan"
	stagePlanned   stage = "its plan is up to date"
	stageDue       stage = "it must be planned"
)

// stageFacts holds the facts that decide the stage of a pull request.
type stageFacts struct {
	merged, read, blocked, planning bool
	// killed says that the plan of its head killed a process, asked that a user requests a plan.
	killed, asked bool
	// dirty says that targets changed since the plan, settling that the last plan started less than
	// 5 seconds ago.
	dirty, settling bool
	// current says that the plan is of this head and of the followed commit.
	current bool
	// retry says that a time is set for the next plan, later that it has not come.
	retry, later bool
}

// stage classifies the facts; the first case that fits decides.
func (f stageFacts) stage() stage {
	switch {
	case f.merged:
		return stageMerged
	case !f.read:
		return stageUnread
	case f.blocked:
		return stageBlocked
	case f.planning:
		return stagePlanning
	case f.killed && !f.asked:
		return stageKilled
	case f.dirty && f.settling:
		return stageUnsettled
	case f.later && !f.asked:
		return stagePostponed
	case f.current && !f.dirty && !f.asked && !f.retry:
		return stagePlanned
	}
	return stageDue
}

// advance acts on the stage of a pull request, and returns the time until it must be called again.
func (w *Watcher) advance(ctx context.Context, base *fleet.Base, k *work) time.Duration {
	at, now := base.View(w.o.Source).Snapshot.Revision, w.o.Now()
	dirty, blocked := w.standings.dirty(k) > 0, k.wait(w.o.Policy)
	is := stageFacts{
		merged: k.merged(), read: k.pr.HeadSHA != "" && k.pr.BaseRef != "", blocked: blocked != "", planning: k.planning != nil,
		killed: k.Killed == k.pr.HeadSHA, asked: k.asked, dirty: dirty, settling: now.Before(k.planned.Add(settling)),
		current: k.shown.HeadSHA == k.pr.HeadSHA && k.base == at, retry: !k.due.IsZero(), later: k.due.After(now),
	}.stage()
	switch is {
	case stageMerged:
		return w.settle(ctx, base, k)
	case stageBlocked:
		k.drop()
		k.asked = false
		if k.shown.State != report.PullWaiting || !k.shows(blocked) {
			w.show(k, report.Pull{State: report.PullWaiting, Reason: blocked})
		}
	case stageKilled:
		if !k.shows(killedText) {
			w.log.Error("a pull request is not planned: an earlier attempt killed the process", "pull", k.Number, "head", k.pr.HeadSHA)
			w.show(k, report.Pull{State: report.PullFailing, Reason: killedText})
		}
	case stageUnsettled:
		return settling
	case stagePostponed:
		return k.due.Sub(now)
	case stagePlanned:
		w.describe(k)
	case stageDue:
		if w.under < w.beside && (!k.heavy || w.o.Turns.takeHeavy()) { // else when a running plan finishes
			w.plan(ctx, base, at, k, dirty)
		}
	case stageUnread, stagePlanning: // a later event continues it
	}
	return w.o.Interval
}

// shows reports whether the reason why a pull request is not planned is shown already.
func (k *work) shows(reason string) bool {
	return k.shown.Reason == reason && k.shown.HeadSHA == k.pr.HeadSHA && k.shown.Title == k.pr.Title
}

// describe shows a new title and the like.
func (w *Watcher) describe(k *work) {
	switch {
	case k.shown.Title == k.pr.Title:
	case k.shown.Unkept:
		k.asked = true
	default:
		w.show(k, k.shown)
	}
}

// killedText says why a pull request is not planned by itself, and what to do.
const killedText = "weir was killed while it planned this commit and does not retry by itself: push another commit, or comment weir plan to try again"

// plan begins a plan of a pull request against the commit that is followed.
func (w *Watcher) plan(ctx context.Context, base *fleet.Base, at string, k *work, dirty bool) {
	// An earlier process's text about the head stands until there is something newer.
	if k.shown.HeadSHA != k.pr.HeadSHA && (!k.Reported || k.Head != k.pr.HeadSHA) {
		w.o.Display.Begin(w.o.Source, k.Number, k.pr.HeadSHA)
		k.Reported = true // so that its end is reported too, even without a plan
	}
	ctx, stop := context.WithCancel(ctx)
	p := &planning{records: w.records, k: k, was: *k, heavy: k.heavy, base: base, at: at, dirty: dirty, early: w.listing.read.Before(w.commits.reportedBy(at)), from: w.o.Now(), began: time.Now(), stop: stop}
	k.planning, k.asked, k.Killed = p, false, ""
	w.under++
	w.plans.Go(func() {
		defer stop()
		p.shown, p.review, p.err = p.propose(ctx)
		w.finished <- p
	})
}

// finish reports the result of a plan.
func (w *Watcher) finish(ctx context.Context, p *planning) {
	k, head, at, shown, err := p.k, p.was.pr.HeadSHA, p.at, p.shown, p.err
	w.under--
	k.planning = nil
	if ctx.Err() != nil || p.dropped || w.open[k.Number] != k {
		return
	}
	if k.heavy = p.heavy || errors.Is(err, fleet.ErrHeavy); k.heavy && !p.heavy {
		k.asked = k.asked || p.was.asked
		return
	}
	if w.o.Metrics != nil {
		w.o.Metrics.PullPlan(w.o.Source, time.Since(p.began))
	}
	k.planned, k.slow = p.from, p.slow
	var moved *source.MovedError
	switch {
	case errors.Is(err, errMerging):
		// The reviewed plan stays, for the merge to be compared with.
		w.again(k)
		k.tries = 0
		if by := w.commits.reportedBy(at); by.After(w.o.Now()) {
			k.due, w.listing.revisit = by, by
		}
		return
	case errors.As(err, &moved):
		// The forge's list and its Git are of different moments.
		w.listing.again()
		w.again(k)
		return
	case err != nil:
		w.again(k)
		if k.shown.HeadSHA == head && k.shown.State == report.PullPlanned && !k.shown.Unkept {
			shown = k.shown
			shown.Stale = "weir could not plan again: " + err.Error()
		} else {
			shown = report.Pull{State: report.PullFailing, BaseSHA: at, Reason: err.Error()}
		}
		w.show(k, shown)
		return
	}
	k.base = at
	if p.review == nil {
		return // unchanged
	}
	k.review = p.review
	shown.Before = w.standings.before(shown.Reports)
	if broken(shown.Reports) {
		w.again(k)
	} else {
		k.tries, k.due = 0, time.Time{}
	}
	w.show(k, shown)
}

// again schedules the next try after a temporary failure, with a growing delay.
func (w *Watcher) again(k *work) {
	k.tries++
	k.due = w.o.Now().Add(min(w.o.Interval<<min(k.tries-1, 6), 30*time.Minute))
}

// broken reports whether something other than the commit kept a target from being planned, or may
// have: what is missing in AWS may exist later.
func broken(reports []*plan.Report) bool {
	return slices.ContainsFunc(reports, func(r *plan.Report) bool { return r.Err != nil || r.Plan != nil && r.Diagnostics.HasErrors() })
}

// show reports the state of a pull request.
func (w *Watcher) show(k *work, p report.Pull) {
	p.Source, p.Number = w.o.Source, k.Number
	p.Title, p.Author, p.WebURL = k.pr.Title, k.pr.Author, k.pr.WebURL
	p.Fork = k.pr.Fork
	p.HeadSHA, p.BaseRef, p.MergeSHA = k.pr.HeadSHA, k.pr.BaseRef, k.MergeSHA
	p.PlannedAt = k.planned
	if w.o.PageURL != "" {
		p.PageURL = fmt.Sprintf("%s/pulls/%s/%d", strings.TrimSuffix(w.o.PageURL, "/"), url.PathEscape(w.o.Source), k.Number)
	}
	if p.Digest != k.Digest || p.Digest == "" {
		k.Approved = ""
	}
	p.Approved, p.Unkept = k.Approved, false
	again := len(p.Reports) > 0 && slices.Equal(p.Reports, k.shown.Reports) // with another title
	p = p.Lean()
	k.shown, k.bytes = p, p.Bytes()
	if !again {
		w.images.keep(k, p)
	}
	w.o.Display.Show(p)
	k.note(p)
	w.records.save(k)
	w.boundPlans()
}

// boundPlans lets go of the plans that were made the longest ago, where all of them are
// too much.
func (w *Watcher) boundPlans() {
	held := 0
	for _, number := range slices.Backward(w.open.oldestFirst()) {
		k := w.open[number]
		if held += k.bytes; held > w.kept && k.bytes > 0 {
			held -= k.bytes
			k.shown.Reports, k.shown.Forecast, k.shown.Unkept, k.bytes = nil, nil, true, 0
		}
	}
}
