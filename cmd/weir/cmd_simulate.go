package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/workspace"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/simulate"
	"github.com/weir-gitops/weir/reconciler/simulate/timeline"
	"github.com/weir-gitops/weir/status/forecast"
)

const simulateHelp = `Show what a change would do over time, and change nothing.

weir plans as weir plan does, with the same calls. Then it runs its own passes on a copy of
what it read: an embedded AWS in this process, with the rate limits of EC2 and Auto Scaling
and a simulated clock. The output shows waves, how many machines run which version, how many
there are above the desired size, calls to AWS by rate limit, throttling, and when the change
is complete. weir writes nothing, and sends no other request.

Its passes wait for windows, FleetRollouts, dependsOn and limits of rollouts on the simulated
clock. If a step waits for a person, such as for an approval, the simulation ends there and
says so. With --approved it takes every approval as given at once.

The durations of machines and nodegroups are assumptions. Flags change them, and the output
lists all of them. weir plan shows what AWS would refuse.

TARGET, PATH, --path, --ref and --pull-request are as in weir plan. A PATH has no windows
and no other targets.
`

func simulateCommand(s surroundings) *cobra.Command {
	var flags passFlags
	var output string
	var detailed bool
	var timeout time.Duration
	var proposal proposalFlags
	var assume simulate.Assumptions
	c := &cobra.Command{
		Use:   "simulate --config FILE [TARGET…] [--path DIR] [--ref REF] [--pull-request NUMBER] [flags], or weir simulate PATH --region REGION [flags]",
		Short: "show what a change would do over time",
		Long:  simulateHelp + exitHelp("simulate"),
		Example: `  weir simulate overlays/prod --region eu-west-1 --var CLUSTER_NAME=prod
  weir simulate --config weir.yaml prod --machine-ready 5m
  weir simulate --config weir.yaml --ref my-branch --approved
  weir simulate --config weir.yaml --pull-request 12
  weir simulate --config weir.yaml --path . -o svg >change.svg`,
		Args: cobra.ArbitraryArgs,
	}
	flags.add(c, s)
	proposal.add(c)
	outputFlag(c, &output, outputText, outputJSON, outputYAML, outputSVG)
	c.Flags().BoolVar(&detailed, "detailed-exitcode", false, "exit with 2 if the plan has changes")
	c.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long the simulation may take on this machine; then it shows its result so far")
	c.Flags().DurationVar(&assume.MachineReady, "machine-ready", simulate.DefaultMachineReady, "how long a machine takes from its launch until it is in service, and Ready in its cluster")
	c.Flags().DurationVar(&assume.MachineGone, "machine-gone", simulate.DefaultMachineGone, "how long a machine takes to terminate")
	c.Flags().DurationVar(&assume.NodegroupCreate, "nodegroup-create", simulate.DefaultNodegroupCreate, "how long EKS takes to create a nodegroup, without its machines")
	c.Flags().DurationVar(&assume.NodegroupUpdate, "nodegroup-update", simulate.DefaultNodegroupUpdate, "how long EKS takes at least to update a nodegroup")
	c.Flags().DurationVar(&assume.NodegroupDelete, "nodegroup-delete", simulate.DefaultNodegroupDelete, "how long EKS takes to delete a nodegroup")
	c.Flags().BoolVar(&assume.Approved, "approved", false, "assume that every approval is given at once")
	c.RunE = func(c *cobra.Command, args []string) error {
		for _, name := range []string{"timeout", "machine-ready", "machine-gone", "nodegroup-create", "nodegroup-update", "nodegroup-delete"} {
			if d, err := c.Flags().GetDuration(name); err != nil || d <= 0 {
				return usage("write it like 3m or 90s", "--%s must be more than 0", name)
			}
		}
		t, reports, err := simulated(c, s, &flags, proposal, assume, timeout, args)
		if err != nil {
			return err
		}
		if t != nil {
			switch output {
			case outputJSON, outputYAML:
				err = s.value(output, t)
			case outputSVG:
				_, err = io.WriteString(s.stdout, forecast.SVG(t))
			default:
				err = forecast.Text(s.stdout, t)
			}
		}
		if err != nil {
			return err
		}
		s.printer(s.stderr).Errors(reports)
		return withCode(planCode(reports, detailed))
	}
	return c
}

// planCode returns the exit code of plans.
func planCode(reports []*plan.Report, detailed bool) int {
	code := exitOK
	for _, r := range reports {
		if workspace.Failing(r) || workspace.Obstructed(r) {
			code = gravest(code, exitError)
		}
		if detailed && r.Plan != nil && !r.Plan.Empty() {
			code = gravest(code, exitChanges)
		}
	}
	return code
}

// draftScene plans a proposal, and returns it as the scene of a simulation.
func draftScene(c *cobra.Command, env workspace.Env, flags *passFlags, proposal proposalFlags, cfg *config.Config, args []string) (scene simulate.Scene, _ []*plan.Report, err error) {
	if err := flags.checkPathFlags(c); err != nil {
		return scene, nil, err
	}
	draft, err := proposal.draft(c, args)
	if err != nil {
		return scene, nil, err
	}
	scene, drafted, err := workspace.DraftScene(c.Context(), env, cfg, draft)
	if err != nil {
		return scene, nil, err
	}
	for _, text := range drafted.Notes() {
		env.Note(text)
	}
	return scene, drafted.Reports, nil
}

// simulated makes the plans for a command line, and simulates them. The timeline is nil if nothing could be
// planned; the reports contain the reasons.
func simulated(c *cobra.Command, s surroundings, flags *passFlags, proposal proposalFlags, assume simulate.Assumptions, timeout time.Duration, args []string) (*timeline.Timeline, []*plan.Report, error) {
	ctx := c.Context()
	var scene simulate.Scene
	var reports []*plan.Report
	var cfg *config.Config
	if flags.config != "" {
		var err error
		if cfg, err = s.loadConfig(flags.config); err != nil {
			return nil, nil, err
		}
		assume.Share = cfg.AWS.Share()
	}
	switch {
	case proposal.given():
		if cfg == nil {
			return nil, nil, usage("add --config FILE", "%s needs the targets of a configuration", given(c, proposals...))
		}
		var err error
		if scene, reports, err = draftScene(c, flags.env(s, s.quiet()), flags, proposal, cfg, args); err != nil {
			return nil, nil, err
		}
	default:
		w, err := flags.open(c, s, args, s.quiet())
		if err != nil {
			return nil, nil, err
		}
		defer w.Close()
		scene, reports = w.Scene(ctx)
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	p := newProgress(s)
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	t, err := simulate.Run(limited, scene, assume, func(at simulate.Progress) {
		p.say(fmt.Sprintf("%d passes, %s simulated, %s", at.Passes, at.Simulated.Round(time.Second), since(p.start)))
	})
	p.end()
	switch {
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case errors.Is(err, simulate.ErrNothing):
		return nil, reports, nil
	case limited.Err() != nil && err != nil:
		return nil, nil, hinted(fmt.Errorf("simulate: the fleet could not be copied within %s", timeout), "give it more time with --timeout")
	}
	return t, reports, err
}
