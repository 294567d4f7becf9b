package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/terminal"
)

const applyHelp = `Make AWS what the manifests say, in one pass.

What is applied is what plan shows for the same arguments; see weir plan --help for
the two ways to say it. A second apply makes no write. With --wait, passes follow
one another until every pool has converged: instances are in service, rollouts are
finished, nothing is left to do. Targets go in the order of dependsOn, each once
those before it have converged.

On a terminal the plan is shown first, and the answer to one question applies
exactly that plan; what goes is named, and its number is the answer. --yes asks nothing.
Without a terminal nobody is asked; nothing is deleted, and nothing that was adopted
is rolled for the first time, unless --yes is given.
`

// The time between passes of apply --wait, and how long it waits at most.
const (
	waitQuick      = time.Second
	waitAWS        = 5 * time.Second
	defaultTimeout = 15 * time.Minute
)

func applyCommand(s surroundings) *cobra.Command {
	flags := passFlags{writes: true}
	var output string
	var wait, yes bool
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "apply (--config FILE [TARGET…] | PATH --region REGION) [flags]",
		Short: "make AWS what the manifests say",
		Long:  applyHelp + exitHelp("apply"),
		Example: `  weir apply overlays/prod --region eu-west-1 --var CLUSTER_NAME=prod --wait
  weir apply --config weir.yaml prod --yes
  weir apply overlays/prod --region eu-west-1 --endpoint-url http://127.0.0.1:8345 --wait`,
		Args: cobra.ArbitraryArgs,
	}
	flags.add(c, s)
	outputFlag(c, &output, outputText, outputJSON, outputYAML, outputMarkdown)
	c.Flags().BoolVar(&wait, "wait", false, "make passes until everything has converged")
	c.Flags().BoolVar(&yes, "yes", false, "ask nothing, and delete what is to be deleted")
	c.Flags().DurationVar(&timeout, "timeout", defaultTimeout, "how long --wait waits")
	c.RunE = func(c *cobra.Command, args []string) error {
		if c.Flags().Changed("timeout") && !wait {
			return usage("add --wait", "--timeout goes with --wait")
		}
		if timeout <= 0 {
			return usage("write it like --timeout 10m", "--timeout must be positive")
		}
		progress := newProgress(s)
		w, err := flags.open(c, s, args, progress.logger())
		if err != nil {
			return err
		}
		defer w.close()
		if w.decided = yes; !yes {
			agreed, err := w.agree(c.Context(), s)
			if err == nil && !agreed {
				fmt.Fprintln(s.stderr, "weir: nothing was applied")
				err = withCode(exitRefused)
			}
			if err != nil {
				return err
			}
		}
		run := &applying{work: w, progress: progress, wait: wait, timeout: timeout}
		applied, late := run.apply(c.Context())
		progress.end()
		if err := printApplied(s, output, applied); err != nil {
			return err
		}
		if err := c.Context().Err(); err != nil {
			return err
		}
		return withCode(applyCode(applied, wait, late))
	}
	return c
}

func printApplied(s surroundings, output string, applied []terminal.Applied) error {
	switch output {
	case outputJSON, outputYAML:
		v, err := terminal.Applies(applied)
		if err != nil {
			return err
		}
		return s.value(output, v)
	case outputMarkdown:
		return terminal.AppliedMarkdown(s.stdout, applied)
	}
	p := s.printer(s.stdout)
	for _, a := range applied {
		p.Applied(a)
	}
	return nil
}

func applyCode(applied []terminal.Applied, wait, late bool) int {
	code := exitOK
	var first, last []step.Hold
	if wait { // what a control plane or an earlier target held then has run, or the time was over
		first, last = []step.Hold{step.HeldControlPlane, step.HeldWave}, []step.Hold{step.HeldControlPlane}
	}
	if late {
		last = first
	}
	for _, a := range applied {
		if failing(a.Last) {
			code = gravest(code, exitError)
		}
		if refused(a.First, first...) || refused(a.Last, last...) {
			code = gravest(code, exitRefused)
		}
	}
	if late {
		code = gravest(code, exitNotConverged)
	}
	return code
}

// applying is one apply command at work.
type applying struct {
	work     *work
	progress *progress
	wait     bool
	timeout  time.Duration
}

// apply makes one pass, or with wait passes until everything has converged.
// late says that the time was over before that.
func (a *applying) apply(ctx context.Context) (applied []terminal.Applied, late bool) {
	for _, r := range a.work.pass(ctx, reconciler.Apply) {
		applied = append(applied, terminal.Applied{First: r, Last: r, Outcomes: r.Outcomes})
	}
	a.work.begun()
	if !a.wait {
		return applied, false
	}
	delay := waitAWS
	if a.work.quick {
		delay = waitQuick
	}
	deadline := time.NewTimer(a.timeout)
	defer deadline.Stop()
	for !settled(applied, a.work.gating.opens) {
		a.progress.pools(applied)
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
		for i, r := range a.work.pass(ctx, reconciler.Apply) {
			applied[i].Last = r
			applied[i].Outcomes = merge(applied[i].Outcomes, r.Outcomes)
		}
	}
	a.progress.pools(applied)
	return applied, false
}

// settled reports whether another pass would change nothing: each target has
// converged, or what keeps it from that does not pass by waiting. One that waits for
// others goes on once these let it, which opens says.
func settled(applied []terminal.Applied, opens func(target string) bool) bool {
	for _, a := range applied {
		if !a.Last.Converged() && (!stuck(a.Last) || awaits(a.Last, step.HeldWave) && opens(a.Last.Target)) {
			return false
		}
	}
	return true
}

// stuck reports whether a target waits for a person: it cannot be planned, all
// that is left is held, or AWS refused a step. What still moves is waited for,
// and what may pass by itself is tried again.
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
	return failing(r) || refused(r) && r.Plan.Runnable() == 0
}

// awaits reports whether something is left that is held so.
func awaits(r *plan.Report, by step.Hold) bool {
	return r.Plan != nil && slices.ContainsFunc(r.Plan.Steps, func(st step.Step) bool { return st.Held == by })
}

// passing reports whether a failed call may succeed when it is made again.
func passing(e *observed.Error) bool {
	switch e.Kind {
	case observed.Throttled, observed.Transient, observed.Busy, observed.Unknown, observed.TokenClash:
		return true
	}
	return false
}

// merge adds a later pass's outcomes. A step that was left for later, and one
// that is held as before, is shown once: as it ended.
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

// since is the time that an apply takes so far, for the progress line.
func since(start time.Time) string { return fmt.Sprint(time.Since(start).Round(time.Second)) }
