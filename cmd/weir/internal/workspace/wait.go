package workspace

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/terminal"
)

// The intervals between passes of an apply that waits.
const (
	waitQuick = time.Second
	waitAWS   = 5 * time.Second
)

// Wait configures how an apply waits.
type Wait struct {
	// Until repeats passes until everything has converged, for at most Timeout. Show receives the state of
	// the pools after each pass.
	Until   bool
	Timeout time.Duration
	Show    func([]terminal.Applied)
}

// Apply makes one pass, or passes until everything has converged. late says that the timeout passed before
// that.
func (w *Workspace) Apply(ctx context.Context, wait Wait) (applied []terminal.Applied, late bool) {
	w.RetryFailed()
	for _, r := range w.Pass(ctx, reconciler.Apply) {
		applied = append(applied, terminal.Applied{First: r, Last: r, Outcomes: r.Outcomes})
	}
	for _, a := range w.Agreed {
		a.First = false // later plans were not all shown to the user
	}
	if !wait.Until {
		return applied, false
	}
	delay := waitAWS
	if w.Quick {
		delay = waitQuick
	}
	deadline := time.NewTimer(wait.Timeout)
	defer deadline.Stop()
	for !Settled(applied, w.gating.opens) {
		wait.Show(applied)
		timer := time.NewTimer(delay)
		select {
		case <-ctx.Done():
			timer.Stop()
			return applied, false
		case <-deadline.C:
			timer.Stop()
			return applied, true
		case <-timer.C:
		}
		for i, r := range w.Pass(ctx, reconciler.Apply) {
			applied[i].Last = r
			applied[i].Outcomes = merge(applied[i].Outcomes, r.Outcomes)
		}
	}
	wait.Show(applied)
	return applied, false
}

// Settled reports whether another pass would change nothing: each target has converged, or waiting does not
// help. A target that waits for others continues when opens returns true for it.
func Settled(applied []terminal.Applied, opens func(target string) bool) bool {
	for _, a := range applied {
		if !a.Last.Converged() && (!stuck(a.Last) || awaits(a.Last, step.HeldWave) && opens(a.Last.Target)) {
			return false
		}
	}
	return true
}

// stuck reports whether a target waits for a person: it cannot be planned, all its remaining steps are
// held, or AWS refused a step. A target that is still changing does not count. A temporary failure does not
// count either, because it is retried.
func stuck(r *plan.Report) bool {
	if r.Err != nil {
		var e *observed.Error
		return !errors.As(r.Err, &e) || !passing(e)
	}
	if r.Plan == nil {
		return true
	}
	for _, o := range r.Failures() {
		if passing(o.Err) {
			return false
		}
	}
	if reconciler.Moving(r) || awaits(r, step.HeldControlPlane) {
		return false // it may be ready in a moment
	}
	return Failing(r) || Refused(r) && r.Plan.Runnable() == 0
}

// awaits reports whether a remaining step has this hold.
func awaits(r *plan.Report, by step.Hold) bool {
	return r.Plan != nil && slices.ContainsFunc(r.Plan.Steps, func(st step.Step) bool { return st.Held == by })
}

// passing reports whether a failed call may succeed if it is repeated.
func passing(e *observed.Error) bool {
	switch e.Kind {
	case observed.Throttled, observed.Transient, observed.Busy, observed.Unknown, observed.TokenClash:
		return true
	}
	return false
}

// merge adds the outcomes of a later pass. A postponed step, and a step with the same hold as before, are
// listed once, with their last outcome.
func merge(before, after []step.Outcome) []step.Outcome {
	type key struct {
		verb       step.Verb
		resource   step.Resource
		pool, name string
	}
	keyOf := func(o step.Outcome) key { return key{o.Step.Verb, o.Step.Resource, o.Step.Pool, o.Step.Name} }
	again := map[key]bool{}
	for _, o := range after {
		again[keyOf(o)] = true
	}
	var out []step.Outcome
	for _, o := range before {
		if o.Status == step.Done || !again[keyOf(o)] && o.Status != step.Skipped {
			out = append(out, o)
		}
	}
	return append(out, after...)
}

// refusals lists the diagnostics that explain held steps. They are not errors of the command, because it
// has a separate exit code for them.
var refusals = []string{"conflict", "contested-name", "prune-refused"}

// Failing reports whether a target has an error other than refusals.
func Failing(r *plan.Report) bool {
	if r.Err != nil || len(r.Failures()) > 0 {
		return true
	}
	return slices.ContainsFunc(r.Diagnostics, func(d diag.Diagnostic) bool {
		return d.Severity == diag.Error && !slices.Contains(refusals, d.Code)
	})
}

// Refused reports whether a conflict, a limit or a hold prevented a step. Holds that the command waits for
// do not count.
func Refused(r *plan.Report, waited ...step.Hold) bool {
	held := r.Plan != nil && slices.ContainsFunc(r.Plan.Steps, func(st step.Step) bool { return st.Held != "" && !slices.Contains(waited, st.Held) })
	return held || Obstructed(r)
}

// Obstructed reports whether a conflict or a limit prevents a step.
func Obstructed(r *plan.Report) bool {
	return slices.ContainsFunc(r.Diagnostics, func(d diag.Diagnostic) bool {
		return d.Severity == diag.Error && slices.Contains(refusals, d.Code)
	})
}
