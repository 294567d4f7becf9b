package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/status/commands"
	"github.com/weir-gitops/weir/status/wording"
)

const approveHelp = `Approve a held plan, so that it runs.

DIGEST is that of one target's plan, or of all plans of a pull request together;
weir plan -o json, the page and held steps show it. The approval releases steps
held as "approval", in a target with apply: as-reviewed, and as "prune-limit", if a plan
deletes more than the target's limit. It holds for this plan alone and for what must
follow for the same pools, such as deleting the template after its group: if AWS or Git
moves on, the plan has another digest and is held again. An unused approval ends after
seven days.`

func approveCommand(s surroundings) *cobra.Command {
	var flags commandFlags
	c := &cobra.Command{
		Use:     "approve DIGEST [flags]",
		Short:   "approve a plan that is held for approval or by the prune limit",
		Long:    approveHelp + "\n" + exitHelp("approve"),
		Example: "  weir approve 7d1f0c2b9a7e4f6e8a5b3c1d0e9f8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c3d2e1f",
		Args:    cobra.ExactArgs(1),
	}
	flags.add(c, s)
	c.ValidArgsFunction = cobra.NoFileCompletions
	c.RunE = func(c *cobra.Command, args []string) error {
		out, err := flags.send(c.Context(), s, commands.ApprovePath, gates.Request{Digest: args[0]}, gates.Approve)
		if err != nil {
			return err
		}
		return flags.printAnswer(s, out, func() {
			fmt.Fprintf(s.stdout, "approved until %s\n", when(out.Approval.Until))
			if len(out.Plans) > 0 {
				fmt.Fprintf(s.stdout, "it is the plan of %s\n", wording.Clean(strings.Join(out.Plans, ", ")))
			} else {
				fmt.Fprintln(s.stderr, "no plan that weir knows now has this digest")
			}
		})
	}
	return c
}
