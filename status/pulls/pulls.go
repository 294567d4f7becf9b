// Package pulls plans pull requests. For each source with a forge, a Watcher lists the open pull requests,
// merges each with the followed commit, plans the result, and shows the plan. It executes commands in
// comments, and tracks each pull request until it ends:
//
//	list ──▶ gate ──▶ merge ──▶ review ──▶ plan ──▶ show
//	            ▲                 ▲ the followed commit and AWS change
//	            └── comments: weir plan, weir approve
//
// The content of a pull request is only input: it is rendered but never executed. It is planned with the
// role for plans and never applied. A fork is planned without any secret. This package never writes to AWS.
package pulls

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/wording"
)

const (
	// within is the timeout of one poll of the forge, and of the fetch of one head.
	within = 2 * time.Minute
	// rendering is the timeout of the render of a pull request. The largest permitted changes take minutes.
	rendering = 10 * time.Minute
	// answering is the maximum time that a plan waits while AWS does not answer.
	answering = time.Minute
	// foreseeing is the timeout of the simulation of a plan over time.
	foreseeing = time.Second
	// beside is the maximum number of parallel plans of one source. Most of the time, plans wait for other
	// systems.
	beside = 32
	// reporting is the time within which a forge usually reports a merge after Git has the commit. After a
	// later report, everything still works, but a comment may have shown a plan without remaining steps.
	reporting = 30 * time.Second
	// settling is the minimum time between the starts of two plans of a pull request whose targets change.
	settling = 5 * time.Second
	// waiting is the maximum time that a merged pull request waits for its commit to be applied.
	waiting = 24 * time.Hour
)

// Watcher plans the pull requests of one source. Run does the work. The other methods are safe for
// concurrent use and do not block.
type Watcher struct {
	o    *Options
	log  *slog.Logger
	wake chan struct{}
	self login
	// heard says that the forge has reported a change.
	heard atomic.Bool

	// Only Run uses these.
	pulls    *pullRequests
	listing  *listing
	comments *comments
	planner  *planner

	// These have their own locks.
	standings *standings
	commits   *commits
	trailers  *trailers
	images    *images
}

// New returns a watcher. It sends no request yet.
func New(o Options) (*Watcher, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Within, o.Heard = cmp.Or(o.Within, foreseeing), cmp.Or(o.Heard, &Heard{})
	w := &Watcher{o: &o, log: o.Logger.With("source", o.Source), wake: make(chan struct{}, 1)}
	mine := records{&o}
	w.standings = newStandings()
	w.commits, w.images = &commits{records: mine}, &images{records: mine}
	w.pulls = &pullRequests{records: mine, log: w.log, images: w.images, open: openPulls{}, left: map[int64]left{}, kept: report.KeptPlans}
	w.listing = &listing{records: mine, pulls: w.pulls, commits: w.commits, images: w.images}
	w.comments = &comments{records: mine, log: w.log, self: &w.self, pulls: w.pulls, listing: w.listing}
	w.planner = &planner{
		records: mine, log: w.log, pulls: w.pulls, listing: w.listing, commits: w.commits, standings: w.standings,
		merges: &mergeCheck{records: mine, log: w.log, pulls: w.pulls, commits: w.commits}, beside: beside, finished: make(chan *planning, beside),
	}
	w.trailers = &trailers{records: mine, log: w.log, pulls: w.pulls, images: w.images, listen: func() { w.Changed(0) }}
	if o.Passive {
		return w, w.Reread()
	}
	return w, errors.Join(w.pulls.read(), w.commits.read(), w.Reread())
}

// Reread reads the records that affect the steps of targets, because another weir may have changed them.
func (w *Watcher) Reread() error {
	return errors.Join(w.trailers.read(), w.images.read())
}

// Run polls and plans until ctx ends.
func (w *Watcher) Run(ctx context.Context) error {
	defer w.planner.wait()
	defer w.commits.save()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake:
		case p := <-w.planner.finished:
			w.planner.finish(ctx, p)
		case <-timer.C:
		}
		next := w.round(ctx)
		timer.Reset(next)
	}
}

// Self returns weir's own login on the forge, empty while it is unknown.
func (w *Watcher) Self() string { return w.self.get() }

// Changed makes the watcher poll the forge, which has reported a change.
func (w *Watcher) Changed(int64) {
	w.heard.Store(true)
	w.pollSoon()
}

