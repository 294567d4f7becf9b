// Package pulls plans pull requests. For each source with a forge one Watcher lists the open ones,
// merges each with what the source follows, plans what that would change, and shows it. It reads
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
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/simulate"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
)

// Git merges pull requests.
type Git interface {
	Pull(ctx context.Context, p source.PullRef) (source.Merge, error)
	Forget(head string) error
	// Descends reports whether a commit is another one, or descends from it.
	Descends(ctx context.Context, revision, from string) (bool, error)
}

// Display shows the state of pull requests. Its methods do not block.
type Display interface {
	// Begin says that a head was seen and is being planned.
	Begin(source string, number int64, sha string)
	Show(p report.Pull)
	// Deliver sends the final state of a pull request to the forge, which may not have it. All
	// other sinks have shown it before.
	Deliver(p report.Pull)
	// Owes reports whether the forge has not yet received the last state of a pull request that was
	// shown.
	Owes(source string, number int64) bool
	// Written compares weir's comment on a pull request, as the forge has it, with what weir
	// wrote last: intact if they are the same, edited if somebody else edited it since. whole
	// says that c has its whole text.
	Written(source string, c forge.Comment, whole bool) (intact, edited bool)
	// Again makes the next Show look for the comment, and write it in any case.
	Again(source string, number int64)
}

// Approver keeps approvals, and who gave them: a pull request, as SOURCE#NUMBER.
type Approver interface {
	// ApproveFrom lets plans run: the targets by the digests of their plans.
	ApproveFrom(from string, plans map[string]string, by string) error
	// Withdraw takes back the user's approvals: all, or those with a digest or its beginning.
	Withdraw(digest, from string) (unused []gates.Approval, begun []gates.Grant, err error)
}

// Metrics counts pull requests and their plans.
type Metrics interface {
	Pulls(source string, open map[report.PullState]int)
	PullPlan(source string, took time.Duration)
}

// Forge is the part of a forge that a Watcher reads and writes. forge.Client documents what each
// method promises.
type Forge interface {
	Profile() forge.Profile
	Self(ctx context.Context) (string, error)
	Pulls(ctx context.Context, after forge.Cursor) (list []forge.PullRequest, next forge.Cursor, unchanged bool, err error)
	Pull(ctx context.Context, number int64) (forge.PullRequest, error)
	MergedSince(ctx context.Context, since time.Time) (list []forge.PullRequest, whole bool, err error)
	Comments(ctx context.Context, number int64, since time.Time) ([]forge.Comment, error)
	CommentsSince(ctx context.Context, since time.Time) ([]forge.Comment, error)
	Permission(ctx context.Context, user string) (forge.Level, error)
	Edits(ctx context.Context, c forge.Comment) (forge.Edits, error)
	React(ctx context.Context, number, comment int64, r forge.Reaction) error
	CreateComment(ctx context.Context, number int64, body string) (forge.Comment, error)
}

// Options of a Watcher.
type Options struct {
	// Source is the source's name.
	Source string
	Forge  Forge
	Git    Git
	// Follows reports whether the source follows a ref, given by its full name.
	Follows func(ref string) bool
	// Base is the fleet that was composed last, nil before the first time.
	Base func() *fleet.Base
	// Accounts must only be used for plans.
	Accounts fleet.Accounts
	Policy   Policy
	Display  Display
	// Redact makes of a pull request what may be kept.
	Redact   report.Redact
	Approver Approver
	// Approved is called after approvals, and after trailers that take effect, so that
	// a pass may use them.
	Approved func()
	// Withdrawn is called after approvals of targets' plans were taken back that had begun.
	Withdrawn func(targets []string)
	DB        state.Store
	// Passive says that another weir owns the source, so that this one sends no request to the
	// forge and writes nothing. Rule and Images use the results of the owner, as Reread has read
	// them. Run is not called.
	Passive bool
	// PageURL is the address of weir's page, empty for none.
	PageURL string
	// Marker is in every comment that shows a plan.
	Marker string
	// Assume holds the assumptions of the forecast of a plan. Within bounds the time to compute it:
	// one second if 0.
	Assume simulate.Assumptions
	Within time.Duration
	// Interval is the time between two polls of the forge.
	Interval time.Duration
	// Turns are shared by watchers.
	Turns *Turns
	Event func(events.Event)
	// Heard has the texts of comments that webhooks reported. It outlives the Watcher where
	// several daemons take turns; nil for one of its own.
	Heard *Heard
	// Metrics may be nil.
	Metrics Metrics
	Logger  *slog.Logger
	// Now defaults to time.Now.
	Now func() time.Time
}

