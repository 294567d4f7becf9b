package app

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
)

// reporter hands reports to the board, the metrics, the current generation's statuses
// and the log: one at a time, and none while a reload is under way.
type reporter struct {
	app *App
	log *passLog
}

// Report hands r on, if there still is such a target.
func (r *reporter) Report(ctx context.Context, report *plan.Report) {
	a := r.app
	a.passes.handing.Lock()
	defer a.passes.handing.Unlock()
	if !a.passes.noted(report) {
		return
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
	a.board.Due(report.Target, time.Now().Add(wait))
	r.log.report(report)
}

// passLog writes one line for a pass that did something or found something new,
// and one at debug level for every other.
type passLog struct {
	log *slog.Logger

	mu   sync.Mutex
	said map[string]string // by target: what was last wrong with it
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
	wrong := problems(r)
	p.mu.Lock()
	repeated := p.said[r.Target] == wrong
	p.said[r.Target] = wrong
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

// problems is what keeps a target from converging, on one line.
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
