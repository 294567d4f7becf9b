package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/advice"
	"github.com/weir-gitops/weir/cmd/weir/internal/workspace"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	steps "github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/nearest"
	"github.com/weir-gitops/weir/status/terminal"
)

const explainHelp = `Show where the values of a pool come from, offline.

PATH is a kustomization directory, a directory of YAML files, or one file. POOL is a
pool's name, or namespace/name if several pools have that name.

Without FIELD it lists every field with its value, and with the file, line and column that
set it or the origin of its default. FIELD is a field as plans name it
(awsLaunchTemplate.instanceType) or as weir render -o intents prints it
(launchTemplate.data.InstanceType). A field that contains others stands for all of them.
With FIELD it shows every step that produced the value: the base, each patch, component,
replacement, prefix and label that changed it, and the values of variables. An uncertain
origin is shown as unknown. For user data it shows the size only.

Instead of POOL, FleetRollout/NAME names a FleetRollout, with the fields below its spec.

With only a code, such as unknown-field, it prints what that diagnostic means and what to
do; render/diag/DIAGNOSTICS.md in the sources lists all codes.
`

func explainCommand(s surroundings) *cobra.Command {
	var vars varFlags
	var output string
	c := &cobra.Command{
		Use:   "explain {PATH POOL [FIELD] | CODE} [flags]",
		Short: "show where a value comes from, or what a code means",
		Long:  explainHelp + exitHelp("explain"),
		Example: `  weir explain overlays/prod web
  weir explain overlays/prod web awsLaunchTemplate.instanceType --vars-file prod.env
  weir explain overlays/prod FleetRollout/nodes waves[0].shares
  weir explain unset-variable`,
		Args: between(1, 3),
	}
	vars.add(c)
	outputFlag(c, &output, outputText, outputJSON, outputYAML)
	c.ValidArgsFunction = completeExplain(s, &vars)
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 1 {
			return explainCode(s, args[0], output)
		}
		values, err := vars.read(s)
		if err != nil {
			return err
		}
		if name, is := rolloutName(args[1]); is {
			return explainRollout(c.Context(), s, append([]string{args[0], name}, args[2:]...), values, output)
		}
		r, pool, err := poolAt(c.Context(), s, args[0], args[1], values)
		if err != nil {
			return err
		}
		s.printer(s.stderr).Diagnostics(warnUnused(r.Unused))
		fields, err := r.Fields(pool)
		if err != nil {
			return err
		}
		var out []terminal.Explained
		if len(args) == 2 {
			for _, f := range fields {
				f.Origin = r.Readable(f.Origin)
				out = append(out, terminal.Explained{Field: f})
			}
		} else if out, err = explainFields(r, pool, fields, args[2]); err != nil {
			return err
		}
		switch {
		case output != outputText:
			return s.value(output, terminal.Explanation(pool.Key, out))
		case len(args) == 2:
			return s.printer(s.stdout).Fields(out)
		default:
			return s.printer(s.stdout).Chains(out)
		}
	}
	return c
}

// explainCode prints the documentation of a diagnostic's code.
func explainCode(s surroundings, code, output string) error {
	rule, ok := diag.RuleOf(code)
	if !ok {
		var codes []string
		for _, r := range diag.Rules() {
			codes = append(codes, r.Code)
		}
		return usage(similarHint(code, codes, "to explain a pool, give PATH and POOL; the codes are listed in render/diag/DIAGNOSTICS.md"), "unknown code %q", code)
	}
	if output != outputText {
		return s.value(output, struct {
			Schema     string          `json:"schema"`
			Code       string          `json:"code"`
			Severities []diag.Severity `json:"severities"`
			Meaning    string          `json:"meaning"`
			Help       string          `json:"help"`
		}{"weir.dev/code/v1", rule.Code, rule.Severities, rule.Short, rule.Help})
	}
	fmt.Fprintf(s.stdout, "%s (%s)\n\n%s.\n\n%s\n", rule.Code, rule.Levels(), sentence(rule.Short), rule.Help)
	return nil
}

// sentence capitalizes the first letter of a text.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// poolAt renders a path and finds a pool in it.
func poolAt(ctx context.Context, s surroundings, path, name string, vars workspace.Inputs) (*workspace.Rendered, *intent.Pool, error) {
	r, err := workspace.Render(ctx, s.secrets, path, vars)
	if err != nil {
		return nil, nil, err
	}
	if r.Objects == nil && r.Diags.HasErrors() {
		s.printer(s.stderr).Diagnostics(r.Diags)
		return nil, nil, failed("render "+path, r.Diags)
	}
	found := poolsNamed(r.Set.Pools, name)
	switch len(found) {
	case 1:
		return r, found[0], nil
	case 0:
		s.printer(s.stderr).Diagnostics(errorsOf(r.Diags))
		var names []string
		for i := range r.Set.Pools {
			names = append(names, r.Set.Pools[i].Key.String())
		}
		hint := "the pools are " + strings.Join(names, ", ")
		if len(names) == 0 {
			hint = "no valid pool found: see weir validate " + path
		} else if r.Diags.HasErrors() {
			hint += "; pools with errors are not listed"
		}
		hint = advice.DidYouMeanPool(name, names, hint)
		return nil, nil, usage(hint, "%[2]s has no pool %[1]q", name, path)
	default:
		return nil, nil, usage("write "+found[0].Key.String()+" or "+found[1].Key.String(), "several pools are named %q", name)
	}
}