const (
	// within bounds one poll of the forge, and how long it takes to bring a head here.
	within = 2 * time.Minute
	// rendering bounds how long it takes to render what a pull request changes: the
	// largest changes that are allowed take minutes.
	rendering = 10 * time.Minute
	// answering bounds how long a plan waits for an AWS that does not answer.
	answering = time.Minute
	// foreseeing bounds how long it takes to find out what a plan would do over time.
	foreseeing = time.Second
	// beside bounds the plans of one source that are made in parallel. Most of the time they wait
	// for other systems.
	beside = 32
	// reporting is the time in which a forge is expected to report the merge that brought main to a
	// commit. A later report is handled as well, but in between a comment may show a plan that has
	// nothing left to do.
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
	// self is weir's own login, written by Run alone.
	self atomic.Pointer[string]
	// heard says that the forge has reported a change.
	heard   atomic.Bool
	listing listing
	// open are the pull requests into the followed branch. Run alone uses them.
	open openPulls
	// left holds the pull requests that are no longer open but must be remembered. They are not
	// shown as open.
	left map[int64]left
	// config is the configuration that the last round planned with.
	config *fleet.Config

	// beside bounds the plans made in parallel, and under counts the current ones. finished hands
	// their plans to Run, and has room for all.
	beside, under int
	// kept bounds the total size in bytes of all plans that are shown.
	kept     int
	plans    sync.WaitGroup
	finished chan *planning

	records   records
	standings standings
	commits   commits
	trailers  trailers
	images    images
}

// New returns a watcher. It makes no request yet.
func New(o Options) (*Watcher, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Within, o.Heard = cmp.Or(o.Within, foreseeing), cmp.Or(o.Heard, &Heard{})
	mine := records{&o}
	w := &Watcher{
		o: &o, log: o.Logger.With("source", o.Source), wake: make(chan struct{}, 1), open: openPulls{}, left: map[int64]left{}, beside: beside, kept: report.KeptPlans, finished: make(chan *planning, beside),
		records: mine, standings: standings{live: map[string]string{}, moved: map[string]time.Time{}, found: map[string][]string{}},
		commits: commits{records: mine}, trailers: trailers{records: mine}, images: images{records: mine},
	}
	w.trailers.listen = func() { w.Changed(0) }
	if o.Passive {
		return w, w.Reread()
	}
	return w, w.read()
}

// read reads all records, and takes them over: what a process before began has ended.
func (w *Watcher) read() error {
	known, err := w.records.all()
	if err != nil {
		return err
	}
	if err := errors.Join(w.commits.read(), w.Reread()); err != nil {
		return err
	}
	for _, r := range known {
		if r.Left {
			w.left[r.Number] = left{record: r}
			continue
		}
		w.open[r.Number] = &work{pr: forge.PullRequest{Number: r.Number, HeadSHA: r.Seen}, record: r}
	}
	return nil
}

// Reread reads what decides on the steps of targets: which another weir may have found out.
func (w *Watcher) Reread() error {
	return errors.Join(w.trailers.read(), w.images.read())
}

