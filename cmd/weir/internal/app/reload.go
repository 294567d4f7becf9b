package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/status/events"
)

// reloader reads the configuration again at a signal or when the file changes, and acts on changes
// of the files that it names, until ctx ends.
func (a *App) reloader(ctx context.Context) error {
	named := a.gen.Load().watchNamed(ctx)
	defer func() { named() }()
	if a.o.Load == nil {
		<-ctx.Done()
		return nil
	}
	// This one lives on over reloads, so that it misses no change.
	defer a.watch(ctx, []string{a.gen.Load().config.File}, a.configChanged)()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.o.Reload:
		case <-a.reloadDue:
		}
		a.reload(ctx)
		named()
		named = a.gen.Load().watchNamed(ctx)
	}
}

// configChanged requests a reload; it never blocks.
func (a *App) configChanged() {
	select {
	case a.reloadDue <- struct{}{}:
	default:
	}
}

// reload replaces the configuration by a new one. A configuration with a fault, or with a change
// that needs a restart, is refused as a whole.
func (a *App) reload(ctx context.Context) {
	a.notifyManager(systemd.SdNotifyReloading, strings.TrimSpace(systemd.SdNotifyMonotonicUsec()))
	defer func() {
		if ctx.Err() == nil { // otherwise weir stops
			a.notifyManager(systemd.SdNotifyReady)
		}
	}()
	began := time.Now()
	c, err := a.o.Load()
	if err == nil {
		err = a.swap(ctx, c)
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
	peers{a}.describe(ctx)
	a.board.Event(events.Event{Kind: "configuration-reloaded", Text: "the configuration was reloaded"})
	a.log.Info("configuration reloaded", "sources", len(c.Sources), "targets", len(c.Targets), "took", time.Since(began).Round(time.Millisecond))
}

// fixed names a key that a running daemon cannot change, empty if c changes none.
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

// swap stops a generation and starts the next one in the same process. The page, the state
// directory and the passes' loops keep running. It waits for no pass: a pass under way ends by
// itself, and the next one reads the new desired resources.
//
// weir finds the faults of a configuration before anything stops, and checks that the next
// generation can open its journal. If it fails to open all the same, one of the old configuration
// starts again. A stopped generation ends with its context, even if a peer does not answer it; swap
// waits for that, and not for long. Stop ends ctx first: then swap starts nothing, and Stop finds
// the generation that it has to stop.
func (a *App) swap(ctx context.Context, c *config.Config) error {
	old := a.gen.Load()
	if key := fixed(old.config, c); key != "" {
		return fmt.Errorf("%s cannot change while weir runs: restart it", key)
	}
	if err := a.site.check(c); err != nil {
		return err
	}
	next, err := a.newGeneration(c)
	if err != nil {
		return err
	}
	if err := next.check(); err != nil {
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
	left := old.leave(bound)
	if err := ctx.Err(); err != nil {
		return err
	}
	if left != nil {
		a.log.Warn("the old configuration did not stop in order, and the reload goes on", "error", left)
	}
	if err = next.openStatuses(); err != nil {
		again := error(nil)
		if next, again = a.newGeneration(old.config); again == nil {
			again = next.openStatuses()
		}
		if again != nil {
			a.fatal <- again
			return errors.Join(err, again)
		}
	}
	next.fleet.Adopt(old.fleet)
	next.inherit(old)
	if err := next.openPulls(); err != nil { // a journal that cannot be read holds up nothing else
		a.log.Error("pull requests are not planned", "error", err)
	}
	for name := range old.followers {
		if next.followers[name] == nil {
			a.metrics.RemoveSource(name)
		}
	}
	a.gen.Store(next)
	next.takeNotifications(old)
	a.site.set(next.config)
	next.setHooks()
	a.passes.repace()
	a.accounts.SetShare(c.AWS.Share())
	conductor{next}.configure(a.shown)
	ctx = context.WithoutCancel(ctx)
	next.start(ctx)
	next.startConductor(ctx)
	return err
}

// watchNamed watches the files that the configuration names, until stop
// is called: a new value starts a pass, a new token is tried at once, and new
// certificates are taken by a reload.
func (g *generation) watchNamed(ctx context.Context) (stop func()) {
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
		g.app.watch(ctx, values, g.app.passAll),
		g.app.watch(ctx, certificates, g.app.configChanged),
		g.app.watch(ctx, tokens, func() {
			if g.commits != nil {
				g.commits.Retry()
			}
			g.review.retry()
		}),
		g.app.watch(ctx, credentials, func() {
			for _, f := range g.followers {
				f.git.Nudge()
			}
		}),
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// watch calls changed after any of the files has changed, until stop is called,
// which waits for the end.
func (a *App) watch(ctx context.Context, files []string, changed func()) (stop func()) {
	files = slices.DeleteFunc(slices.Clone(files), func(f string) bool { return f == "" })
	if len(files) == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		watch := a.o.Watch
		if watch == nil {
			watch = config.Watch
		}
		if err := watch(ctx, files, changed); err != nil {
			// They are read at the next pass, and a signal reloads.
			a.log.Error("changes of files are not seen at once", "files", files, "error", err)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
