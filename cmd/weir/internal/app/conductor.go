package app

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/target"
	"github.com/weir-gitops/weir/status/board"
	"github.com/weir-gitops/weir/status/commits"
)

// conductor puts together what Git wants by a generation of the configuration.
type conductor struct{ *generation }

// conduct composes what Git wants, again and again, and makes the scopes' loops pass
// over it. It waits for neither AWS nor a forge: the daemon is healthy as long as this
// loop turns.
func (g conductor) conduct(ctx context.Context) error {
	defer g.fleet.Wait()
	look := time.NewTicker(silenceCheck)
	defer look.Stop()
	for {
		if err := g.compose(ctx); err != nil && ctx.Err() == nil {
			g.app.log.Error("cannot compose what Git wants", "error", err)
		}
		timer := time.NewTimer(g.config.Interval)
		for due := false; !due; {
			select {
			case <-ctx.Done():
				timer.Stop()
				return nil
			case <-look.C:
				g.reportSilence(time.Now())
				continue
			case <-g.app.wakeup:
			case <-g.fleet.Ended():
			case <-timer.C:
			}
			due = true
		}
		timer.Stop()
	}
}

// silence is the time after which weir says that AWS does not answer, silenceCheck how
// often it checks that.
const (
	silence      = 15 * time.Second
	silenceCheck = 5 * time.Second
)

// reportSilence says on the page and in the log which passes AWS does not answer.
func (g conductor) reportSilence(now time.Time) {
	since := map[string]time.Time{}
	g.app.passes.mu.Lock()
	for key, l := range g.app.passes.of {
		began := l.Began()
		if answered := g.app.accounts.Answered(key); answered.After(began) && !began.IsZero() {
			began = answered
		}
		silent := !began.IsZero() && now.Sub(began) > silence
		if silent {
			for _, d := range g.app.passes.memory.batches[key].Targets {
				since[d.Policy.Target] = began
			}
		}
		if silent != l.silent {
			l.silent = silent
			log := g.app.log.With("account", key.Account, "region", key.Region, "role", key.RoleARN, "endpoint", key.Endpoint)
			if silent {
				log.Warn("AWS does not answer: this account and region wait, and no others", "since", began)
			} else {
				log.Info("AWS answers again, or the pass has ended")
			}
		}
	}
	g.app.passes.mu.Unlock()
	g.app.board.Unanswered(since)
}

// passAll starts a pass over every scope now.
func (a *App) passAll() {
	a.all.Store(true)
	a.wake()
}

// wake makes the conductor compose now what Git wants, and pass over the scopes of
// which something else is wanted than before. It never blocks.
func (a *App) wake() {
	select {
	case a.wakeup <- struct{}{}:
	default:
	}
}

// renderPatience bounds the time that a composition waits for quick renders.
const renderPatience = time.Second

// reportRenders says which targets' newest commits are still rendered: in the log where
// that takes long.
func (g conductor) reportRenders(now []fleet.Rendering) {
	shown := map[string]board.Rendering{}
	said := map[string]string{}
	for _, r := range now {
		shown[r.Target] = board.Rendering{Revision: r.Revision, Since: r.Since}
		if said[r.Target] = r.Revision; g.renders[r.Target] != r.Revision {
			g.app.log.Info("a render takes long: the target stays at its last one until then", "target", r.Target, "revision", short(r.Revision), "since", r.Since)
		}
	}
	for target := range g.renders {
		if said[target] == "" {
			g.app.log.Info("a render that took long is done", "target", target)
		}
	}
	g.renders = said
	g.app.board.Renders(shown)
}

// plansUnused is the time after which the planners of pull requests let go of an
// account for which they planned none.
const plansUnused = time.Hour

