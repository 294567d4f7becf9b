package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/status/commands"
	"github.com/weir-gitops/weir/status/wording"
)

const reconcileHelp = `Make a running daemon read Git and start a pass now.

A new commit starts another pass. A pass covers all targets. TARGETs limit what --retry
tries again: failed rollouts, and steps that AWS refused. Without --retry, weir leaves these
alone until Git changes. --override-window ignores the windows of the TARGETs until they
have converged, or for an hour.`

func reconcileCommand(s surroundings) *cobra.Command {
	var flags commandFlags
	var retry, override bool
	c := &cobra.Command{
		Use:   "reconcile [TARGET…] [flags]",
		Short: "make the daemon read Git and start a pass now",
		Long:  reconcileHelp + "\n" + exitHelp("reconcile"),
		Example: `  weir reconcile
  weir reconcile prod --retry
  weir reconcile prod --override-window`,
		Args: cobra.ArbitraryArgs,
	}
	flags.add(c, s)
	c.Flags().BoolVar(&retry, "retry", false, "retry failed rollouts and refused steps")
	c.Flags().BoolVar(&override, "override-window", false, "do not wait for the windows of the targets")
	c.RunE = func(c *cobra.Command, args []string) error {
		if override && len(args) == 0 {
			return usage("name the targets", "--override-window is for named targets only")
		}
		r := gates.Request{Targets: args, Retry: retry, OverrideWindow: override}
		out, err := flags.send(c.Context(), s, commands.ReconcilePath, r, nil)
		if err != nil {
			return err
		}
		return flags.printAnswer(s, out, func() {
			for _, o := range out.Overrides {
				fmt.Fprintf(s.stdout, "windows of target %s overridden until it has converged, or %s\n", wording.Clean(o.Target), when(o.Until))
			}
			fmt.Fprintln(s.stdout, "requested a read of Git and a pass")
		})
	}
	return c
}
