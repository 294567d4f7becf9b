package app

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/notify"
)

// reporter hands reports to the board, the metrics, the current generation's statuses
// and the log: one at a time, and none while a reload is under way.
type reporter struct {
	app *App
	log *passLog
}

// Report implements reconciler.Reporter.
func (r *reporter) Report(ctx context.Context, report *plan.Report) { r.hand(ctx, report) }

// hand hands a report on, if there still is such a target there; it reports whether there is.
func (r *reporter) hand(ctx context.Context, report *plan.Report) bool {
	a := r.app
	a.passes.handing.Lock()
	defer a.passes.handing.Unlock()
	if !a.passes.noted(report, true) {
		return false
	}
	a.board.Report(ctx, report)
	a.metrics.Report(ctx, report)
	g := a.gen.Load()
	if g.commits != nil {
		g.commits.Report(ctx, report)
	}
	g.reported(report)
	wait := g.config.Interval
	if reconciler.Moving(report) {
		wait = min(wait, reconciler.DefaultMovingDelay)
	}
	if slices.ContainsFunc(report.Governed, func(p rollout.Pool) bool { return p.Watched }) {
		wait = min(wait, watchEvery)
	}
	a.board.Due(report.Target, time.Now().Add(wait))
	r.log.report(report)
	return true
}

// passLog writes one line for a pass that did something or found something new,
// and one at debug level for every other.
type passLog struct {
	log *slog.Logger

	mu   sync.Mutex
	said map[string]string // by target: its last reported fault
}

func newPassLog(l *slog.Logger) *passLog { return &passLog{log: l, said: map[string]string{}} }

func (p *passLog) report(r *plan.Report) {
	log := p.log.With("target", r.Target, "revision", short(r.Revision), "duration", r.Duration.Round(time.Millisecond))
	done, failed := 0, len(r.Failures())
	for _, o := range r.Outcomes {
		if o.Status == step.Done {
			done++
		}
	}
	// The source has a line of its own, which all its targets would repeat.
	source := errors.Is(r.Err, plan.ErrSource)
	wrong := problems(r)
	p.mu.Lock()
	repeated := source || p.said[r.Target] == wrong
	if !source {
		p.said[r.Target] = wrong
	}
	p.mu.Unlock()
	switch {
	case done+failed > 0:
		log.Info("pass changed AWS", "done", done, "failed", failed, "converged", r.Converged())
	case wrong != "" && !repeated:
		log.Error("target has problems", "problems", wrong)
	case wrong == "" && !repeated:
		log.Info("target has no problems any more")
	default:
		log.Debug("pass changed nothing", "converged", r.Converged())
	}
}

// forget lets go of a target that has gone.
func (p *passLog) forget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.said, target)
}

func short(revision string) string { return revision[:min(7, len(revision))] }

// problems returns what keeps a target from converging, on one line.
func problems(r *plan.Report) string {
	var lines []string
	if r.Err != nil {
		lines = append(lines, r.Err.Error())
	}
	for _, d := range r.Diagnostics {
		if d.Severity == diag.Error {
			lines = append(lines, d.String())
		}
	}
	return strings.Join(lines, "; ")
}

// showConfiguration puts the configuration that holds on the page.
func (a *App) showConfiguration(c *config.Config) {
	text, err := c.Shown()
	if err != nil {
		a.log.Error("the configuration cannot be shown", "error", err)
		return
	}
	a.board.ShowConfiguration(text)
}

// notify hands events to the notifier of the current configuration. It never blocks.
func (a *App) notify(events []events.Event) {
	a.metrics.Events(events)
	if g := a.gen.Load(); g != nil && g.notifier != nil {
		g.notifier.Add(events)
	}
}

// openNotifier makes the notifier that sends events, if the configuration names a
// receiver.
func (g *generation) openNotifier() (err error) {
	if len(g.config.Notify) == 0 {
		return nil
	}
	o := notify.Options{
		Instance: g.config.Instance, Logger: g.app.log, Version: g.app.o.Version,
		Sent: g.app.metrics.Notification,
	}
	for _, n := range g.config.Notify {
		o.Receivers = append(o.Receivers, notify.Receiver{URL: n.URL, SecretFile: n.SecretFile, Events: n.Events})
	}
	g.notifier, err = notify.New(o)
	return err
}

// takeNotifications inherits the notifications that wait in the previous generation.
func (g *generation) takeNotifications(before *generation) {
	left := 0
	switch {
	case before.notifier == nil:
	case g.notifier == nil:
		left = before.notifier.Waiting()
	default:
		left = g.notifier.Inherit(before.notifier)
	}
	if left > 0 {
		g.app.log.Warn("notifications are dropped: their receiver is not configured any more", "count", left)
	}
}
