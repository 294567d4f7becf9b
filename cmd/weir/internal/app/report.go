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
	"github.com/weir-gitops/weir/cmd/weir/internal/membership"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/metrics"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/wording"
)

// reporter passes reports to the state, the metrics, the current publisher and the log: one at a time, and
// none during a reload.
type reporter struct {
	log     *passLog
	passes  *passes
	current *current.State
	metrics *metrics.Metrics
	now     *currentGeneration
	member  *membership.Member
	redact  func(string) string
}

// Report implements reconciler.Reporter.
func (r *reporter) Report(ctx context.Context, report *plan.Report) { r.hand(ctx, report) }

// hand passes on a report, if the target still exists in that scope. It reports whether the target exists.
func (r *reporter) hand(ctx context.Context, report *plan.Report) bool {
	r.passes.handing.Lock()
	defer r.passes.handing.Unlock()
	if !r.passes.noted(report, true) {
		return false
	}
	r.current.Targets.Report(ctx, report)
	r.metrics.Report(ctx, report)
	r.now.publisher().report(ctx, report)
	wait := r.now.interval()
	if reconciler.Moving(report) {
		wait = min(wait, reconciler.DefaultMovingDelay)
	}
	if slices.ContainsFunc(report.Governed, func(p rollout.Pool) bool { return p.Watched }) {
		wait = min(wait, watchEvery)
	}
	r.current.Targets.SetDue(report.Target, time.Now().Add(wait))
	r.log.report(report)
	return true
}

// under returns the reporter of passes under a lease, or without one.
func (r *reporter) under(l *coord.Lease) reconciler.Reporter {
	if l == nil {
		return r
	}
	return owned{r, l}
}

// owned passes on reports of passes under a lease.
type owned struct {
	*reporter
	lease *coord.Lease
}

// Report implements reconciler.Reporter.
func (o owned) Report(ctx context.Context, r *plan.Report) {
	if o.hand(ctx, r) {
		o.publish(o.lease, r)
	}
}

// publish sends a report of a pass to the other members.
func (r *reporter) publish(l *coord.Lease, of *plan.Report) {
	redact := report.Redact(r.redact).Report
	same, err := of.Same(redact)
	if err != nil {
		r.log.log.Error("cannot publish a report", "target", of.Target, "error", err)
		return
	}
	did := slices.ContainsFunc(of.Outcomes, func(o step.Outcome) bool { return o.Status == step.Done || o.Status == step.Failed })
	r.member.Reports.Publish(l, of.Target, did, same, func() ([]byte, error) { return of.Record(redact) })
}

// receive processes a report of another member, for the page, waves and forges. It creates no event.
func (r *reporter) receive(target string, data []byte) {
	report, err := plan.ReadRecord(data)
	if err != nil {
		r.log.log.Warn("cannot read a report of another member", "target", target, "error", err)
		return
	}
	r.passes.handing.Lock()
	defer r.passes.handing.Unlock()
	own := false
	r.passes.read(func(m *memory) { own = r.passes.loops.any(m.scopesOf(target)) })
	if own || report.Target != target || !r.passes.noted(report, false) {
		return
	}
	r.current.Targets.Take(report)
	r.metrics.Elsewhere(target)
	r.now.publisher().report(context.Background(), report)
}

// passLog logs one line for a pass that executed a step or found something new, and a line at debug level
// for every other pass.
type passLog struct {
	log *slog.Logger

	mu   sync.Mutex
	said map[string]string // by target: the last reported fault
}

func newPassLog(l *slog.Logger) *passLog { return &passLog{log: l, said: map[string]string{}} }

// report logs the result of a pass for a target. Problems are logged once, until they change.
func (p *passLog) report(r *plan.Report) {
	log := p.log.With("target", r.Target, "revision", wording.Short(r.Revision), "duration", r.Duration.Round(time.Millisecond))
	done, failed := 0, len(r.Failures())
	for _, o := range r.Outcomes {
		if o.Status == step.Done {
			done++
		}
	}
	// The source has its own log line; its targets would all repeat it.
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
		log.Info("target has no more problems")
	default:
		log.Debug("pass changed nothing", "converged", r.Converged())
	}
}

// forget removes the data about a target that was removed.
func (p *passLog) forget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.said, target)
}

// problems returns the reasons why a target does not converge, on one line.
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

// showConfiguration shows the active configuration on the page.
func showConfiguration(on *current.Daemon, c *config.Config, log *slog.Logger) {
	text, err := c.Shown()
	if err != nil {
		log.Error("the configuration cannot be shown", "error", err)
		return
	}
	on.ShowConfiguration(text)
}

// reportLoss reports on the page and in the metrics that all writes are held, or no longer held.
func reportLoss(on *current.Daemon, m *metrics.Metrics) func(*state.Loss) {
	return func(lost *state.Loss) {
		why := ""
		if lost != nil {
			why = gates.LossText(*lost)
		}
		on.HoldWrites(why)
		m.StateLost(lost != nil)
	}
}
