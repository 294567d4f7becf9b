package app

import (
	"maps"
	"sync"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/simulate"
	"github.com/weir-gitops/weir/status/board"
	"github.com/weir-gitops/weir/status/comments"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/pulls"
	"github.com/weir-gitops/weir/status/report"
)

// review plans the pull requests of one generation.
type review struct {
	comments *comments.Comments
	clients  map[string]forge.Client // by source

	heard map[string]*pulls.Heard // by source

	mu       sync.Mutex
	watchers map[string]*pulls.Watcher // by source
	// known counts the watchers that knew their own login at the last pass.
	known int
}

// openPulls makes the planners of pull requests, if the configuration wants any
// planned.
func (g *generation) openPulls() error {
	a := g.app
	r := &review{watchers: map[string]*pulls.Watcher{}, clients: map[string]forge.Client{}, heard: map[string]*pulls.Heard{}}
	commenters := map[string]comments.PullForge{}
	for _, f := range g.config.Forges {
		if !g.config.PlansPulls(f) {
			continue
		}
		// A pull request's head is on a branch of its own.
		client, err := newForge(f, g.followers[f.Source], "", a.metrics)
		if err != nil {
			return err
		}
		r.clients[f.Source], commenters[f.Source], r.heard[f.Source] = client, client, &pulls.Heard{}
	}
	if len(r.clients) == 0 {
		return nil
	}
	var err error
	r.comments, err = comments.New(comments.Options{
		Instance: g.config.Instance, PageURL: g.config.PublicURL, Forges: commenters, Store: a.store, Held: g.heldBy(),
		Redact: a.o.Secrets.Redact, Logger: a.log, Wrote: a.metrics.StatusWrite, WroteComment: a.metrics.CommentWrite,
	})
	if err != nil {
		return err
	}
	for _, f := range g.config.Forges {
		if r.clients[f.Source] == nil {
			continue
		}
		// Among several daemons, each starts without owning a source.
		if r.watchers[f.Source], err = g.newWatcher(f, r, a.crew != nil); err != nil {
			return err
		}
	}
	g.review = r
	return nil
}

func (g *generation) newWatcher(f config.Forge, r *review, passive bool) (*pulls.Watcher, error) {
	a, follower := g.app, g.followers[f.Source]
	return pulls.New(pulls.Options{
		Source: f.Source, Forge: r.clients[f.Source], Git: follower.git, Follows: follower.Follows, Base: g.base.Load, Accounts: a.planAccounts,
		Policy: f.PullRequests, Display: display{r.comments, a.board, g.tellPull}, Redact: a.o.Secrets.Redact, Approver: a.book, Approved: a.passAll, Withdrawn: daemon{a}.Pass, DB: a.store, Passive: passive,
		PageURL: g.config.PublicURL, Marker: report.PullMarker(g.config.Instance, f.Source), Interval: follower.config.Interval, Turns: a.turns, Heard: r.heard[f.Source],
		Assume: simulate.Assumptions{Share: g.config.AWS.Share()}, Within: a.o.Foreseeing,
		Event: a.board.Event, Metrics: a.metrics, Logger: a.log,
	})
}

// set replaces the watcher of a source.
func (r *review) set(source string, w *pulls.Watcher) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watchers[source] = w
}

// all are the watchers, by source.
func (r *review) all() map[string]*pulls.Watcher {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.watchers)
}

// watcher plans the pull requests of a source; nil if nothing does.
func (g *generation) watcher(source string) *pulls.Watcher {
	if g.review == nil {
		return nil
	}
	return g.review.all()[source]
}

// display shows pull requests on the forge, and on the page of each member.
type display struct {
	forge  *comments.Comments
	board  *board.Board
	others func(report.Pull)
}

// Begin says that a head was seen.
func (t display) Begin(source string, number int64, sha string) { t.forge.Begin(source, number, sha) }

// Show says what became of a pull request.
func (t display) Show(p report.Pull) {
	t.board.Pull(p)
	t.others(p)
	t.forge.Show(p)
}

// Deliver brings the end of a pull request to the forge, and to the pages on which it has not ended.
func (t display) Deliver(p report.Pull) {
	if known, _ := t.board.FindPull(p.Source, p.Number); !known.Ended() {
		t.board.Pull(p)
		t.others(p)
	}
	t.forge.Show(p)
}

// Written compares a comment of weir's with what weir wrote.
func (t display) Written(source string, c forge.Comment, whole bool) (intact, edited bool) {
	return t.forge.Written(source, c, whole)
}

// Again makes the next Show rewrite the comment.
func (t display) Again(source string, number int64) { t.forge.Again(source, number) }

// Owes reports whether the forge is yet to get the newest of a pull request.
func (t display) Owes(source string, number int64) bool { return t.forge.Owes(source, number) }

// retry tries again what a forge refused.
func (r *review) retry() {
	if r != nil {
		r.comments.Retry()
	}
}

// remember keeps what pull requests, and drafts of them, are compared with.
func (g conductor) remember(views map[string]fleet.View) {
	known := 0
	if g.review != nil {
		for _, w := range g.review.all() {
			if w.Self() != "" {
				known++
			}
		}
		if known != g.review.known {
			g.review.known = known
			g.setHooks() // which learn what to ignore
		}
	}
	base := g.fleet.Base(views)
	if g.base.Swap(base) != base && g.review != nil {
		for _, w := range g.review.all() {
			w.Moved()
		}
	}
}

// rule adds to targets what is known of the commits of their sources: how those relate to each
// other, and what trailers of commits that merge pull requests count for.
func (g conductor) rule(batches []reconciler.Batch, views map[string]fleet.View) {
	g.reread()
	for i := range batches {
		for j := range batches[i].Targets {
			d := &batches[i].Targets[j]
			if f := g.followers[d.Source]; f != nil {
				d.Ancestry = f.line
			}
			if w := g.watcher(d.Source); w != nil {
				w.Rule(d, views[d.Source].Snapshot)
				w.Images(d, views[d.Source].Snapshot)
			}
		}
	}
}

// reported hands a report to the planner of pull requests.
func (g *generation) reported(r *plan.Report) {
	if w := g.watcher(r.Source); w != nil {
		w.Reported(r)
	}
}

// forget makes the planners of pull requests let go of a target that has gone.
func (g *generation) forget(target string) {
	if g.review == nil {
		return
	}
	for _, w := range g.review.all() {
		w.Forget(target)
	}
}
