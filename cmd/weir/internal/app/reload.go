package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/status/events"
)

// reloader reads the configuration again when it is told to or the file changes,
// and acts on changes of the files that it names, until ctx ends.
func (a *App) reloader(ctx context.Context, conductor *running) error {
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
		a.reload(ctx, conductor)
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
func (a *App) reload(ctx context.Context, conductor *running) {
	a.tellManager(systemd.SdNotifyReloading, strings.TrimSpace(systemd.SdNotifyMonotonicUsec()))
	defer func() {
		if ctx.Err() == nil { // else it was told that weir stops
			a.tellManager(systemd.SdNotifyReady)
		}
	}()
	c, err := a.o.Load()
	if err == nil {
		err = a.swap(ctx, c, conductor)
	}
	if err != nil && ctx.Err() != nil {
		a.log.Info("the configuration is not reloaded: weir stops")
		return
	}
	if err != nil {
		a.metrics.Reload(false)
		a.board.RefuseConfiguration(err.Error())
		a.log.Error("configuration refused, the old one stays", "error", err)
		return
	}
	a.metrics.Reload(true)
	a.showConfiguration(c)
	a.board.Event(events.Event{Kind: "configuration-reloaded", Text: "the configuration was reloaded"})
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

// swap stops the conductor, replaces the generation, and starts the conductor again.
// It waits for no pass: one that is under way ends by itself, and finds then what is
// wanted anew. Where ctx ends before the conductor has stopped, it changes nothing.
func (a *App) swap(ctx context.Context, c *config.Config, conductor *running) error {
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
	if err := conductor.halt(ctx); err != nil {
		return fmt.Errorf("stop conductor: %w", err)
	}
	// Stop ends ctx before it asks for the generation: either it waits for this one
	// to be in its place, or nothing is begun here.
	a.swapping <- struct{}{}
	defer func() { <-a.swapping }()
	if err := ctx.Err(); err != nil {
		return err
	}
	bound, cancel := hurried(ctx, stopWithin, reloadHurry)
	defer cancel()
	ctx = context.WithoutCancel(ctx)
	defer a.startConductor(ctx, conductor)
	a.passes.interrupt()
	a.passes.handing.Lock()
	defer a.passes.handing.Unlock()
	return a.replace(ctx, bound, old, next)
}

// hurried is a context that ends after a time, or shortly after ctx has ended.
func hurried(ctx context.Context, within, hurry time.Duration) (context.Context, context.CancelFunc) {
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	forget := context.AfterFunc(ctx, func() { time.AfterFunc(hurry, cancel) })
	return bound, func() {
		forget()
		cancel()
	}
}

// replace puts the next generation in the place of the old one. What it stops may
// take until bound ends, what it starts lives as long as ctx.
func (a *App) replace(ctx, bound context.Context, old, next *generation) error {
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
	a.setAccess(next.config)
	// What was composed with the old configuration is no base for pull requests: the
	// next pass gives one.
	a.base.Store(nil)
	next.setHooks(a.hooks)
	a.notifier.Store(next.notifier)
	if old.notifier != next.notifier {
		if err := old.haltNotifier(bound); err != nil {
			a.log.Warn("notifications are left", "error", err)
		}
	}
	next.startNotifier(ctx, a)
	a.passes.mu.Lock()
	for _, l := range a.passes.of {
		a.passes.pace(l)
	}
	a.passes.mu.Unlock()
	if next.commits != nil {
		next.commits.Retry()
	}
	a.configure(next, next.targets)
	next.startSources(ctx, a)
	next.startStatuses(ctx, a)
	next.startPulls(ctx, a)
	next.review.retry()
	a.look.Store(true) // credentials may be others, where no change of a file was seen
	return nil
}
