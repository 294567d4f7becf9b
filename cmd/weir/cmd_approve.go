package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/status/commands"
	"github.com/weir-gitops/weir/status/wording"
)

const approveHelp = `Approve a held plan, so that it runs.

DIGEST is the digest of one target's plan, or of all plans of a pull request together.
weir plan -o json, the page and held steps show it.

The approval releases steps held as:
  approval     in a target with apply: as-reviewed
  prune-limit  if a plan deletes more than the target's limit
  preflight    if a resource that new machines need is missing, for the reasons in the plan

The approval is for this plan only. If AWS or Git changes before the plan starts, its digest
changes and the plan is held again. Once it has started, its remaining steps and their
consequences run, such as deleting a template after its group. Anything more needs its own
approval, such as a rollout because of a change made in AWS meanwhile. An unused approval
expires after seven days; weir unapprove withdraws it.`

func approveCommand(s surroundings) *cobra.Command {
	var flags commandFlags
	c := &cobra.Command{
		Use:     "approve DIGEST [flags]",
		Short:   "approve a plan that is held for approval or by the prune limit",
		Long:    approveHelp + "\n" + exitHelp("approve"),
		Example: "  weir approve 7d1f0c2b9a7e4f6e8a5b3c1d0e9f8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c3d2e1f",
		Args:    exactly(1),
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
				fmt.Fprintf(s.stdout, "this is the plan of %s\n", wording.Clean(strings.Join(out.Plans, ", ")))
			} else {
				fmt.Fprintln(s.stderr, "no current plan has this digest")
			}
			if len(out.Behind) > 0 {
				fmt.Fprintf(s.stderr, "note: %s has a newer commit. If its plan differs, that plan needs its own approval.\n", wording.Clean(strings.Join(out.Behind, ", ")))
			}
		})
	}
	return c
}

const unapproveHelp = `Withdraw an approval.

DIGEST is the digest that was approved, by weir approve, on the page or in a pull request.
Steps that have not started do not run. If the plan has started, its remaining steps are
held as "approval" again. What AWS is already doing continues, such as an instance refresh;
weir suspend and weir rollout abort stop that.`

func unapproveCommand(s surroundings) *cobra.Command {
	var flags commandFlags
	c := &cobra.Command{
		Use:     "unapprove DIGEST [flags]",
		Short:   "withdraw the approval of a plan",
		Long:    unapproveHelp + "\n" + exitHelp("unapprove"),
		Example: "  weir unapprove 7d1f0c2b9a7e4f6e8a5b3c1d0e9f8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c3d2e1f",
		Args:    exactly(1),
	}
	flags.add(c, s)
	c.ValidArgsFunction = func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return inForce(c.Context(), s, flags), cobra.ShellCompDirectiveNoFileComp
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		out, err := flags.send(c.Context(), s, commands.UnapprovePath, gates.Request{Digest: args[0]}, gates.Unapprove)
		if err != nil {
			return err
		}
		return flags.printAnswer(s, out, func() {
			for _, a := range out.Withdrawn {
				fmt.Fprintf(s.stdout, "the approval by %s of the plan %.12s%s is withdrawn; none of its steps had started\n", wording.Clean(a.By), a.Digest, ofTarget(a.For))
			}
			for _, g := range out.Begun {
				fmt.Fprintf(s.stdout, "the approval by %s of the plan %.12s%s is withdrawn; no further step starts\n", wording.Clean(g.By), g.Digest, ofTarget(g.Target))
			}
		})
	}
	return c
}

// inForce returns the approvals that can be withdrawn, for completion.
func inForce(ctx context.Context, s surroundings, flags commandFlags) (out []cobra.Completion) {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	var c *config.Config
	if flags.config != "" {
		c, _, _ = config.Load(flags.config, s.env()) // with an invalid configuration, there are no completions
	}
	d, err := s.daemonOf(flags.serverFlags, c)
	if err != nil {
		return nil
	}
	var r gates.Records
	if err := d.Ask(ctx, commands.RecordsPath, &r); err != nil {
		return nil
	}
	for _, a := range r.InForce() {
		out = append(out, cobra.CompletionWithDesc(a.Digest, "approved by "+wording.Clean(a.By)+ofTarget(a.For)))
	}
	return out
}

func ofTarget(name string) string {
	if name == "" {
		return ""
	}
	return " of " + wording.Clean(name)
}
