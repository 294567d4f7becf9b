package main

import (
	"context"
	"strings"

	"github.com/weir-gitops/weir/cmd/weir/internal/workspace"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/status/terminal"
)

// rolloutName returns the name in FleetRollout/NAME. No pool matches this form, because namespaces are in
// lower case.
func rolloutName(arg string) (string, bool) { return strings.CutPrefix(arg, "FleetRollout/") }

// rolloutsNamed returns the FleetRollouts with a name, or with a namespace and name.
func rolloutsNamed(list []intent.FleetRollout, name string) (out []*intent.FleetRollout) {
	for i := range list {
		if f := &list[i]; name == f.Key.Name || name == f.Key.String() {
			out = append(out, f)
		}
	}
	return out
}

// explainRollout shows the origins of a FleetRollout's values. args are a path, its name and optionally a
// field.
func explainRollout(ctx context.Context, s surroundings, args []string, values workspace.Inputs, output string) error {
	r, err := workspace.Render(ctx, s.secrets, args[0], values)
	if err != nil {
		return err
	}
	if r.Objects == nil && r.Diags.HasErrors() {
		s.printer(s.stderr).Diagnostics(r.Diags)
		return failed("render "+args[0], r.Diags)
	}
	found := rolloutsNamed(r.Set.Rollouts, args[1])
	switch len(found) {
	case 1:
	case 0:
		s.printer(s.stderr).Diagnostics(errorsOf(r.Diags))
		var names []string
		for i := range r.Set.Rollouts {
			names = append(names, r.Set.Rollouts[i].Key.Name)
		}
		hint := "it has no valid FleetRollout: see weir validate " + args[0]
		if len(names) > 0 {
			hint = similarHint(args[1], names, "the FleetRollouts are "+strings.Join(names, ", "))
		}
		return usage(hint, "%[2]s has no FleetRollout %[1]q", args[1], args[0])
	default:
		return usage("write FleetRollout/"+found[0].Key.String()+" or FleetRollout/"+found[1].Key.String(), "several FleetRollouts are named %q", args[1])
	}
	s.printer(s.stderr).Diagnostics(warnUnused(r.Unused))
	fields, err := r.RolloutFields(found[0])
	if err != nil {
		return err
	}
	var out []terminal.Explained
	if len(args) == 2 {
		for _, f := range fields {
			f.Origin = r.Readable(f.Origin)
			out = append(out, terminal.Explained{Field: f})
		}
	} else {
		path, err := intent.ParsePath(args[2])
		if err != nil {
			return usage("write it like waves[0].pools", "%q is not a field: %v", args[2], err)
		}
		selected := render.SelectRollout(fields, path)
		if len(selected) == 0 {
			return usage(similarHint(args[2], render.Names(fields), "omit FIELD to list all fields"), "FleetRollout %s has no field %q", found[0].Key, args[2])
		}
		out = originsOf(r, selected)
	}
	switch {
	case output != outputText:
		return s.value(output, terminal.RolloutExplanation(found[0].Key, out))
	case len(args) == 2:
		return s.printer(s.stdout).Fields(out)
	default:
		return s.printer(s.stdout).Chains(out)
	}
}
