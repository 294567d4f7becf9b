package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/control"
	"github.com/weir-gitops/weir/cmd/weir/internal/show"
)

const reconcileHelp = `Have a running daemon look at Git and make a pass now.

What Git has new starts another pass. A pass looks at all targets; the TARGETs limit what is tried again with --retry:
rollouts that failed, and steps that AWS refused, which are otherwise left alone
until Git changes. --override-window lets the TARGETs do outside of their windows
what else waits for one, until they have converged or an hour has gone by.`

func reconcileCommand(s surroundings) *cobra.Command {
	var flags commandFlags
	var retry, override bool
	c := &cobra.Command{
		Use:   "reconcile [TARGET…] [flags]",
		Short: "have the daemon look at Git and make a pass now",
		Long:  reconcileHelp + "\n" + exitHelp("reconcile"),
		Example: `  weir reconcile
  weir reconcile prod --retry
  weir reconcile prod --override-window`,
		Args: cobra.ArbitraryArgs,
	}
	flags.add(c, s)
	c.Flags().BoolVar(&retry, "retry", false, "try again what failed or was refused")
	c.Flags().BoolVar(&override, "override-window", false, "do not wait for the windows of the targets")
	c.RunE = func(c *cobra.Command, args []string) error {
		if override && len(args) == 0 {
			return usage("name the targets", "--override-window is for named targets only")
		}
		r := control.Request{Targets: args, Retry: retry, OverrideWindow: override}
		out, err := flags.send(c.Context(), s, control.ReconcilePath, r, nil)
		if err != nil {
			return err
		}
		return flags.tell(s, out, func() {
			for _, o := range out.Overrides {
				fmt.Fprintf(s.stdout, "windows of target %s overridden until it has converged, or %s\n", show.Clean(o.Target), when(o.Until))
			}
			fmt.Fprintln(s.stdout, "a look at Git and a pass were asked for")
		})
	}
	return c
}
