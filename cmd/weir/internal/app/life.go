package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/span"
	"github.com/weir-gitops/weir/status/events"
)

// stopWithin is the maximum duration of the whole shutdown. It is less than the 30 s after which Kubernetes
// (by default) and systemd (usually) kill a process. Every step may use time that other steps leave, and
// always has its own share. So everything that must be saved is saved, even if AWS or a forge is slow.
// Steps without a share only close something, or end work that nothing waits for: each has leastShare.
const (
	stopWithin      = 25 * time.Second
	reloadShare     = 2 * time.Second
	conductorShare  = time.Second
	passesShare     = reconciler.LastCall + time.Second
	sourcesShare    = 1500 * time.Millisecond
	statusesShare   = 5 * time.Second
	pullsShare      = 3 * time.Second
	pageShare       = 3500 * time.Millisecond // its own timeout is 3 s
	embeddedShare   = 5 * time.Second         // its own timeout is 5 s
	notifyShare     = time.Second             // its own timeout is 0.9 s
	membersShare    = 2 * time.Second
	handOverShare   = reconciler.LastCall + coord.Quiet + 2*time.Second
	historyShare    = 500 * time.Millisecond
	tracingShare    = 500 * time.Millisecond
	leastShare      = 500 * time.Millisecond
	reloadStopBound = 5 * time.Second
)

// Start starts the goroutines. They run until Stop, even if ctx ends.
func (a *App) Start(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	if a.member != nil {
		a.onStop("members", membersShare, a.spawn(ctx, "members", a.member.Run))
		a.onStop("handover", 0, a.spawn(ctx, "handover", a.dispatcher.Run))
	}
	// Stop ends it after everything that sends events.
	a.onStop("history", historyShare, a.spawn(ctx, "history", a.current.Activity.Run))
	a.onStop("connections", 0, func(context.Context) error { a.gen.followers().CloseConnections(); return nil })
	a.onStop("gate providers", 0, func(context.Context) error { a.gen.Load().providers.close(); return nil })
	a.onStop("notifications", notifyShare, a.stopPart(notifierPart, (*publisher).closeNotifier))
	if a.member != nil {
		a.onStop("news", 0, func(context.Context) error { a.peers.news.Close(); return nil })
	}
	showConfiguration(a.current.Daemon, a.o.Config, a.log)
	a.current.Activity.Add(events.Event{Kind: "weir-started", Text: "weir " + a.o.Version + " starts"})
	a.loss(a.recorder.Read().Lost)
	if a.emulator != nil {
		a.onStop("embedded AWS", embeddedShare, a.spawn(ctx, "embedded AWS", a.emulator.Run))
	}
	server := &http.Server{
		Handler:           a.site.handler(),
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}
	if a.access.certificate != nil {
		server.TLSConfig = a.access.certificate.Config()
	}
	server.RegisterOnShutdown(a.current.Live.Close)
	a.onStop("page", pageShare, a.spawn(ctx, "page", func(ctx context.Context) error { return serve(ctx, server, a.listener) }))
	a.onStop("statuses", statusesShare, a.stopPart(statusesPart, (*publisher).closeStatuses))
	a.onStop("pull requests", pullsShare, a.stopPart(pullsPart, (*publisher).closePulls))
	a.onStop("webhooks", 0, a.spawn(ctx, "webhooks", a.hooks.Run))
	a.onStop("sources", sourcesShare, a.stopPart(sourcesPart, nil))
	a.startPasses(ctx)
	a.onStop("conductor", conductorShare, a.stopPart(conductorPart, nil))
	a.startGeneration(ctx, a.gen.Load())
	a.onStop("configuration", reloadShare, a.spawn(ctx, "configuration", a.reloader))
	if a.member != nil {
		a.onStop("records of other members", membersShare, a.spawn(ctx, "records of other members", a.peers.processOthers))
		a.onStop("hand over", handOverShare, a.member.Keeper.Drain)
	}
	if os.Getenv("NOTIFY_SOCKET") != "" {
		a.onStop("service manager", 0, a.spawn(ctx, "service manager", func(ctx context.Context) error { return a.manager.Supervise(ctx, a.current) }))
	}
	a.log.Info("weir runs", "instance", a.o.Config.Instance, "page", a.PageURL(), "sources", len(a.o.Config.Sources), "targets", len(a.o.Config.Targets))
}

// startPasses allows loops of passes, and starts the conductor of rollouts, which ends with them.
func (a *App) startPasses(ctx context.Context) {
	a.passes.open(span.Watch(ctx, a.metrics.Stage))
	rollouts := a.spawn(a.passes.ctx, "rollouts", a.rollouts.run)
	a.onStop("passes", passesShare, func(ctx context.Context) error { return errors.Join(a.passes.close(ctx), rollouts(ctx)) })
}

// startGeneration starts a generation, the conductor last.
func (a *App) startGeneration(ctx context.Context, g *generation) {
	g.start(ctx)
	g.startConductor(span.Watch(ctx, a.metrics.Stage))
}

// serve answers requests until ctx ends, and then finishes the requests in progress.
func serve(ctx context.Context, server *http.Server, l net.Listener) error {
	served := make(chan error, 1)
	go func() {
		if server.TLSConfig != nil {
			served <- server.ServeTLS(l, "", "")
			return
		}
		served <- server.Serve(l)
	}()
	select {
	case err := <-served:
		return fmt.Errorf("serve page: %w", err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	err := server.Shutdown(stop)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close() // browsers open spare connections; requests had their time
	} else if err != nil {
		err = errors.Join(err, server.Close())
	}
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	return err
}

// stopPart returns a step of Stop that ends a part of the current generation. No reload is in progress at
// that time.
func (a *App) stopPart(of part, finish func(*publisher, context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		g := a.gen.Load()
		err := g.halt(ctx, of)
		if finish != nil {
			err = errors.Join(err, finish(g.publisher, ctx))
		}
		return err
	}
}

// Run starts the daemon and stops it when ctx ends. The calls in flight are finished, no new step starts,
// and reports and commit statuses are written.
func (a *App) Run(ctx context.Context) error {
	a.Start(ctx)
	var failure error
	select {
	case <-ctx.Done():
		a.log.Info("weir stops")
	case failure = <-a.fatal:
		a.log.Error("weir stops", "error", failure)
	}
	a.manager.Notify(systemd.SdNotifyStopping)
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	return errors.Join(failure, a.Stop(stop))
}
