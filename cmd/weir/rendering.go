package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/source/worktree"
)

// rendered is what a path on disk renders to.
type rendered struct {
	*render.Result
	// place makes positions readable; those of Diags are so already.
	place func(diag.Position) diag.Position
	// path is the path as place has it.
	path string
	// unused are the variables on the command line that nothing uses, if known says
	// that this could be found out.
	unused []string
	known  bool
}

// renderPath renders a directory or file on disk.
func renderPath(ctx context.Context, s surroundings, path string, in inputs) (*rendered, error) {
	tree, root, rel, err := worktree.OpenPath(path)
	if err != nil {
		return nil, hinted(err, "give a directory with a kustomization, a directory of YAML files, or one file")
	}
	r, err := render.Render(ctx, tree, rel, in.options(true))
	if err != nil {
		return nil, err
	}
	s.secrets.Set("path "+path, r.Hidden)
	place := fleet.Readable(root)
	r.Diags = fleet.MapPositions(r.Diags, place)
	at := place(diag.Position{File: rel}).File
	r.Diags = hintBelow(r.Diags, path, at, len(r.Set.Pools))
	out := &rendered{Result: r, place: place, path: at}
	out.unused, out.known = r.Unused(slices.Sorted(maps.Keys(in.vars)))
	return out, nil
}

// warnUnused are the warnings of variables that nothing uses.
func warnUnused(names []string) (out diag.List) {
	for _, name := range names {
		out = append(out, fleet.UnusedVariable(name))
	}
	return out
}

// plural is a number with its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
