package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/weir-gitops/weir/cmd/weir/internal/advice"
	"github.com/weir-gitops/weir/cmd/weir/internal/workspace"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/status/terminal"
	"github.com/weir-gitops/weir/status/wording"
)

const validateHelp = `Check manifests, offline. Each PATH is a kustomization directory, a directory of YAML
files, one file, or a directory with a directory overlays; then weir checks each overlay. It
shows all faults at once, each with its file, line and column. A fault of several paths is
shown once. weir plan also checks what only AWS can answer.

File names are relative to the root of their Git repository, whatever the current directory.
-o sarif prints a SARIF 2.1.0 log for code scanning. -o github prints workflow commands,
which GitHub Actions shows next to the lines of a pull request. weir explain CODE explains a
code.
`

// checked is the result for one validated path.
type checked struct {
	Path     string           `json:"path"`
	Pools    int              `json:"pools"`
	Errors   int              `json:"errors"`
	Warnings int              `json:"warnings"`
	Ignored  []intent.Ignored `json:"ignored"`

	inRepository string // the path relative to its repository
	diags        diag.List
	unused       []string // variables of the command line, if known
	known        bool
}

// validation is the JSON form of all results. It counts a finding that several paths share once.
type validation struct {
	Schema      string         `json:"schema"`
	Valid       bool           `json:"valid"`
	Errors      int            `json:"errors"`
	Warnings    int            `json:"warnings"`
	Paths       []checked      `json:"paths"`
	Diagnostics []diag.Finding `json:"diagnostics"`
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
  weir validate pool.yaml -v -o json
  weir validate overlays/* -o sarif > weir.sarif`,
		Args: atLeast(1),
	}
	vars.add(c)
	outputFlag(c, &output, outputText, outputJSON, outputYAML, outputSARIF, outputGitHub)
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "also list the kinds that weir ignores")
	c.RunE = func(c *cobra.Command, args []string) error {
		values, err := vars.read(s)
		if err != nil {
			return err
		}
		var given []string
		for _, path := range args {
			if dirs := workspace.Overlays(path); dirs != nil {
				given = append(given, dirs...)
				continue
			}
			given = append(given, path)
		}
		paths, err := checkAll(c.Context(), s, given, values)
		if err != nil {
			return err
		}
		addUnusedWarnings(paths)
		v := summed(paths)
		switch output {
		case outputJSON, outputYAML:
			err = s.value(output, v)
		case outputSARIF:
			err = terminal.SARIF(s.stdout, buildOf().Version, findings(paths, true))
		case outputGitHub:
			err = terminal.GitHub(s.stdout, findings(paths, true))
			v.sumUp(s.stderr)
		default:
			v.print(s, verbose)
		}
		if err == nil && !v.Valid {
			err = codeError(exitError)
		}
		return err
	}
	return c
}

// checkAll validates paths in parallel, and returns the results in the order of the paths.
func checkAll(ctx context.Context, s surroundings, paths []string, vars workspace.Inputs) ([]checked, error) {
	out := make([]checked, len(paths))
	p := newProgress(s)
	defer p.end()
	var done atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	// Rendering uses only the CPU, so a higher limit would only cost memory.
	g.SetLimit(min(runtime.GOMAXPROCS(0), 8))
	for i, path := range paths {
		g.Go(func() error {
			one, err := checkPath(ctx, s, path, vars)
			if err != nil {
				return err
			}
			out[i] = one
			p.count(int(done.Add(1)), len(paths), "paths checked")
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return out, nil
}

func checkPath(ctx context.Context, s surroundings, path string, vars workspace.Inputs) (checked, error) {
	r, err := workspace.Render(ctx, s.secrets, path, vars)
	if err != nil {
		return checked{}, err
	}
	return checked{
		Path: path, inRepository: r.Path, Pools: len(r.Set.Pools), Ignored: append([]intent.Ignored{}, r.Set.Ignored...),
		Errors: r.Diags.Count(diag.Error), Warnings: r.Diags.Count(diag.Warning), diags: r.Diags,
		unused: r.Unused, known: r.Known,
	}, nil
}

// addUnusedWarnings adds a warning to each path for each variable of the command line that no path uses. If a
// path could not be built, it may use any variable, so there are no warnings.
func addUnusedWarnings(paths []checked) {
	unused := paths[0].unused
	for _, c := range paths {
		if !c.known {
			return
		}
		unused = slices.DeleteFunc(slices.Clone(unused), func(name string) bool { return !slices.Contains(c.unused, name) })
	}
	for i := range paths {
		paths[i].diags = append(slices.Clone(paths[i].diags), warnUnused(unused)...).Sorted()
		paths[i].Warnings += len(unused)
	}
}

// findings returns the findings of all paths, each once. inRepository selects paths relative to the
// repository instead of the given paths.
func findings(paths []checked, inRepository bool) []diag.Finding {
	names, lists := make([]string, len(paths)), make([]diag.List, len(paths))
	for i, c := range paths {
		names[i], lists[i] = c.Path, c.diags
		if inRepository {
			names[i] = c.inRepository
		}
	}
	return diag.Merge(names, lists)
}

func summed(paths []checked) validation {
	v := validation{Schema: "weir.dev/validation/v1", Paths: paths, Diagnostics: findings(paths, false)}
	for _, f := range v.Diagnostics {
		switch f.Severity {
		case diag.Error:
			v.Errors++
		case diag.Warning:
			v.Warnings++
		}
	}
	v.Valid = v.Errors == 0
	return v
}

// print prints the findings of all paths, and a summary line.
func (v validation) print(s surroundings, verbose bool) {
	p := s.printer(s.stdout)
	for _, f := range v.Diagnostics {
		p.Diagnostics(diag.List{f.Diagnostic})
		if len(v.Paths) > 1 && len(f.Paths) > 1 {
			fmt.Fprintf(s.stdout, "    in %s\n", wording.Clean(advice.JoinNames(f.Paths)))
		}
	}
	if verbose {
		for _, c := range v.Paths {
			for _, i := range c.Ignored {
				fmt.Fprintf(s.stdout, "%s: %s of kind %s (%s) ignored\n", c.Path, plural(i.Count, "object", "objects"), wording.Clean(i.Kind), wording.Clean(i.APIVersion))
			}
		}
	}
	v.sumUp(s.stdout)
}

// sumUp prints one line with the numbers of valid pools, diagnostics and paths.
func (v validation) sumUp(w io.Writer) {
	pools := 0
	for _, c := range v.Paths {
		pools += c.Pools
	}
	var list diag.List
	for _, f := range v.Diagnostics {
		list = append(list, f.Diagnostic)
	}
	text := plural(pools, "pool", "pools") + " valid"
	if found := terminal.CountDiagnostics(list); found != "" {
		text += ", " + found + " in " + plural(len(v.Paths), "path", "paths")
	} else if len(v.Paths) > 1 {
		text += " in " + plural(len(v.Paths), "path", "paths")
	}
	fmt.Fprintln(w, text)
}

// plural formats a number with its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
