package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/workspace"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/importer/terraform"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/terminal"
	"github.com/weir-gitops/weir/status/wording"
)

const adoptHelp = `Adopt launch templates, Auto Scaling groups and nodegroups that already exist under the
names in the manifests: resources of Cluster API Provider AWS, resources without an owner,
and with --from resources of another weir instance.

weir changes only tags, and replaces no machine. The plan shows which resources get new
tags. It also shows, as steps of a later pass, what apply does afterwards: nothing, if the
manifests agree with AWS. A pool with a KubeadmConfig gets one new version of its launch
template, in which only the user data differs; its machines stay.

weir also adopts for targets in report mode and suspended targets, as only tags change. If
Git wants other machines than AWS has, weir holds the first rollout until somebody approves
it or a commit changes the pool.

weir never adopts resources marked by CloudFormation, Karpenter or EKS, or resources of
another cluster. The group behind a nodegroup follows its nodegroup. First stop the program
that reconciles the resources now: for Cluster API pause the cluster, for another weir
suspend its target.

If Terraform manages the resources now, name its state with --from-terraform. The command
first prints removed blocks, with which Terraform forgets the adopted resources and
destroys nothing. Apply them before Terraform's next apply, or Terraform removes weir's
tags again.

Without --yes, the command asks for confirmation on a terminal. Without a terminal it
changes nothing.
`

func adoptCommand(s surroundings) *cobra.Command {
	flags := passFlags{writes: true}
	var output, from, state string
	var pools []string
	var yes bool
	c := &cobra.Command{
		Use:   "adopt (--config FILE [TARGET…] | PATH --region REGION [POOL…]) [flags]",
		Short: "adopt resources that already exist, by changing only tags",
		Long:  adoptHelp + exitHelp("adopt"),
		Example: `  weir adopt overlays/prod --region eu-west-1
  weir adopt overlays/prod --region eu-west-1 web default/batch --yes
  weir adopt --config weir.yaml prod --from fleet-old --yes
  weir adopt fleet --region eu-west-1 --from-terraform state.json`,
		Args: cobra.ArbitraryArgs,
	}
	flags.addWithoutPrune(c, s)
	outputFlag(c, &output, outputText, outputJSON, outputYAML)
	c.Flags().StringVar(&from, "from", "", "also adopt resources of the weir instance of this name")
	c.Flags().StringVar(&state, "from-terraform", "", "file with a Terraform state: print removed blocks for its resources that are adopted")
	c.Flags().StringArrayVar(&pools, "pool", nil, "adopt only this pool, `NAME` or NAMESPACE/NAME; may be repeated (default: all)")
	c.Flags().BoolVar(&yes, "yes", false, "do it without asking")
	c.RunE = func(c *cobra.Command, args []string) error {
		if from != "" && !config.ValidInstance(from) {
			return usage("it is the value of the tag weir.dev/owner", "%q cannot be the name of an instance", from)
		}
		if flags.config == "" && len(args) > 1 {
			pools, args = append(slices.Clone(pools), args[1:]...), args[:1]
		}
		var held *terraform.State
		if state != "" {
			read, err := readTerraform(state)
			if err != nil {
				return err
			}
			held = &read
		}
		w, err := flags.open(c, s, args, s.quiet())
		if err != nil {
			return err
		}
		defer w.Close()
		if err := w.AdoptOnly(from, pools); err != nil {
			return err
		}
		return adopt(c.Context(), s, w, adoption{output, yes, held})
	}
	return c
}

// adoption contains the options of adopt. held is the Terraform state that currently manages the resources,
// nil if none is named.
type adoption struct {
	output string
	yes    bool
	held   *terraform.State
}

// adopt shows the adoption, asks for confirmation if necessary, and executes it.
func adopt(ctx context.Context, s surroundings, w *workspace.Workspace, a adoption) error {
	output := a.output
	if !a.yes || a.held != nil {
		reports := w.Pass(ctx, reconciler.PlanOnly)
		if err := ctx.Err(); err != nil {
			return err
		}
		if !a.yes {
			if err := printAdoptionPlan(s, output, reports); err != nil {
				return err
			}
		}
		if a.held != nil {
			printRemovedBlocks(s, output, *a.held, reports)
		}
		n, code := 0, exitOK
		for _, r := range reports {
			n += adoptable(r)
			if workspace.Failing(r) {
				code = gravest(code, exitError)
			}
			if workspace.Refused(r) {
				code = gravest(code, exitRefused)
			}
		}
		switch {
		case a.yes:
		case n == 0:
			return withCode(code)
		case output != outputText || !s.confirm(ctx, fmt.Sprintf("Change the tags of %s?", wording.Count(n, "resource"))):
			fmt.Fprintln(s.stderr, "weir: nothing was changed: add --yes to adopt what is shown")
			return withCode(gravest(code, exitRefused))
		}
		// The user has not seen resources that appeared later.
		w.Only(reports)
	}
	var applied []terminal.Applied
	for _, r := range w.Pass(ctx, reconciler.Apply) {
		applied = append(applied, terminal.Applied{First: r, Last: r, Outcomes: r.Outcomes})
	}
	code := applyCode(applied, false, false) // the user did not ask for steps that are held from now on
	w.PlanAgain(ctx, applied)
	if err := printAdopted(s, output, applied); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, a := range applied {
		if workspace.Failing(a.Last) {
			code = gravest(code, exitError)
		}
	}
	return withCode(code)
}

// adoptable returns the number of resources in a report that would get new tags.
func adoptable(r *plan.Report) int {
	n := 0
	if r.Plan != nil {
		for _, st := range r.Plan.Steps {
			if st.Verb == step.Adopt && st.Held == "" {
				n++
			}
		}
	}
	return n
}

// nothingToShow reports whether the report of a target contains nothing to show.
func nothingToShow(r *plan.Report) bool {
	return r.Err == nil && r.Plan != nil && r.Plan.Empty() && !r.Diagnostics.HasErrors()
}

func nothingToAdopt(s surroundings, r *plan.Report) {
	fmt.Fprintf(s.stdout, "%s: nothing to adopt.\n", wording.Clean(r.Target))
}

func printAdoptionPlan(s surroundings, output string, reports []*plan.Report) error {
	if output != outputText {
		return s.value(output, terminal.Plans(reports))
	}
	p := s.printer(s.stdout)
	for _, r := range reports {
		if nothingToShow(r) {
			nothingToAdopt(s, r)
			continue
		}
		p.Plan(r)
	}
	return nil
}

func printAdopted(s surroundings, output string, applied []terminal.Applied) error {
	if output != outputText {
		return printApplied(s, output, applied)
	}
	p := s.printer(s.stdout)
	for _, a := range applied {
		if nothingToShow(a.First) {
			nothingToAdopt(s, a.First)
			continue
		}
		p.Applied(a)
	}
	return nil
}