// Heard stores the text of a comment that a webhook reported.
func (w *Watcher) Heard(_ int64, comment forge.Heard) { w.o.Heard.add(comment) }

// Moved tells the watcher that the source has reached another commit. It must be called before any report
// of that commit.
func (w *Watcher) Moved() {
	if base := w.o.Base(); base != nil && !w.o.Passive && w.commits.follow(base) {
		w.commits.save() // before weir applies any part of it
	}
	w.pollSoon()
}

// Reported processes the report of a pass. The report may show that AWS or the followed commit changed
// after a plan, or contain the first plan at a commit.
func (w *Watcher) Reported(r *plan.Report) {
	if r.Source != w.o.Source || w.o.Passive {
		return
	}
	w.images.realized(r)
	w.standings.record(r, w.o.Now())
	if w.commits.recordPlan(r) {
		w.pollSoon()
	}
}

// Forget forgets a removed target.
func (w *Watcher) Forget(target string) { w.standings.forget(target) }

// Rule limits the deletions that the trailer of a target's commit permits. It is called in every pass.
// While it is unknown which deletions are permitted, they wait. Options.Approved is called when that is
// known.
func (w *Watcher) Rule(d *reconciler.Desired, commit snapshot.Snapshot) { w.trailers.rule(d, commit) }

// Images adds the images that plans of its source's pull requests showed to a target. If these plans
// differ, and the commit changes the target, its steps wait until weir knows which pull request the commit
// merges.
func (w *Watcher) Images(d *reconciler.Desired, commit snapshot.Snapshot) {
	if !w.images.addReviewed(d) || !d.Touched || d.Policy.Gates.Waits != "" {
		return
	}
	if _, known := w.trailers.ruled(commit); known {
		w.images.addReviewed(d) // they may be known by now
		return
	}
	d.Policy.Gates.Waits = "which pull request the commit " + wording.Short(commit.Revision) + " merges is unknown yet, and plans of several showed different images for it"
}

func (w *Watcher) pollSoon() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// round polls everything once, starts the plans that are due, and returns the time until the next poll. It
// does not wait for plans.
func (w *Watcher) round(ctx context.Context) time.Duration {
	base := w.o.Base()
	if base == nil || base.View(w.o.Source).Snapshot.Revision == "" {
		return time.Second // the followed branch may not be known yet
	}
	w.commits.follow(base)
	w.commits.save()
	w.planner.configured(base.Config())
	inquiry, due := w.trailers.asked()
	if due {
		w.heard.Store(true)
	}
	err := w.poll(ctx)
	if err != nil && ctx.Err() == nil {
		w.log.Warn("pull requests cannot be read", "error", err)
	}
	next := w.o.Interval
	if wait := w.listing.revisit.Sub(w.o.Now()); wait > 0 {
		next = min(next, wait)
	}
	if inquiry != nil {
		if next = min(next, asking); due && err == nil {
			w.trailers.inquire(ctx, inquiry)
		}
	}
	next = min(next, w.planner.advanceAll(ctx, base))
	w.pulls.lastWords(!w.listing.read.IsZero())
	w.images.prune()
	if w.o.Metrics != nil {
		w.o.Metrics.Pulls(w.o.Source, w.pulls.states())
	}
	return max(next, 100*time.Millisecond)
}

// poll reads the forge, if the interval has passed or the forge has reported a change.
func (w *Watcher) poll(ctx context.Context) error {
	if !w.heard.Swap(false) && w.o.Now().Before(w.listing.due()) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	w.listing.listed = w.o.Now()
	if err := w.self.read(ctx, w.o.Forge); err != nil {
		return err
	}
	return errors.Join(w.listing.list(ctx), w.comments.read(ctx))
}

// login is weir's own login on the forge. Only Run calls read.
type login struct{ name atomic.Pointer[string] }

// get returns the login, empty while it is unknown.
func (l *login) get() string {
	if p := l.name.Load(); p != nil {
		return *p
	}
	return ""
}

// read reads the login if it is unknown.
func (l *login) read(ctx context.Context, f Forge) error {
	if l.name.Load() != nil {
		return nil
	}
	self, err := f.Self(ctx)
	if err == nil {
		l.name.Store(&self)
	}
	return err
}
