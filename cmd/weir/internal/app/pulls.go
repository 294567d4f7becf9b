package app

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"sync"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/follow"
	"github.com/weir-gitops/weir/cmd/weir/internal/membership"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/comments"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/metrics"
	"github.com/weir-gitops/weir/status/pulls"
	"github.com/weir-gitops/weir/status/report"
)

// review plans the pull requests of one generation. A nil review plans none.
type review struct {
	reviewOptions
	comments *comments.Comments
	clients  map[string]forge.Client // by source

	heard map[string]*pulls.Heard // by source

	mu       sync.Mutex
	watchers map[string]*pulls.Watcher // by source
	// known is the number of watchers that knew their own login at the last pass.
	known int
}

// reviewOptions are the dependencies of the planners of pull requests.
type reviewOptions struct {
	config    *config.Config
	followers follow.Sources
	member    *membership.Member
	// common contains the options that the planners of all sources share.
	common  pulls.Options
	current *current.State
	metrics *metrics.Metrics
	store   state.Store
	log     *slog.Logger
	redact  func(string) string
}

// openReview creates the planners of pull requests. It returns nil if the configuration does not enable
// any.
func openReview(o reviewOptions) (*review, error) {
	r := &review{reviewOptions: o, watchers: map[string]*pulls.Watcher{}, clients: map[string]forge.Client{}, heard: map[string]*pulls.Heard{}}
	commenters := map[string]comments.PullForge{}
	for _, f := range r.config.Forges {
		if !r.config.PlansPulls(f) {
			continue
		}
		// The head of a pull request is on its own branch.
		client, err := follow.NewForge(f, r.followers[f.Source], "", r.metrics)
		if err != nil {
			return nil, err
		}
		r.clients[f.Source], commenters[f.Source], r.heard[f.Source] = client, client, &pulls.Heard{}
	}
	if len(r.clients) == 0 {
		return nil, nil
	}
	var err error
	r.comments, err = comments.New(comments.Options{
		Instance: r.config.Instance, PageURL: r.config.PublicURL, Forges: commenters, Store: r.store, Held: r.followers.HeldBy(r.member),
		Redact: r.redact, Logger: r.log, Wrote: r.metrics.StatusWrite, WroteComment: r.metrics.CommentWrite,
	})
	if err != nil {
		return nil, err
	}
	for _, f := range r.config.Forges {
		if r.clients[f.Source] == nil {
			continue
		}
		// With several daemons, each starts without owning a source.
		if r.watchers[f.Source], err = r.newWatcher(f, r.member != nil); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *review) newWatcher(f config.Forge, passive bool) (*pulls.Watcher, error) {
	of, o := r.followers[f.Source], r.common
	o.Source, o.Forge, o.Git, o.Follows, o.Policy = f.Source, r.clients[f.Source], of.Git, of.Follows, f.PullRequests
	o.Display, o.Passive, o.Heard = display{r.comments, r.current, r.publish}, passive, r.heard[f.Source]
	o.Marker, o.Interval = report.PullMarker(r.config.Instance, f.Source), of.Config.Interval
	return pulls.New(o)
}

// start starts the planners of pull requests. With several daemons, a planner waits until this daemon owns
// its source. start calls changed whenever a source gets another planner.
func (r *review) start(ctx context.Context, spawn func(ctx context.Context, name string, run func(context.Context) error), changed func()) {
	spawn(ctx, "pull request statuses", r.comments.Run)
	if r.member == nil {
		for name, w := range r.all() {
			spawn(ctx, "pull requests of "+name, w.Run)
		}
		return
	}
	for _, f := range r.config.Forges {
		if r.clients[f.Source] != nil {
			spawn(ctx, "pull requests of "+f.Source, func(ctx context.Context) error { return r.speaker(ctx, f, changed) })
		}
	}
}

// speaker plans the pull requests of a source while this daemon owns it. For every period of
// ownership it creates a new watcher, which continues from the records.
func (r *review) speaker(ctx context.Context, f config.Forge, changed func()) error {
	r.member.Leases.While(ctx, r.followers[f.Source].Key(), func(ctx context.Context, _ *coord.Lease) error {
		w, err := r.newWatcher(f, false)
		if err != nil {
			return err
		}
		r.set(f.Source, w)
		changed()
		err = w.Run(ctx)
		r.comments.Rest(f.Source)
		r.metrics.Pulls(f.Source, nil) // the owner counts them
		passive, again := r.newWatcher(f, true)
		if again == nil {
			r.set(f.Source, passive)
		}
		return cmp.Or(err, again)
	})
	return nil
}

// leave ends the comments; another review continues them.
func (r *review) leave() error {
	if r == nil {
		return nil
	}
	return r.comments.Leave()
}

// close posts the remaining states of pull requests.
func (r *review) close(ctx context.Context) error {
	switch {
	case r == nil:
		return nil
	case r.member != nil:
		return r.comments.Leave()
	}
	return r.comments.Close(ctx)
}

// set replaces the watcher of a source.
func (r *review) set(source string, w *pulls.Watcher) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watchers[source] = w
}

