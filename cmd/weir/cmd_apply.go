package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/workspace"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/terminal"
)

const applyHelp = `Apply the manifests to AWS, in one pass.

It applies what weir plan shows for the same arguments; weir plan --help describes both
forms. A second apply writes nothing. With --wait, weir runs passes until every pool has
converged: instances are in service, rollouts are finished, and nothing is left to do. It
applies targets in the order of dependsOn, each after the targets before it have converged.

On a terminal it shows the plan, asks once, and applies exactly that plan. Before it
deletes, it lists the deletions and asks for their number. --yes skips all questions.
Without a terminal it asks nothing; then, without --yes, it deletes nothing and starts no
first rollout of an adopted pool.

weir does not retry a failed rollout by itself: change the manifest, or add --retry. If AWS
says that a resource which new machines need does not exist, steps that end machines are
held as "preflight"; --insist runs them anyway.
`

// defaultTimeout is the default timeout of apply --wait.
const defaultTimeout = 15 * time.Minute

func applyCommand(s surroundings) *cobra.Command {
	flags := passFlags{writes: true}
	var output string
	var wait, yes, retry, insist bool
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
	c.Flags().BoolVar(&wait, "wait", false, "run passes until everything has converged")
	c.Flags().BoolVar(&yes, "yes", false, "ask nothing, and run deletions")
	c.Flags().BoolVar(&retry, "retry", false, "retry failed rollouts and refused steps")
	c.Flags().BoolVar(&insist, "insist", false, "replace machines even if AWS refuses every new one")
	c.Flags().DurationVar(&timeout, "timeout", defaultTimeout, "how long --wait waits")
	c.RunE = func(c *cobra.Command, args []string) error {
		if c.Flags().Changed("timeout") && !wait {
			return usage("add --wait", "--timeout needs --wait")
		}
		if timeout <= 0 {
			return usage("write it like --timeout 10m", "--timeout must be positive")
		}
		progress := newProgress(s)
		w, err := flags.open(c, s, args, progress.logger())
		if err != nil {
			return err
		}
		defer w.Close()
		w.Retry, w.Insists = retry, insist
		if w.Decided = yes; !yes {
			agreed, err := confirmApply(c.Context(), s, w)
			if err == nil && !agreed {
				fmt.Fprintln(s.stderr, "weir: nothing was applied")
				err = withCode(exitRefused)
			}
			if err != nil {
				return err
			}
		}
		applied, late := w.Apply(c.Context(), workspace.Wait{Until: wait, Timeout: timeout, Show: progress.pools})
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

// printApplied prints the results of an apply in the given output format.
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

// applyCode returns the exit code of an apply. With wait, it ignores steps that waited for a
// control plane or an earlier target at first, because they have run since. late means that the
// timeout passed before all targets converged.
func applyCode(applied []terminal.Applied, wait, late bool) int {
	code := exitOK
	var first, last []step.Hold
	if wait { // steps that waited for a control plane or an earlier target have run, or the timeout has passed
		first, last = []step.Hold{step.HeldControlPlane, step.HeldWave}, []step.Hold{step.HeldControlPlane}
	}
	if late {
		last = first
	}
	for _, a := range applied {
		if workspace.Failing(a.Last) {
			code = gravest(code, exitError)
		}
		if workspace.Refused(a.First, first...) || workspace.Refused(a.Last, last...) {
			code = gravest(code, exitRefused)
		}
	}
	if late {
		code = gravest(code, exitNotConverged)
	}
	return code
}

// since formats the time since the start of an apply, for the progress line.
func since(start time.Time) string { return fmt.Sprint(time.Since(start).Round(time.Second)) }
