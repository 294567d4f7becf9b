package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/status/commands"
	"github.com/weir-gitops/weir/status/wording"
)

const reconcileHelp = `Make a running daemon read Git and start a pass now.

A new commit starts another pass. A pass looks at all targets; the TARGETs limit what
--retry tries again: rollouts that failed, and steps that AWS refused, which weir
otherwise leaves alone until Git changes. --override-window lets the TARGETs do
outside of their windows what else waits for one, until they have converged or an hour
has gone by.

Where the file with suspensions and approvals is damaged or gone, weir holds all
writes, and weir status says so. Suspend again what must stay suspended, then say
--accept-lost-state.`

func reconcileCommand(s surroundings) *cobra.Command {
	var flags commandFlags
	var retry, override, accept bool
	c := &cobra.Command{
		Use:   "reconcile [TARGET…] [flags]",
		Short: "make the daemon read Git and start a pass now",
		Long:  reconcileHelp + "\n" + exitHelp("reconcile"),
		Example: `  weir reconcile
  weir reconcile prod --retry
  weir reconcile prod --override-window
  weir reconcile --accept-lost-state`,
		Args: cobra.ArbitraryArgs,
	}
	flags.add(c, s)
	c.Flags().BoolVar(&retry, "retry", false, "try again what failed or was refused")
	c.Flags().BoolVar(&override, "override-window", false, "do not wait for the windows of the targets")
	c.Flags().BoolVar(&accept, "accept-lost-state", false, "write again, though suspensions and approvals were lost")
	c.RunE = func(c *cobra.Command, args []string) error {
		if override && len(args) == 0 {
			return usage("name the targets", "--override-window is for named targets only")
		}
		if accept && (len(args) > 0 || retry || override) {
			return usage("leave the rest out", "--accept-lost-state is for all targets, and goes alone")
		}
		r := gates.Request{Targets: args, Retry: retry, OverrideWindow: override, AcceptLostState: accept}
		var alone direct
		if accept {
			alone = gates.Reconcile
		}
		out, err := flags.send(c.Context(), s, commands.ReconcilePath, r, alone)
		if err != nil {
			return err
		}
		return flags.printAnswer(s, out, func() {
			if out.Accepted != nil {
				fmt.Fprintln(s.stdout, "weir writes again, with the suspensions and approvals that there are now")
				return
			}
			for _, o := range out.Overrides {
				fmt.Fprintf(s.stdout, "windows of target %s overridden until it has converged, or %s\n", wording.Clean(o.Target), when(o.Until))
			}
			fmt.Fprintln(s.stdout, "a look at Git and a pass were asked for")
		})
	}
	return c
}
