package app

import (
	"context"
	"slices"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/status/board"
	"github.com/weir-gitops/weir/status/commits"
)

// conduct composes what Git wants, again and again, and has the scopes' loops make
// passes over it. It waits for neither AWS nor a forge: that it turns is what health
// means.
func (a *App) conduct(ctx context.Context) error {
	defer a.gen.fleet.Wait()
	look := time.NewTicker(silenceLook)
	defer look.Stop()
	for {
		if err := a.compose(ctx); err != nil && ctx.Err() == nil {
			a.log.Error("what Git wants cannot be put together", "error", err)
		}
		timer := time.NewTimer(a.gen.config.Interval)
		for due := false; !due; {
			select {
			case <-ctx.Done():
				timer.Stop()
				return nil
			case <-look.C:
				a.tellSilence(time.Now())
				continue
			case <-a.rung:
			case <-a.gen.fleet.Ended():
			case <-timer.C:
			}
			due = true
		}
		timer.Stop()
	}
}

// silence is after what time AWS is said not to answer, silenceLook how often that is
// looked at.
const (
	silence     = 15 * time.Second
	silenceLook = 5 * time.Second
)

// tellSilence has everybody know which passes AWS does not answer.
func (a *App) tellSilence(now time.Time) {
	since := map[string]time.Time{}
	a.passes.mu.Lock()
	for key, l := range a.passes.of {
		began := l.Began()
		if answered := a.accounts.Answered(key); answered.After(began) && !began.IsZero() {
			began = answered
		}
		silent := !began.IsZero() && now.Sub(began) > silence
		if silent {
			for _, d := range a.passes.memory.batches[key].Targets {
				since[d.Policy.Target] = began
			}
		}
		if silent != l.silent {
			l.silent = silent
			log := a.log.With("account", key.Account, "region", key.Region, "role", key.RoleARN, "endpoint", key.Endpoint)
			if silent {
				log.Warn("AWS does not answer: this account and region wait, and no others", "since", began)
			} else {
				log.Info("AWS answers again, or the pass has ended")
			}
		}
	}
	a.passes.mu.Unlock()
	a.board.Unanswered(since)
}

// ring has every scope passed over now.
func (a *App) ring() {
	a.all.Store(true)
	a.wake()
}

// wake has what Git wants composed now, and those scopes passed over of which
// something else is wanted than before. It never blocks.
func (a *App) wake() {
	select {
	case a.rung <- struct{}{}:
	default:
	}
}

// renderPatience is how long a composition waits for renders that are quick.
const renderPatience = time.Second

// tellRenders has everybody know which targets' newest commits are still rendered: in
// the log where that takes long.
func (a *App) tellRenders(now []fleet.Rendering) {
	shown := map[string]board.Rendering{}
	said := map[string]string{}
	for _, r := range now {
		shown[r.Target] = board.Rendering{Revision: r.Revision, Since: r.Since}
		if said[r.Target] = r.Revision; a.renders[r.Target] != r.Revision {
			a.log.Info("a render takes long: the target stays at its last one until then", "target", r.Target, "revision", short(r.Revision), "since", r.Since)
		}
	}
	for target := range a.renders {
		if said[target] == "" {
			a.log.Info("a render that took long is done", "target", target)
		}
	}
	a.renders = said
	a.board.Renders(shown)
}

// plansUnused is after what time an account of which no pull request was planned is let
// go of by those who plan them.
const plansUnused = time.Hour

// compose puts together what Git wants now. The conductor alone calls it.
func (a *App) compose(ctx context.Context) error {
	g := a.gen
	all := a.all.Swap(false)
	a.board.Beat(3 * g.config.Interval)
	a.hideCredentials()
	if a.look.Swap(false) {
		g.look()
	}
	views, err := g.views(ctx, a.word)
	if err != nil {
		return err
	}
	ctx, s := a.tracing.Tracer().Start(ctx, "compose")
	defer s.End()
	c, err := g.fleet.Advance(ctx, views, renderPatience)
	if err != nil {
		return err
	}
	a.planAccounts.ForgetUnused(plansUnused)
	g.compose(a, views)
	g.rule(c.Batches, views)
	a.announce(c)
	a.tellRenders(c.Rendering)
	for name, v := range views {
		if !slices.ContainsFunc(c.Rendering, func(r fleet.Rendering) bool { return r.Source == name }) {
			a.board.Subject(name, v.Snapshot.Revision, v.Snapshot.Subject)
		}
	}
	a.tellLoss(a.book.Read().Lost) // also where every pass waits for AWS
	a.passes.pass(c, all)
	return nil
}

// announce tells the board and the forges what the passes are about, before them.
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
		g.commits.Begin(commits.Revision{Source: r.Source, SHA: r.SHA, Touched: r.Touched, Removed: r.Removed})
	}
}

// configure shows which sources and targets there are, and forgets the rest.
func (a *App) configure(g *generation, targets []fleet.Target) {
	for _, old := range g.targets {
		if !slices.ContainsFunc(targets, func(t fleet.Target) bool { return t.Name == old.Name }) {
			a.metrics.RemoveTarget(old.Name)
			a.reporter.log.forget(old.Name)
			g.forget(old.Name)
			if g.commits != nil {
				g.commits.Forget(old.Name)
			}
		}
	}
	var sources []board.Source
	for _, s := range g.config.Sources {
		shown := board.Source{Name: s.Name, URL: s.URL, Ref: refText(s.Ref)}
		for _, f := range g.config.Forges {
			if f.Source == s.Name && f.Type != config.Generic {
				shown.WebURL, shown.Forge = f.URL, f.Type
			}
		}
		sources = append(sources, shown)
	}
	shown := make([]board.Target, len(targets))
	for i, t := range targets {
		shown[i] = board.Target{Name: t.Name, Source: t.Source, Path: t.Path, Account: t.Account, Region: t.Region}
	}
	a.board.Configure(sources, shown)
	a.know(sources, shown)
	g.targets = targets
}
