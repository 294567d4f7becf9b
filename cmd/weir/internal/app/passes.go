package app

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/fleet"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/span"
	"github.com/weir-gitops/weir/status"
)

// running is the loop that runs now, replaced on a reload.
type running struct {
	mu   sync.Mutex
	stop func(context.Context) error
	// over says that no loop starts any more.
	over bool
}

// halt has the loop end and waits for that until ctx ends. A reload and Stop may
// both do so, also at one time.
func (r *running) halt(ctx context.Context) error {
	r.mu.Lock()
	stop := r.stop
	r.mu.Unlock()
	if stop == nil {
		return nil
	}
	return stop(ctx)
}

// end halts the loop for good: a reload that is under way starts none.
func (r *running) end(ctx context.Context) error {
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	return r.halt(ctx)
}

// quickDelay is the time to the next look while something moves at an endpoint
// that is not AWS itself: emulators are quick and have no rate limits.
const quickDelay = 250 * time.Millisecond

// startLoop starts a loop over the current generation, unless loops are over.
func (a *App) startLoop(ctx context.Context, r *running) {
	loop := &reconciler.Loop{
		Desired: a.desired, Logger: a.log, Interval: time.Duration(a.gen.config.Interval), Tracer: a.tracing.Tracer(),
		Reporter: status.Sinks{a.board, a.metrics, &reporter{app: a, log: newPassLog(a.log)}},
	}
	if quick(a.gen.config) {
		loop.MovingDelay = quickDelay
	}
	ctx = span.Watch(ctx, a.metrics.Stage)
	a.mu.Lock()
	a.nudge = loop.Nudge
	a.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.stop = a.spawn(ctx, "loop", loop.Run)
	}
}

// ring has the next pass start now.
func (a *App) ring() {
	a.mu.Lock()
	nudge := a.nudge
	a.mu.Unlock()
	nudge()
}

func quick(c *config.Config) bool {
	return !slices.ContainsFunc(c.Targets, func(t config.Target) bool { return t.EndpointURL == "" && c.AWS.Endpoint == "" })
}

// desired is what Git wants now. It is called by the loop alone.
func (a *App) desired(ctx context.Context) ([]reconciler.Batch, error) {
	a.board.Beat(3 * time.Duration(a.gen.config.Interval))
	a.hideCredentials()
	if a.look.Swap(false) {
		a.gen.look()
	}
	views, err := a.gen.views(ctx, a.word)
	if err != nil {
		return nil, err
	}
	c, err := a.gen.fleet.Compose(ctx, views)
	if err != nil {
		return nil, err
	}
	a.gen.compose(a, views)
	a.announce(c)
	for name, v := range views {
		a.board.Subject(name, v.Snapshot.Revision, v.Snapshot.Subject)
	}
	a.gate(c)
	return c.Batches, nil
}

// announce tells the board and the forges what the pass is about, before it.
func (a *App) announce(c *fleet.Composition) {
	g := a.gen
	if !slices.Equal(g.targets, c.Targets) {
		a.configure(g, c.Targets)
	}
	if g.commits == nil {
		return
	}
	refused := g.announceRefused()
	for _, r := range c.Revisions {
		if refused[r.Source] || g.begun[r.Source] == r.SHA {
			continue
		}
		g.begun[r.Source] = r.SHA
		g.commits.Begin(status.Revision{Source: r.Source, SHA: r.SHA, Touched: r.Touched, Removed: r.Removed})
	}
}

// configure shows which sources and targets there are, and forgets the rest.
func (a *App) configure(g *generation, targets []fleet.Target) {
	for _, old := range g.targets {
		if !slices.ContainsFunc(targets, func(t fleet.Target) bool { return t.Name == old.Name }) {
			a.metrics.RemoveTarget(old.Name)
			if g.commits != nil {
				g.commits.Forget(old.Name)
			}
		}
	}
	var sources []status.Source
	for _, s := range g.config.Sources {
		shown := status.Source{Name: s.Name, URL: s.URL, Ref: refText(s.Ref)}
		for _, f := range g.config.Forges {
			if f.Source == s.Name && f.Type != config.Generic {
				shown.WebURL, shown.Forge = f.URL, f.Type
			}
		}
		sources = append(sources, shown)
	}
	shown := make([]status.Target, len(targets))
	for i, t := range targets {
		shown[i] = status.Target{Name: t.Name, Source: t.Source, Path: t.Path, Account: t.Account, Region: t.Region}
	}
	a.board.Configure(sources, shown)
	a.know(sources, shown)
	g.targets = targets
}
