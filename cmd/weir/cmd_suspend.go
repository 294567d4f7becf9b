package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/control"
	"github.com/weir-gitops/weir/cmd/weir/internal/show"
)

const suspendHelp = `Keep weir from changing a target, or one of its pools, for a while.

It is looked at and planned as before; its steps are held as "suspended", with who
asked for it, until when and why. Calls to AWS that are under way are finished. The
suspension outlives restarts and ends by itself, or with weir resume. A second one
of the same target or pool takes the place of the first.

The daemon is asked on its own machine; where none runs, --config lets the command
write the daemon's state directory.`

func suspendCommand(s surroundings) *cobra.Command {
	var flags commandFlags
	var reason string
	var forFlag string
	c := &cobra.Command{
		Use:   "suspend TARGET [POOL] --reason TEXT --for DURATION [flags]",
		Short: "keep weir from changing a target or a pool for a while",
		Long:  suspendHelp + "\n" + exitHelp("suspend"),
		Example: `  weir suspend prod --reason "incident 17" --for 2h
  weir suspend prod batch/web --reason "load test" --for 30m`,
		Args: cobra.RangeArgs(1, 2),
	}
	flags.add(c, s)
	c.ValidArgsFunction = completeFromDaemon(s, &flags.config, &flags.serverFlags, 1)
	c.Flags().StringVar(&reason, "reason", "", "why; it is shown to everybody")
	c.Flags().StringVar(&forFlag, "for", "", "how long, such as 2h or 7d; at most 90d")
	c.RunE = func(c *cobra.Command, args []string) error {
		length, ok := parseLength(forFlag)
		switch {
		case reason == "":
			return usage("say it with --reason", "a reason is required: it is what others will read")
		case forFlag == "":
			return usage("write it like --for 2h or --for 7d", "say for how long with --for")
		case !ok:
			return usage("write it like --for 2h or --for 7d", "--for cannot be %q: it is a number and a unit, one of d, h, m and s", forFlag)
		case length <= 0 || length > control.LongestSuspension:
			return usage("write it like --for 2h or --for 7d", "--for cannot be %s: it is more than nothing, and at most 90d", forFlag)
		}
		r := control.Request{Target: args[0], Reason: reason, For: length.String()}
		if len(args) > 1 {
			r.Pool = args[1]
		}
		out, err := flags.send(c.Context(), s, control.SuspendPath, r, control.Suspend)
		if err != nil {
			return err
		}
		return flags.tell(s, out, func() {
			fmt.Fprintf(s.stdout, "%s suspended until %s\n", show.Clean(named(out.Suspension.Target, out.Suspension.Pool)), when(out.Suspension.Until))
		})
	}
	return c
}
