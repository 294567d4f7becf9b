package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/status/commands"
	"github.com/weir-gitops/weir/status/wording"
)

const suspendHelp = `Keep weir from changing a target, one of its pools, or with --all everything, for a
while.

weir still observes and plans it, and holds its steps as "suspended", with the reason, the
end and the person who asked. It finishes the AWS calls that are under way. The suspension
survives restarts. It ends at its time, or with weir resume. A second suspension of the same
target or pool replaces the first. --all also holds targets that are added later, and keeps
suspensions of targets and pools.

The command asks the daemon on its own machine. If none runs, it writes the daemon's state
directory with --config.`

func suspendCommand(s surroundings) *cobra.Command {
	var flags commandFlags
	var reason, forFlag string
	var all bool
	c := &cobra.Command{
		Use:   "suspend {TARGET [POOL] | --all} --reason TEXT --for DURATION [flags]",
		Short: "keep weir from changing a target, a pool or everything for a while",
		Long:  suspendHelp + "\n" + exitHelp("suspend"),
		Example: `  weir suspend prod --reason "incident 17" --for 2h
  weir suspend prod batch/web --reason "load test" --for 30m
  weir suspend --all --reason "the region is down" --for 4h`,
		Args: atMost(2),
	}
	flags.add(c, s)
	c.ValidArgsFunction = completeFromDaemon(s, &flags.config, &flags.serverFlags, 1)
	c.Flags().StringVar(&reason, "reason", "", "reason, shown to every reader")
	c.Flags().StringVar(&forFlag, "for", "", "how long, such as 2h or 7d; at most 90d")
	c.Flags().BoolVar(&all, "all", false, "suspend all targets")
	c.RunE = func(c *cobra.Command, args []string) error {
		r, err := subjectOf(args, all, false)
		if err != nil {
			return err
		}
		length, ok := parseLength(forFlag)
		switch {
		case reason == "":
			return usage("add --reason TEXT", "a reason is required, because others will read it")
		case forFlag == "":
			return usage("write it like --for 2h or --for 7d", "a duration is required: --for")
		case !ok:
			return usage("write it like --for 2h or --for 7d", "--for cannot be %q: it is a number and a unit, one of d, h, m and s", forFlag)
		case length <= 0 || length > gates.LongestSuspension:
			return usage("write it like --for 2h or --for 7d", "--for cannot be %s: it must be positive and at most 90d", forFlag)
		}
		r.Reason, r.For = reason, length.String()
		out, err := flags.send(c.Context(), s, commands.SuspendPath, r, gates.Suspend)
		if err != nil {
			return err
		}
		return flags.printAnswer(s, out, func() {
			fmt.Fprintf(s.stdout, "%s suspended until %s\n", wording.Clean(named(out.Suspension.Target, out.Suspension.Pool)), when(out.Suspension.Until))
		})
	}
	return c
}

// subjectOf returns the subject of a suspension. If pools is true, --all together with a target also
// applies to the suspensions of the target's pools.
func subjectOf(args []string, all, pools bool) (gates.Request, error) {
	switch {
	case len(args) == 0 && !all:
		return gates.Request{}, usage("name a target, or use --all for all targets", "no target is named")
	case all && (len(args) > 1 || len(args) > 0 && !pools):
		return gates.Request{}, usage("use only one of them", "--all and a name exclude each other")
	}
	r := gates.Request{All: all}
	if len(args) > 0 {
		r.Target = args[0]
	}
	if len(args) > 1 {
		r.Pool = args[1]
	}
	return r, nil
}
