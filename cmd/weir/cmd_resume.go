package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/status/commands"
	"github.com/weir-gitops/weir/status/wording"
)

const resumeHelp = `End a suspension that weir suspend started.

Without POOL it ends the suspension of the target; with --all it also ends those of the
target's pools. --all without TARGET ends the suspension of weir suspend --all, and keeps
the suspensions of targets and pools. weir lists what stays suspended. Suspensions in the
configuration and pauses in Git stay. If nothing was suspended, that is no error.

If the records of suspensions and approvals are damaged or gone, weir holds all writes,
and weir status says so. Suspend again what must stay suspended, then use --all
--after-loss: weir continues with the remaining records, and ends no suspension.`

func resumeCommand(s surroundings) *cobra.Command {
	var flags commandFlags
	var all, afterLoss bool
	c := &cobra.Command{
		Use:   "resume {TARGET [POOL] | --all} [flags]",
		Short: "end a suspension",
		Long:  resumeHelp + "\n" + exitHelp("resume"),
		Example: `  weir resume prod
  weir resume prod --all
  weir resume --all
  weir resume --all --after-loss`,
		Args: atMost(2),
	}
	flags.add(c, s)
	c.ValidArgsFunction = completeFromDaemon(s, &flags.config, &flags.serverFlags, 1)
	c.Flags().BoolVar(&all, "all", false, "with TARGET: also end the suspensions of its pools; without: end the suspension of everything")
	c.Flags().BoolVar(&afterLoss, "after-loss", false, "write again although suspensions and approvals were lost; with --all")
	c.RunE = func(c *cobra.Command, args []string) error {
		r, err := subjectOf(args, all, true)
		if err != nil {
			return err
		}
		if r.AfterLoss = afterLoss; afterLoss && (!all || len(args) > 0) {
			return usage("run weir resume --all --after-loss", "--after-loss needs --all")
		}
		out, err := flags.send(c.Context(), s, commands.ResumePath, r, gates.Resume)
		if err != nil {
			return err
		}
		return flags.printAnswer(s, out, func() {
			if out.Accepted != nil {
				fmt.Fprintln(s.stdout, "weir writes again, with the remaining suspensions and approvals")
			}
			for _, e := range out.Resumed {
				fmt.Fprintf(s.stdout, "%s goes on\n", wording.Clean(named(e.Target, e.Pool)))
			}
			if len(out.Resumed) == 0 && !afterLoss {
				fmt.Fprintf(s.stderr, "%s was not suspended\n", wording.Clean(named(r.Target, r.Pool)))
			}
			for _, e := range out.Stays {
				fmt.Fprintf(s.stderr, "note: %s stays %s\n", wording.Clean(named(e.Target, e.Pool)), wording.Clean(e.Text()))
			}
		})
	}
	return c
}
