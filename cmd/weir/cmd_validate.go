package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/show"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

const validateHelp = `Check manifests, offline: each PATH is a kustomization directory, a directory of
YAML files, or one file. All faults are shown at once, each with the file, line and
column that it is about. What only AWS can tell is checked by weir plan.
`

// checked is what validation found in one path.
type checked struct {
	Path        string           `json:"path"`
	Pools       int              `json:"pools"`
	Ignored     []intent.Ignored `json:"ignored"`
	Diagnostics diag.List        `json:"diagnostics"`
}

// validation is the JSON form of all that was found.
type validation struct {
	Schema   string    `json:"schema"`
	Valid    bool      `json:"valid"`
	Errors   int       `json:"errors"`
	Warnings int       `json:"warnings"`
	Paths    []checked `json:"paths"`
}

func validateCommand(s surroundings) *cobra.Command {
	var vars varFlags
	var output string
	var verbose bool
	c := &cobra.Command{
		Use:   "validate PATH… [flags]",
		Short: "check manifests, offline",
		Long:  validateHelp + exitHelp("validate"),
		Example: `  weir validate overlays/prod overlays/dev --vars-file values.env
  weir validate pool.yaml -v -o json`,
		Args: cobra.MinimumNArgs(1),
	}
	vars.add(c)
	outputFlag(c, &output, outputText, outputJSON)
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "also list the kinds that weir passes over")
	c.RunE = func(c *cobra.Command, args []string) error {
		values, err := vars.read()
		if err != nil {
			return err
		}
		v := validation{Schema: "weir.dev/validation/v1", Paths: []checked{}}
		for _, path := range args {
			r, err := renderPath(c.Context(), path, values)
			if err != nil {
				return err
			}
			one := checked{Path: path, Pools: len(r.Set.Pools), Ignored: r.Set.Ignored, Diagnostics: r.Diags}
			if one.Ignored == nil {
				one.Ignored = []intent.Ignored{}
			}
			if one.Diagnostics == nil {
				one.Diagnostics = diag.List{}
			}
			v.Errors += r.Diags.Count(diag.Error)
			v.Warnings += r.Diags.Count(diag.Warning)
			v.Paths = append(v.Paths, one)
		}
		v.Valid = v.Errors == 0
		if output == outputJSON {
			err = show.JSON(s.stdout, v)
		} else {
			v.print(s, verbose)
		}
		if err == nil && !v.Valid {
			err = codeError(exitError)
		}
		return err
	}
	return c
}

// print shows the findings of all paths, those that paths share once, and a
// line that sums up.
func (v validation) print(s surroundings, verbose bool) {
	p := s.printer(s.stdout)
	var all diag.List
	pools := 0
	for _, c := range v.Paths {
		all = append(all, c.Diagnostics...)
		pools += c.Pools
	}
	all = all.Sorted()
	p.Diagnostics(all)
	if verbose {
		for _, c := range v.Paths {
			for _, i := range c.Ignored {
				fmt.Fprintf(s.stdout, "%s: %s of kind %s (%s) passed over\n", c.Path, plural(i.Count, "object", "objects"), show.Clean(i.Kind), show.Clean(i.APIVersion))
			}
		}
	}
	found := show.CountDiagnostics(all)
	if found == "" {
		found = "no faults"
	}
	fmt.Fprintf(s.stdout, "%s, %s: %s\n", plural(len(v.Paths), "path", "paths"), plural(pools, "valid pool", "valid pools"), found)
}