// poolsNamed returns the pools with a name, or with a namespace and name. MachinePools are preferred to
// infrastructure pools.
func poolsNamed(pools []intent.Pool, name string) []*intent.Pool {
	var machine, infra []*intent.Pool
	for i := range pools {
		p := &pools[i]
		if name == p.Key.Name || name == p.Key.String() {
			machine = append(machine, p)
		}
		if name == p.Infrastructure.Name || name == p.Infrastructure.Namespace+"/"+p.Infrastructure.Name {
			infra = append(infra, p)
		}
	}
	if len(machine) > 0 {
		return machine
	}
	return infra
}

// explainFields explains the fields that match a name.
func explainFields(r *workspace.Rendered, pool *intent.Pool, fields []render.Field, name string) ([]terminal.Explained, error) {
	path, err := intent.ParsePath(name)
	if err != nil {
		return nil, usage("write it like awsLaunchTemplate.instanceType", "%q is not a field: %v", name, err)
	}
	selected := r.Select(pool, fields, path)
	if len(selected) == 0 {
		return nil, usage(similarHint(name, render.Names(fields), "omit FIELD to list all fields"), "pool %s has no field %q", pool.Key, name)
	}
	return originsOf(r, selected), nil
}

// originsOf returns the origins of fields' values.
func originsOf(r *workspace.Rendered, selected []render.Field) (out []terminal.Explained) {
	known := map[string][]steps.ValueChange{}
	for _, f := range selected {
		// Fields of the pool that are based on one field of a manifest share its origins.
		id := f.Object.String() + "\x00" + f.Manifest.String()
		if _, ok := known[id]; !ok {
			known[id] = r.Chain(f)
		}
		e := terminal.Explained{Field: f, Chain: slices.Clone(known[id])}
		e.Origin = r.Readable(f.Origin)
		for i := range e.Chain {
			step := &e.Chain[i]
			step.Position = r.Readable(step.Position)
			if step.By != nil {
				by := r.Readable(*step.By)
				step.By = &by
			}
		}
		out = append(out, e)
	}
	return out
}

// similarHint returns a hint with the known names that are most similar to a word.
func similarHint(word string, known []string, otherwise string) string {
	type candidate struct {
		name     string
		distance int
	}
	last := func(s string) string { return strings.ToLower(s[strings.LastIndexByte(s, '.')+1:]) }
	var list []candidate
	for _, k := range known {
		most := max(2, len(last(word))/3)
		d := min(nearest.Distance(strings.ToLower(word), strings.ToLower(k), most+1), nearest.Distance(last(word), last(k), most+1)+1)
		if d <= most {
			list = append(list, candidate{k, d})
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var names []string
	for _, n := range list[:min(len(list), 3)] {
		names = append(names, n.name)
	}
	if len(names) == 0 {
		return otherwise
	}
	return "did you mean " + strings.Join(names, " or ") + "? Else " + otherwise
}

// completeExplain completes codes and paths, then the pools of the path, then the fields of the pool.
func completeExplain(s surroundings, vars *varFlags) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var out []cobra.Completion
		if len(args) == 0 {
			for _, r := range diag.Rules() {
				if prefix != "" && strings.HasPrefix(r.Code, prefix) {
					out = append(out, cobra.CompletionWithDesc(r.Code, r.Short))
				}
			}
			return out, cobra.ShellCompDirectiveDefault
		}
		values, err := vars.read(s)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		ctx := c.Context()
		if ctx == nil {
			ctx = context.Background()
		}
		r, err := workspace.Render(ctx, s.secrets, args[0], values)
		if err != nil || len(args) > 2 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if name, is := rolloutName(args[len(args)-1]); is && len(args) == 2 {
			if found := rolloutsNamed(r.Set.Rollouts, name); len(found) == 1 {
				fields, _ := r.RolloutFields(found[0])
				return render.Names(fields), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if len(args) == 1 {
			for i := range r.Set.Rollouts {
				out = append(out, cobra.CompletionWithDesc("FleetRollout/"+r.Set.Rollouts[i].Key.Name, "FleetRollout"))
			}
			for i := range r.Set.Pools {
				p := &r.Set.Pools[i]
				name := p.Key.Name
				if len(poolsNamed(r.Set.Pools, name)) > 1 || strings.Contains(prefix, "/") {
					name = p.Key.String()
				}
				out = append(out, cobra.CompletionWithDesc(name, string(p.Kind)))
			}
			return out, cobra.ShellCompDirectiveNoFileComp
		}
		found := poolsNamed(r.Set.Pools, args[1])
		if len(found) != 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		fields, err := r.Fields(found[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return render.Names(fields), cobra.ShellCompDirectiveNoFileComp
	}
}
