package main

import (
	"context"
	"fmt"

	"github.com/weir-gitops/weir/cmd/weir/internal/fleet"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/source"
)

// renderPath renders a directory or file on disk.
func renderPath(ctx context.Context, path string, vars map[string]string) (*render.Result, error) {
	tree, root, rel, err := source.OpenPath(path)
	if err != nil {
		return nil, err
	}
	r, err := render.Render(ctx, tree, rel, render.Options{Vars: vars})
	if err != nil {
		return nil, err
	}
	r.Diags = fleet.PlaceAll(r.Diags, fleet.Placer(root))
	return r, nil
}

// plural is a number with its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
