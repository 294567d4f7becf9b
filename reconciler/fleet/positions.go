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

// Readable returns a function that makes positions in the tree at root readable. In a Git work tree,
// positions stay relative to the tree, as in a commit. Outside one, the tree is the whole file system: a
// position becomes relative to the current directory if it is below it, and absolute otherwise.
func Readable(root string) func(diag.Position) diag.Position {
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

// MapPositions applies convert to all positions of a list.
func MapPositions(list diag.List, convert func(diag.Position) diag.Position) diag.List {
	out := append(diag.List(nil), list...)
	for i := range out {
		out[i].Position = convert(out[i].Position)
		out[i].Related = append([]diag.Related(nil), out[i].Related...)
		for j := range out[i].Related {
			out[i].Related[j].Position = convert(out[i].Related[j].Position)
		}
	}
	return out
}

// mapDesired applies the function from Readable to all positions in a Desired.
func mapDesired(d *reconciler.Desired, convert func(diag.Position) diag.Position) {
	d.Diagnostics = MapPositions(d.Diagnostics, convert)
	d.Policy.Fault = faultOf(d.Diagnostics)
	for i := range d.Unplanned { // d's own list, made by fill
		d.Unplanned[i].Fault.Position = convert(d.Unplanned[i].Fault.Position)
	}
	if d.Set != nil {
		set := *d.Set
		set.Pools = append([]intent.Pool(nil), set.Pools...)
		for i := range set.Pools {
			set.Pools[i].Blocked = MapPositions(set.Pools[i].Blocked, convert)
		}
		d.Set = &set
	}
	if origins := d.Origins; origins != nil {
		d.Origins = func(ctx context.Context, asked []intent.Question) []diag.Position {
			out := origins(ctx, asked)
			for i := range out {
				out[i] = convert(out[i])
			}
			return out
		}
	}
}
