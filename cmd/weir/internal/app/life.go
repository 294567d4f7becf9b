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

	"github.com/weir-gitops/weir/status/events"
)

// Start starts the goroutines. They live until Stop, even if ctx ends.
func (a *App) Start(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	if a.crew != nil {
		a.onStop("members", crewShare, a.spawn(ctx, "members", a.crew.Run))
		a.onStop("handover", 0, a.spawn(ctx, "handover", a.dispatcher.Run))
	}
	// Stop ends it after everything that sends events.
	a.onStop("history", historyShare, a.spawn(ctx, "history", a.board.Run))
	a.onStop("connections", 0, func(context.Context) error { a.gen.Load().closeConnections(); return nil })
	a.onStop("gate providers", 0, func(context.Context) error { a.gen.Load().closeProviders(); return nil })
	a.onStop("notifications", notifyShare, a.stopPart(notifierPart, (*generation).closeNotifier))
	if a.crew != nil {
		a.onStop("news", 0, func(context.Context) error { a.news.Close(); return nil })
	}
	a.showConfiguration(a.o.Config)
	a.board.Event(events.Event{Kind: "weir-started", Text: "weir " + a.o.Version + " starts"})
	a.reportLoss(a.book.Read().Lost)
	if a.emulator != nil {
		a.onStop("embedded AWS", embeddedShare, a.spawn(ctx, "embedded AWS", a.emulator.Run))
	}
	server := &http.Server{
		Handler:           a.site.handler(),
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}
	if a.site.certificate != nil {
		server.TLSConfig = a.site.certificate.Config()
	}
	server.RegisterOnShutdown(a.board.EndStreams)
	a.onStop("page", pageShare, a.spawn(ctx, "page", func(ctx context.Context) error { return serve(ctx, server, a.listener) }))
	a.onStop("statuses", statusesShare, a.stopPart(statusesPart, (*generation).closeStatuses))
	a.onStop("pull requests", pullsShare, a.stopPart(pullsPart, (*generation).closePulls))
	a.onStop("webhooks", 0, a.spawn(ctx, "webhooks", a.hooks.Run))
	a.onStop("sources", sourcesShare, a.stopPart(sourcesPart, nil))
	a.openPasses(ctx)
	a.rollouts.wait = a.spawn(a.passes.ctx, "rollouts", a.rollouts.run) // which ends with the passes
	a.onStop("conductor", conductorShare, a.stopPart(conductorPart, nil))
	g := a.gen.Load()
	g.start(ctx)
	g.startConductor(ctx)
	a.onStop("configuration", reloadShare, a.spawn(ctx, "configuration", a.reloader))
	if a.crew != nil {
		a.onStop("records of other members", crewShare, a.spawn(ctx, "records of other members", peers{a}.heedOthers))
		a.onStop("hand over", handOverShare, a.crew.Keeper().Drain)
	}
	if os.Getenv("NOTIFY_SOCKET") != "" {
		a.onStop("service manager", 0, a.spawn(ctx, "service manager", a.supervise))
	}
	a.log.Info("weir runs", "instance", a.o.Config.Instance, "page", a.PageURL(), "sources", len(a.o.Config.Sources), "targets", len(a.o.Config.Targets))
}

// serve answers requests until ctx ends, and then finishes those under way.
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
		err = server.Close() // browsers open connections that they may never use; they had their time
	} else if err != nil {
		err = errors.Join(err, server.Close())
	}
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	return err
}

// spawn starts a goroutine and returns what ends it and waits for it. A
// goroutine that ends with an error by itself ends the daemon. Several may wait.
func (a *App) spawn(ctx context.Context, name string, run func(context.Context) error) (stop func(context.Context) error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		err = run(ctx)
		if err != nil && ctx.Err() == nil {
			a.fatal <- fmt.Errorf("%s: %w", name, err)
		}
	}()
	return func(bound context.Context) error {
		cancel()
		select {
		case <-done:
			return err
		case <-bound.Done():
			return fmt.Errorf("%s did not stop in time: %w", name, bound.Err())
		}
	}
}

// stopPart is a step of Stop that ends a part of the generation that is there then: no
// reload is under way any more.
func (a *App) stopPart(of part, finish func(*generation, context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		g := a.gen.Load()
		err := g.halt(ctx, of)
		if finish != nil {
			err = errors.Join(err, finish(g, ctx))
		}
		return err
	}
}

// Stop ends what Start started and closes what New opened, the last first. It continues after a
// failure, returns all failures, and does nothing the second time.
func (a *App) Stop(ctx context.Context) error {
	var errs []error
	for i := len(a.cleanups) - 1; i >= 0; i-- {
		bound, cancel := a.boundOf(ctx, i)
		err := a.cleanups[i].run(bound)
		cancel()
		if err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", a.cleanups[i].name, err))
		}
	}
	a.cleanups = nil
	return errors.Join(errs...)
}

// boundOf is the context of a step of Stop: it leaves the steps after it their
// shares, and has its own though ctx may have ended.
func (a *App) boundOf(ctx context.Context, step int) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	for _, later := range a.cleanups[:step] {
		deadline = deadline.Add(-later.share)
	}
	if least := time.Now().Add(max(a.cleanups[step].share, leastShare)); deadline.Before(least) {
		deadline = least
	}
	return context.WithDeadline(context.WithoutCancel(ctx), deadline)
}

// Run starts the daemon and stops it when ctx ends: the call in flight is
// finished, no new step starts, reports and commit statuses are written.
func (a *App) Run(ctx context.Context) error {
	a.Start(ctx)
	var failure error
	select {
	case <-ctx.Done():
		a.log.Info("weir stops")
	case failure = <-a.fatal:
		a.log.Error("weir stops", "error", failure)
	}
	a.notifyManager(systemd.SdNotifyStopping)
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	return errors.Join(failure, a.Stop(stop))
}
