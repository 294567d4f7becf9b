package fleet

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// Placer returns what makes positions in the tree that has its root at root
// readable. Inside a Git work tree they stay relative to it, as they are in a
// commit. Outside one the tree is the whole file system: a position is then
// relative to the current directory if it lies below, and else absolute.
func Placer(root string) func(diag.Position) diag.Position {
	if filepath.Dir(root) != root {
		return func(p diag.Position) diag.Position { return p }
	}
	cwd, err := os.Getwd()
	if err == nil {
		cwd, err = filepath.EvalSymlinks(cwd)
	}
	return func(p diag.Position) diag.Position {
		if !p.Known() {
			return p
		}
		abs := filepath.Join(root, filepath.FromSlash(p.File))
		p.File = filepath.ToSlash(abs)
		if rel, relErr := filepath.Rel(cwd, abs); err == nil && relErr == nil && !strings.HasPrefix(rel, "..") {
			p.File = filepath.ToSlash(rel)
		}
		return p
	}
}

// PlaceAll applies a Placer to a list.
func PlaceAll(list diag.List, place func(diag.Position) diag.Position) diag.List {
	out := append(diag.List(nil), list...)
	for i := range out {
		out[i].Position = place(out[i].Position)
		out[i].Related = append([]diag.Related(nil), out[i].Related...)
		for j := range out[i].Related {
			out[i].Related[j].Position = place(out[i].Related[j].Position)
		}
	}
	return out
}

// placeDesired applies a Placer to all that a Desired says of positions.
func placeDesired(d *reconciler.Desired, place func(diag.Position) diag.Position) {
	d.Diagnostics = PlaceAll(d.Diagnostics, place)
	if d.Set != nil {
		set := *d.Set
		set.Pools = append([]intent.Pool(nil), set.Pools...)
		for i := range set.Pools {
			set.Pools[i].Blocked = PlaceAll(set.Pools[i].Blocked, place)
		}
		d.Set = &set
	}
	if origins := d.Origins; origins != nil {
		d.Origins = func(ctx context.Context, asked []intent.Question) []diag.Position {
			out := origins(ctx, asked)
			for i := range out {
				out[i] = place(out[i])
			}
			return out
		}
	}
}
