package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/status/commands"
	"github.com/weir-gitops/weir/status/wording"
)

const resumeHelp = `End what weir suspend began.

Without POOL the suspension of the target ends, and with --all those of its pools too.
--all without TARGET ends what weir suspend --all began, and leaves the suspensions of
targets and pools. weir names what stays suspended. Suspensions in the configuration
and pauses in Git stay as they are. It is no error if nothing was suspended.`

func resumeCommand(s surroundings) *cobra.Command {
	var flags commandFlags
	var all bool
	c := &cobra.Command{
		Use:   "resume {TARGET [POOL] | --all} [flags]",
		Short: "end a suspension",
		Long:  resumeHelp + "\n" + exitHelp("resume"),
		Example: `  weir resume prod
  weir resume prod --all
  weir resume --all`,
		Args: cobra.MaximumNArgs(2),
	}
	flags.add(c, s)
	c.ValidArgsFunction = completeFromDaemon(s, &flags.config, &flags.serverFlags, 1)
	c.Flags().BoolVar(&all, "all", false, "end the suspensions of all pools of the target too; without a target, the one of everything")
	c.RunE = func(c *cobra.Command, args []string) error {
		r, err := subjectOf(args, all, true)
		if err != nil {
			return err
		}
		out, err := flags.send(c.Context(), s, commands.ResumePath, r, gates.Resume)
		if err != nil {
			return err
		}
		return flags.printAnswer(s, out, func() {
			for _, e := range out.Resumed {
				fmt.Fprintf(s.stdout, "%s goes on\n", wording.Clean(named(e.Target, e.Pool)))
			}
			if len(out.Resumed) == 0 {
				fmt.Fprintf(s.stderr, "%s was not suspended\n", wording.Clean(named(r.Target, r.Pool)))
			}
			for _, e := range out.Stays {
				fmt.Fprintf(s.stderr, "note: %s stays %s\n", wording.Clean(named(e.Target, e.Pool)), wording.Clean(e.Text()))
			}
		})
	}
	return c
}
