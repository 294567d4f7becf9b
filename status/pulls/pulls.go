// Package pulls plans pull requests. For each source with a forge one Watcher lists the open ones,
// merges each with the followed commit, plans the result, and shows the plan. It reads
// the commands in comments, and follows a pull request to its end:
//
//	list ──▶ gate ──▶ merge ──▶ review ──▶ plan ──▶ show
//	            ▲                 ▲ the followed commit and AWS change
//	            └── comments: weir plan, weir approve
//
// The content of a pull request is input and nothing else: it is rendered and never run, planned
// with the role for plans and never applied, and from a fork without any secret. Nothing here
// writes to AWS.
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
	// within bounds one poll of the forge, and the fetch of one head.
	within = 2 * time.Minute
	// rendering bounds the render of a pull request: the largest allowed changes take minutes.
	rendering = 10 * time.Minute
	// answering bounds the time that a plan waits while AWS does not answer.
	answering = time.Minute
	// foreseeing bounds the simulation of a plan over time.
	foreseeing = time.Second
	// beside bounds the plans of one source that are made in parallel. Most of the time they wait
	// for other systems.
	beside = 32
	// reporting is the time in which a forge usually reports a merge after Git has the commit. weir
	// handles a later report too, but until then a comment may show a plan that has no steps left.
	reporting = 30 * time.Second
	// settling is the shortest time between the starts of two plans of a pull request whose targets
	// change.
	settling = 5 * time.Second
	// waiting bounds the time that a merged pull request waits for its commit to be applied.
	waiting = 24 * time.Hour
)

// Watcher plans the pull requests of one source. Run does the work; the other
// methods may be called at any time and do not block.
type Watcher struct {
	o    *Options
	log  *slog.Logger
	wake chan struct{}
	self login
	// heard says that the forge has reported a change.
	heard atomic.Bool

	// Run alone uses these.
	pulls    *pullRequests
	listing  *listing
	comments *comments
	planner  *planner

	// These have locks of their own.
	standings *standings
	commits   *commits
	trailers  *trailers
	images    *images
}

// New returns a watcher. It makes no request yet.
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

// Reread reads the records that decide on the steps of targets: another weir may have changed them.
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

// Heard records the text of a comment that a webhook reported.
func (w *Watcher) Heard(_ int64, comment forge.Heard) { w.o.Heard.add(comment) }

// Moved informs the watcher that the source has reached another commit. It is called before any
// report of that commit.
func (w *Watcher) Moved() {
	if base := w.o.Base(); base != nil && !w.o.Passive && w.commits.follow(base) {
		w.commits.save() // before weir applies any of it
	}
	w.pollSoon()
}

// Reported processes the report of a pass: it may show that AWS or the followed commit changed after
// a plan was made, or contain the first plan at a commit.
func (w *Watcher) Reported(r *plan.Report) {
	if r.Source != w.o.Source || w.o.Passive {
		return
	}
	w.images.realized(r)
	w.standings.record(r, w.o.Now())
	if w.commits.note(r) {
		w.pollSoon()
	}
}

// Forget forgets a removed target.
func (w *Watcher) Forget(target string) { w.standings.forget(target) }

// Rule limits the deletions that the trailer of a target's commit allows. It is called for every
// pass. While it is unknown which deletions count, they wait, and Options.Approved is called once it
// is known.
func (w *Watcher) Rule(d *reconciler.Desired, commit snapshot.Snapshot) { w.trailers.rule(d, commit) }

// Images gives a target the images that plans of its source's pull requests showed. If these plans
// differ, and the commit changes the target, its steps wait until it is known which pull request the
// commit merges.
func (w *Watcher) Images(d *reconciler.Desired, commit snapshot.Snapshot) {
	if !w.images.give(d) || !d.Touched || d.Policy.Gates.Waits != "" {
		return
	}
	if _, known := w.trailers.ruled(commit); known {
		w.images.give(d) // it may have become known since
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

// round polls everything once, starts the plans that are due, and returns the time until the next
// poll. It waits for no plan.
func (w *Watcher) round(ctx context.Context) time.Duration {
	base := w.o.Base()
	if base == nil || base.View(w.o.Source).Snapshot.Revision == "" {
		return time.Second // which branch is followed may not be known yet
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

// login is weir's own login on the forge. Run alone calls read.
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