// Run polls and plans until ctx ends.
func (w *Watcher) Run(ctx context.Context) error {
	defer w.plans.Wait()
	defer w.commits.save()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake:
		case p := <-w.finished:
			w.finish(ctx, p)
		case <-timer.C:
		}
		next := w.round(ctx)
		timer.Reset(next)
	}
}

// Self is weir's own login on the forge, empty before it is known.
func (w *Watcher) Self() string {
	if p := w.self.Load(); p != nil {
		return *p
	}
	return ""
}

// Changed makes the watcher poll the forge, which has reported a change.
func (w *Watcher) Changed(int64) {
	w.heard.Store(true)
	w.pollSoon()
}

// Heard takes the text of a comment as a webhook had it.
func (w *Watcher) Heard(_ int64, comment forge.Heard) { w.o.Heard.add(comment) }

// Moved informs the watcher that the source came to another commit. It is called
// before anything of that commit is reported.
func (w *Watcher) Moved() {
	if base := w.o.Base(); base != nil && !w.o.Passive && w.commits.follow(base) {
		w.commits.save() // before anything of it is applied
	}
	w.pollSoon()
}

// Reported takes in what a pass found: whether AWS or the followed commit moved
// under a plan, and the first plan at a commit.
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

// Forget lets go of a target that has gone.
func (w *Watcher) Forget(target string) { w.standings.forget(target) }

// Rule limits which deletions the trailer of a target's commit allows. It is called
// for each pass; where nothing is known yet, what the trailer would let go waits,
// and the loop is woken once it is.
func (w *Watcher) Rule(d *reconciler.Desired, commit snapshot.Snapshot) { w.trailers.rule(d, commit) }

// Images gives a target the images that plans of its source's pull requests showed. Where
// these differ, and the commit changes the target, its steps wait until it is known which
// pull request the commit merges.
func (w *Watcher) Images(d *reconciler.Desired, commit snapshot.Snapshot) {
	if !w.images.give(d) || !d.Touched || d.Policy.Gates.Waits != "" {
		return
	}
	if _, known := w.trailers.ruled(commit); known {
		w.images.give(d) // it may have become known since
		return
	}
	d.Policy.Gates.Waits = "which pull request the commit " + shortRevision(commit.Revision) + " merges is unknown yet, and plans of several showed different images for it"
}

func (w *Watcher) pollSoon() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// round polls everything once, begins the plans that are due, and returns when to
// poll again. It waits for no plan.
func (w *Watcher) round(ctx context.Context) time.Duration {
	base := w.o.Base()
	if base == nil || base.View(w.o.Source).Snapshot.Revision == "" {
		return time.Second // which branch is followed may not be known yet
	}
	w.commits.follow(base)
	w.commits.save()
	w.configured(base.Config())
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
			w.inquire(ctx, inquiry)
		}
	}
	next = min(next, w.advanceAll(ctx, base))
	w.lastWords()
	w.images.prune()
	w.count()
	return max(next, 100*time.Millisecond)
}

// advanceAll does what there is to do for all pull requests.
func (w *Watcher) advanceAll(ctx context.Context, base *fleet.Base) time.Duration {
	next := w.o.Interval
	for _, number := range w.open.oldestFirst() {
		if ctx.Err() != nil {
			break
		}
		next = min(next, w.advance(ctx, base, w.open[number]))
	}
	return next
}

// configured plans everything again if the configuration differs from that of the last round: the
// properties of targets, and their inputs, are in no commit.
func (w *Watcher) configured(c *fleet.Config) {
	if w.config != nil && w.config != c {
		for _, k := range w.open {
			k.asked = k.asked || k.shown.State != "" || k.planning != nil
		}
	}
	w.config = c
}

// count says how many pull requests there are.
func (w *Watcher) count() {
	if w.o.Metrics == nil {
		return
	}
	open := map[report.PullState]int{}
	for _, k := range w.open {
		open[k.shown.State]++
	}
	w.o.Metrics.Pulls(w.o.Source, open)
}