// compose puts together what Git wants now. The conductor alone calls it.
func (g conductor) compose(ctx context.Context) error {
	all := g.app.all.Swap(false)
	g.app.board.Beat(3 * g.config.Interval)
	g.hideCredentials()
	if g.app.sourcesDue.Swap(false) {
		g.nudgeSources()
	}
	views, err := g.views(ctx, g.news)
	if err != nil {
		return err
	}
	ctx, s := g.app.tracing.Tracer().Start(ctx, "compose")
	defer s.End()
	g.fleet.Judge(g.app.passes.verdicts())
	c, err := g.fleet.Advance(ctx, views, renderPatience)
	if err != nil {
		return err
	}
	g.app.planAccounts.ForgetUnused(plansUnused)
	g.remember(views)
	g.rule(c.Batches, views)
	g.announce(c)
	g.reportRenders(c.Rendering)
	for name, v := range views {
		if !slices.ContainsFunc(c.Rendering, func(r fleet.Rendering) bool { return r.Source == name }) {
			g.app.board.Subject(name, v.Snapshot.Revision, v.Snapshot.Subject)
		}
	}
	g.app.reportLoss(g.app.book.Read().Lost) // also where every pass waits for AWS
	g.app.passes.pass(c, all)
	return nil
}

// announce reports a composition to the board and the forges before the passes start on it.
func (g conductor) announce(c *fleet.Composition) {
	if targets := withUnlisted(g.app.shown, c.Targets); !slices.Equal(g.app.shown, targets) {
		g.configure(targets)
	}
	spoken := g.app.passes.spoken()
	defer g.replay(spoken)
	if g.commits == nil {
		return
	}
	for source := range spoken {
		delete(g.begun, source)
	}
	refused := g.announceRefused()
	for _, r := range c.Revisions {
		if refused[r.Source] || g.begun[r.Source] == r.SHA {
			continue
		}
		g.begun[r.Source] = r.SHA
		g.commits.Begin(commits.Revision{Source: r.Source, SHA: r.SHA, Touched: slices.Concat(r.Touched, r.Faulty), Removed: r.Removed})
	}
}

// withUnlisted are the targets that there are, and those of before for which one may stand
// whose source cannot be read: that they are gone is not known.
func withUnlisted(before, targets []fleet.Target) []fleet.Target {
	all := slices.Clone(targets)
	for _, old := range before {
		if !has(targets, old.Name) && mayHave(targets, old.Name) {
			all = append(all, old)
		}
	}
	slices.SortFunc(all, func(a, b fleet.Target) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func has(targets []fleet.Target, name string) bool {
	return slices.ContainsFunc(targets, func(t fleet.Target) bool { return t.Name == name })
}

// mayHave reports whether a target that is known only by a pattern may have a name.
func mayHave(targets []fleet.Target, name string) bool {
	return slices.ContainsFunc(targets, func(t fleet.Target) bool { return t.Unlisted && target.Overlap(t.Name, name) })
}

// configure shows the existing sources and targets, and forgets all others.
func (g conductor) configure(targets []fleet.Target) {
	for _, old := range g.app.shown {
		if !has(targets, old.Name) {
			g.app.metrics.RemoveTarget(old.Name)
			g.app.reporter.log.forget(old.Name)
			if g.app.crew != nil {
				g.app.crew.DropSoon(old.Name)
			}
			g.forget(old.Name)
		}
	}
	if g.commits != nil {
		for _, name := range g.commits.Unfinished() { // includes those that disappeared while weir was stopped
			if !has(targets, name) && !mayHave(targets, name) {
				g.commits.Forget(name)
			}
		}
	}
	var sources []board.Source
	for _, s := range g.config.Sources {
		shown := board.Source{Name: s.Name, URL: s.URL, Ref: refText(s.Ref)}
		for _, f := range g.config.Forges {
			if f.Source == s.Name && !f.Profile().WebhooksOnly {
				shown.WebURL, shown.Forge = f.URL, f.Type
			}
		}
		sources = append(sources, shown)
	}
	shown := make([]board.Target, len(targets))
	for i, t := range targets {
		shown[i] = board.Target{Name: t.Name, Source: t.Source, Path: t.Path, Account: t.Account, Region: t.Region}
	}
	g.app.board.Configure(sources, shown)
	g.know(sources, shown)
	g.app.shown = targets
}