// all returns the watchers, by source.
func (r *review) all() map[string]*pulls.Watcher {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.watchers)
}

// watcher returns the watcher of a source; nil if none exists.
func (r *review) watcher(source string) *pulls.Watcher { return r.all()[source] }

// learned reports whether a watcher has learned its own login, or forgot it, since the last call. Only the
// conductor calls it.
func (r *review) learned() bool {
	if r == nil {
		return false
	}
	known := 0
	for _, w := range r.all() {
		if w.Self() != "" {
			known++
		}
	}
	changed := known != r.known
	r.known = known
	return changed
}

// retry retries writes that a forge refused.
func (r *review) retry() {
	if r != nil {
		r.comments.Retry()
	}
}

// takeOver continues the comments of a source from the state of the previous owner.
func (r *review) takeOver(source string) error {
	if r == nil {
		return nil
	}
	return r.comments.TakeOver(source)
}

// moved tells the watchers that the base of pull requests has changed.
func (r *review) moved() {
	for _, w := range r.all() {
		w.Moved()
	}
}

// reported passes a report to the planner of pull requests.
func (r *review) reported(of *plan.Report) {
	if w := r.watcher(of.Source); w != nil {
		w.Reported(of)
	}
}

// forget tells the planners of pull requests that a target was removed.
func (r *review) forget(target string) {
	for _, w := range r.all() {
		w.Forget(target)
	}
}

// reread reads the decisions of other members about the commits of the sources that they own.
func (r *review) reread() {
	if r == nil || r.member == nil {
		return
	}
	for source, w := range r.all() {
		if r.followers[source].Leads() {
			continue
		}
		if err := w.Reread(); err != nil {
			r.log.Warn("cannot read another member's results about pull requests", "source", source, "error", err)
		}
	}
}

// publish sends a pull request to the other members, if there are any.
func (r *review) publish(p report.Pull) {
	f := r.followers[p.Source]
	if f.Member == nil {
		return
	}
	l := f.Member.Leases.Get(f.Key())
	if l == nil {
		return // the current owner sends it
	}
	redact := r.redact
	p = p.Lean() // keep no inputs of its plans in memory until it is sent
	f.Member.Pulls.Publish(l, membership.Pull{
		Source: p.Source, Number: p.Number, Ended: p.Ended(),
		Data: func() (data, same []byte, err error) { return p.Record(redact) },
		Short: func() (data, same []byte, err error) {
			short := p
			short.Reports, short.Unkept = nil, true
			return short.Record(redact)
		},
	})
}

// display shows pull requests on the forge, and on the page of each member.
type display struct {
	forge   *comments.Comments
	current *current.State
	others  func(report.Pull)
}

// Begin implements pulls.Display.
func (t display) Begin(source string, number int64, sha string) { t.forge.Begin(source, number, sha) }

// Show implements pulls.Display.
func (t display) Show(p report.Pull) {
	t.current.Pulls.Update(p)
	t.others(p)
	t.forge.Show(p)
}

// Deliver sends the final state of a pull request to the forge, and to the pages that do not show it yet.
func (t display) Deliver(p report.Pull) {
	if known, _ := t.current.Pulls.Find(p.Source, p.Number); !known.Ended() {
		t.current.Pulls.Update(p)
		t.others(p)
	}
	t.forge.Show(p)
}

// Written compares a comment with weir's last write.
func (t display) Written(source string, c forge.Comment, whole bool) (intact, edited bool) {
	return t.forge.Written(source, c, whole)
}

// Again makes the next Show rewrite the comment.
func (t display) Again(source string, number int64) { t.forge.Again(source, number) }

// Owes reports whether the forge has not yet received the last state of a pull request.
func (t display) Owes(source string, number int64) bool { return t.forge.Owes(source, number) }
