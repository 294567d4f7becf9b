package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/status/events"
)

// reloader reads the configuration again at a signal or when the file changes. It also reacts to changes of
// the files that the configuration names. It ends with ctx.
func (a *App) reloader(ctx context.Context) error {
	named := a.watchNamed(ctx, a.gen.Load())
	defer func() { named() }()
	if a.o.Load == nil {
		<-ctx.Done()
		return nil
	}
	// This watch continues across reloads, so that it misses no change.
	defer a.files.start(ctx, []string{a.gen.Load().config.File}, a.reloadDue.send)()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.o.Reload:
		case <-a.reloadDue:
		}
		a.reload(ctx)
		named()
		named = a.watchNamed(ctx, a.gen.Load())
	}
}

// reload replaces the configuration. A configuration with a fault, or with a change that needs a restart,
// is rejected as a whole.
func (a *App) reload(ctx context.Context) {
	a.manager.Notify(systemd.SdNotifyReloading, strings.TrimSpace(systemd.SdNotifyMonotonicUsec()))
	defer func() {
		if ctx.Err() == nil { // otherwise weir stops
			a.manager.Notify(systemd.SdNotifyReady)
		}
	}()
	began := time.Now()
	c, err := a.o.Load()
	if err == nil {
		err = a.swap(ctx, c)
	}
	if err != nil && ctx.Err() != nil {
		a.log.Info("the configuration is not reloaded, because weir is stopping")
		return
	}
	if err != nil {
		a.metrics.Reload(false)
		a.current.Daemon.RefuseConfiguration(err.Error())
		a.log.Error("configuration rejected; the previous one stays in use", "error", err)
		return
	}
	a.metrics.Reload(true)
	showConfiguration(a.current.Daemon, c, a.log)
	if a.peers != nil {
		a.peers.describe(ctx)
	}
	a.current.Activity.Add(events.Event{Kind: "configuration-reloaded", Text: "the configuration was reloaded"})
	a.log.Info("configuration reloaded", "sources", len(c.Sources), "targets", len(c.Targets), "took", time.Since(began).Round(time.Millisecond))
}

// fixed returns the name of a changed key that a running daemon cannot change, empty if none exists.
func fixed(old, c *config.Config) string {
	switch {
	case old.Instance != c.Instance:
		return "instance"
	case old.StateDir != c.StateDir:
		return "stateDir"
	case !old.Coordination.Same(c.Coordination):
		return "coordination"
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

// swap stops a generation and starts the next one in the same process. The page, the state directory and
// the loops of passes keep running. It does not wait for passes: a pass in progress ends by itself, and the
// next one reads the new desired resources.
//
// Faults of a configuration are found before anything stops. weir also checks that the next generation can
// open its journal. If opening it still fails, a generation of the old configuration starts again. A
// stopped generation ends with its context, even if a remote system does not answer, and swap waits for
// that for a short time. During a shutdown, Stop first ends ctx: swap then starts nothing, and Stop finds
// the generation to stop.
func (a *App) swap(ctx context.Context, c *config.Config) error {
	old := a.gen.Load()
	if key := fixed(old.config, c); key != "" {
		return fmt.Errorf("%s cannot change while weir runs: restart it", key)
	}
	if err := a.access.check(c); err != nil {
		return err
	}
	next, err := a.newGeneration(c)
	if err != nil {
		return err
	}
	if err := next.publisher.check(); err != nil {
		return err
	}
	if err := old.halt(ctx, conductorPart); err != nil {
		return fmt.Errorf("stop conductor: %w", err)
	}
	a.passes.interrupt()
	a.passes.handing.Lock()
	defer a.passes.handing.Unlock()
	bound, cancel := context.WithTimeout(ctx, reloadStopBound)
	defer cancel()
	left, unordered := old.leave(bound)
	if err := ctx.Err(); err != nil {
		return err
	}
	if unordered != nil {
		a.log.Warn("the previous configuration did not stop cleanly; the reload continues", "error", unordered)
	}
	if err = next.publisher.openStatuses(); err != nil {
		again := error(nil)
		if next, again = a.newGeneration(old.config); again == nil {
			again = next.publisher.openStatuses()
		}
		if again != nil {
			a.fatal <- again
			return errors.Join(err, again)
		}
	}
	a.adopt(next, left)
	a.accounts.SetShare(c.AWS.Share())
	next.conductor.configure(left.shown)
	a.startGeneration(context.WithoutCancel(ctx), next)
	return err
}

// adopt makes a generation the current one, with the values that the previous one has left.
func (a *App) adopt(next *generation, left inherited) {
	next.inherit(left)
	if err := next.publisher.openPulls(); err != nil { // an unreadable journal must not prevent anything else
		a.log.Error("cannot plan pull requests", "error", err)
	}
	for name := range left.followers {
		if next.followers[name] == nil {
			a.metrics.RemoveSource(name)
		}
	}
	a.gen.Store(next)
	if dropped := next.publisher.inherit(left.publisher); dropped > 0 {
		a.log.Warn("notifications are dropped, because their receiver is no longer configured", "count", dropped)
	}
	a.access.set(next.config)
	next.webhooks.set()
	a.passes.setPace(next.config)
}

// watchNamed watches the files that the configuration names, until stop is called. A new value starts a
// pass, a new token is tried at once, and new certificates cause a reload.
func (a *App) watchNamed(ctx context.Context, g *generation) (stop func()) {
	var values, tokens, credentials, certificates []string
	for _, t := range g.config.Targets {
		for _, from := range t.VarsFrom {
			values = append(values, from.Files()...)
		}
	}
	for _, f := range g.config.Forges {
		tokens = append(tokens, f.TokenFile)
	}
	for _, s := range g.config.Sources {
		credentials = append(credentials, s.WatchedFiles()...)
		certificates = append(certificates, s.ConnectionFiles()...)
		tokens = append(tokens, s.Auth.GitHubApp.PrivateKeyFile)
	}
	stops := []func(){
		a.files.start(ctx, values, a.requests.passAll),
		a.files.start(ctx, certificates, a.reloadDue.send),
		a.files.start(ctx, tokens, g.publisher.retry),
		a.files.start(ctx, credentials, func() {
			for _, f := range g.followers {
				f.Git.Nudge()
			}
		}),
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// fileWatch watches files.
type fileWatch struct {
	// watch is config.Watch, or a replacement in tests.
	watch func(ctx context.Context, files []string, changed func()) error
	log   *slog.Logger
}

// start calls changed after any of the files has changed, until stop is called. stop waits for the end.
func (w fileWatch) start(ctx context.Context, files []string, changed func()) (stop func()) {
	files = slices.DeleteFunc(slices.Clone(files), func(f string) bool { return f == "" })
	if len(files) == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := w.watch(ctx, files, changed); err != nil {
			// They are still read at the next pass, and a signal causes a reload.
			w.log.Error("changes of files are not seen at once", "files", files, "error", err)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
