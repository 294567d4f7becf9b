package main

import (
	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/show"
	"github.com/weir-gitops/weir/reconciler"
)

const planHelp = `Show what apply would do, and change nothing.

With --config, the arguments are names of its targets, and what is planned is the
commit that each target's source follows. Without it, PATH is planned as it is on
disk: a kustomization directory, a directory of YAML files, or one file. The
instance is then "weir" and the target the directory's name; resources of another
target are refused, and what PATH no longer wants is left alone without --prune.

Each changed field is shown with the file and line that set it. On a terminal
long values are cut to its width; what is written elsewhere is whole.
`

func planCommand(s surroundings) *cobra.Command {
	var flags passFlags
	var output string
	var detailed, full bool
	c := &cobra.Command{
		Use:   "plan (--config FILE [TARGET…] | PATH --region REGION) [flags]",
		Short: "show what apply would do",
		Long:  planHelp + exitHelp("plan"),
		Example: `  weir plan overlays/prod --region eu-west-1 --var CLUSTER_NAME=prod
  weir plan --config weir.yaml prod --detailed-exitcode
  weir plan overlays/prod --region eu-west-1 --endpoint-url http://127.0.0.1:8345 -o json`,
		Args: cobra.ArbitraryArgs,
	}
	flags.add(c, s)
	outputFlag(c, &output, outputText, outputJSON, outputYAML, outputMarkdown)
	c.Flags().BoolVar(&detailed, "detailed-exitcode", false, "exit with 2 if the plan has changes")
	c.Flags().BoolVar(&full, "full", false, "cut no value to the terminal's width")
	c.RunE = func(c *cobra.Command, args []string) error {
		w, err := flags.open(c, s, args, s.quiet())
		if err != nil {
			return err
		}
		defer w.close()
		reports := w.pass(c.Context(), reconciler.PlanOnly)
		if err := c.Context().Err(); err != nil {
			return err
		}
		switch output {
		case outputJSON, outputYAML:
			err = s.value(output, show.Plans(reports))
		case outputMarkdown:
			err = show.PlansMarkdown(s.stdout, reports)
		default:
			p := s.printer(s.stdout)
			p.Full = full
			for _, r := range reports {
				p.Plan(r)
			}
			p.Errors(reports)
		}
		if err != nil {
			return err
		}
		code := exitOK
		for _, r := range reports {
			if failing(r) || obstructed(r) {
				code = gravest(code, exitError)
			}
			if detailed && r.Plan != nil && !r.Plan.Empty() {
				code = gravest(code, exitChanges)
			}
		}
		return withCode(code)
	}
	return c
}
