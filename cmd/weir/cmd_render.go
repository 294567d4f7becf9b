package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/workspace"
	"github.com/weir-gitops/weir/render/diag"
)

const renderHelp = `Print the rendered manifests of PATH, offline, with the values of variables. PATH is a
kustomization directory, a directory of YAML files, or one file.

It builds and does not validate: the exit code is 0 if the build and the values give
manifests. It shows the values of Secrets only with --show-secrets. -o intents prints what
weir makes of the manifests, with the file and line that set each field as a comment.
-o intents-json does so as JSON, with the places in the member origins of each pool.
weir explain shows every step that produced a value.
`

func renderCommand(s surroundings) *cobra.Command {
	var vars varFlags
	var output string
	var show bool
	c := &cobra.Command{
		Use:   "render PATH [flags]",
		Short: "print rendered manifests",
		Long:  renderHelp + exitHelp("render"),
		Example: `  weir render overlays/prod --var CLUSTER_NAME=prod
  weir render overlays/prod --vars-file prod.env -o intents`,
		Args: exactly(1),
	}
	vars.add(c)
	c.Flags().BoolVar(&show, "show-secrets", false, "also print the values of Secrets and secret variables, instead of (redacted)")
	outputFlag(c, &output, outputYAML, outputIntents, outputIntentsJSON)
	c.RunE = func(c *cobra.Command, args []string) error {
		values, err := vars.read(s)
		if err != nil {
			return err
		}
		values.BuildOnly = output == outputYAML
		r, err := workspace.Render(c.Context(), s.secrets, args[0], values)
		if err != nil {
			return err
		}
		s.printer(s.stderr).Diagnostics(warnUnused(r.Unused))
		if r.Secretless {
			s.printer(s.stderr).Diagnostics(slices.DeleteFunc(slices.Clone(r.Diags), func(d diag.Diagnostic) bool { return d.Code != "sops-encrypted" }))
		}
		if r.Objects == nil && r.Diags.HasErrors() {
			s.printer(s.stderr).Diagnostics(r.Diags)
			return failed("render "+args[0], r.Diags)
		}
		return s.rendered(r, args[0], output, show)
	}
	return c
}

// rendered prints the render of a path in an output format.
func (s surroundings) rendered(r *workspace.Rendered, path, output string, show bool) (err error) {
	var out []byte
	switch output {
	case outputIntents:
		out, err = r.IntentsYAML(r.Readable)
	case outputIntentsJSON:
		out, err = r.IntentsJSON(r.Readable)
	default:
		if show {
			_, err = s.open.Write(r.YAML())
			return err
		}
		shown, ok := r.ShownYAML()
		if !ok {
			s.printer(s.stderr).Diagnostics(errorsOf(r.Diags))
			return failed("render "+path, r.Diags)
		}
		out = shown
	}
	if err != nil {
		return err
	}
	if output != outputYAML {
		s.printer(s.stderr).Diagnostics(errorsOf(r.Diags))
	}
	_, err = s.stdout.Write(out)
	return err
}

// errorsOf returns the errors of a list. Pools with an error are not in the intents.
func errorsOf(list diag.List) diag.List {
	var out diag.List
	for _, d := range list {
		if d.Severity == diag.Error {
			out = append(out, d)
		}
	}
	return out
}
