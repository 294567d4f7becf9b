package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/systemd"
	"github.com/weir-gitops/weir/status"
)

// reloader reads the configuration again when it is told to or the file changes,
// and acts on changes of the files that it names, until ctx ends.
func (a *App) reloader(ctx context.Context, loop *running) error {
	named := a.watchNamed(ctx)
	defer func() { named() }()
	if a.o.Load == nil {
		<-ctx.Done()
		return nil
	}
	// This one lives on over reloads, so that it misses no change.
	defer a.watch(ctx, []string{a.gen.config.File}, a.configChanged)()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.o.Reload:
		case <-a.bell:
		}
		a.reload(ctx, loop)
		named()
		named = a.watchNamed(ctx)
	}
}

// configChanged asks for a reload; it never blocks.
func (a *App) configChanged() {
	select {
	case a.bell <- struct{}{}:
	default:
	}
}

// reload puts a new configuration in the place of the old one. One that has a
// fault, or that changes what only a restart can change, is refused as a whole.
func (a *App) reload(ctx context.Context, loop *running) {
	a.tellManager(systemd.Reloading)
	defer a.tellManager(systemd.Ready)
	c, err := a.o.Load()
	if err == nil {
		err = a.swap(context.WithoutCancel(ctx), c, loop)
	}
	if err != nil {
		a.metrics.Reload(false)
		a.board.Event(status.Event{Kind: "configuration-refused", Text: err.Error()})
		a.log.Error("configuration refused, the old one stays", "error", err)
		return
	}
	a.metrics.Reload(true)
	a.showConfiguration(c)
	a.board.Event(status.Event{Kind: "configuration-reloaded", Text: "the configuration was reloaded"})
	a.log.Info("configuration reloaded", "sources", len(c.Sources), "targets", len(c.Targets))
}

// fixed names a key that a running daemon cannot change, empty if c changes none.
func fixed(old, c *config.Config) string {
	switch {
	case old.Instance != c.Instance:
		return "instance"
	case old.StateDir != c.StateDir:
		return "stateDir"
	case old.Listen != c.Listen:
		return "listen"
	case (old.TLS.CertFile == "") != (c.TLS.CertFile == ""):
		return "tls"
	case (old.AWS.Endpoint == config.EmbeddedEndpoint) != (c.AWS.Endpoint == config.EmbeddedEndpoint):
		return "aws.endpoint"
	default:
		return ""
	}
}

// swap stops the loop, replaces the generation, and starts the loop again.
func (a *App) swap(ctx context.Context, c *config.Config, loop *running) error {
	old := a.gen
	if key := fixed(old.config, c); key != "" {
		return fmt.Errorf("%s cannot change while weir runs: restart it", key)
	}
	if err := a.checkAccess(c); err != nil {
		return err
	}
	next, err := a.newGeneration(c, old)
	if err != nil {
		return err
	}
	if err := next.openNotifier(a, old); err != nil {
		return err
	}
	bound, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	if err := loop.halt(bound); err != nil {
		a.fatal <- fmt.Errorf("reload: stop loop: %w", err)
		return err
	}
	defer func() { a.startLoop(ctx, loop) }()
	next.inherit(old)
	if next.commits == nil {
		// The old ones give up the journal before the new ones read it.
		stop, cancel := context.WithTimeout(bound, reloadStopBound)
		err := old.stopStatuses(stop)
		cancel()
		if err != nil {
			a.log.Warn("commit statuses are left for later", "error", err)
		}
		old.commits = nil
		if err := next.openStatuses(a); err != nil {
			old.stopCommits = nil
			err = errors.Join(err, old.openStatuses(a))
			old.startStatuses(ctx, a)
			return err
		}
	}
	for name, f := range old.followers {
		if next.followers[name] != f {
			if err := f.stop(bound); err != nil {
				a.log.Error("source did not stop", "source", name, "error", err)
			}
			if next.followers[name] == nil {
				a.metrics.RemoveSource(name)
			}
		}
	}
	a.swapPulls(bound, old, next)
	a.gen = next
	a.setAccess(c)
	// What was composed with the old configuration is no base for pull requests: the
	// next pass gives one.
	a.base.Store(nil)
	next.setHooks(a.hooks)
	next.startNotifier(ctx, a, old)
	a.scopes.SetSlices(rounds(c))
	if next.commits != nil {
		next.commits.Retry()
	}
	a.configure(next, next.targets)
	next.startSources(ctx, a)
	next.startStatuses(ctx, a)
	next.startPulls(ctx, a)
	next.review.retry()
	return nil
}
