package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/source/snapshot"
)

// allows reports whether the effect of a trailer of the commit is still unknown.
func (it *item) allows() bool {
	r, snap := it.render, it.view.Snapshot
	if r.allowedBy == snap.Revision || slices.Contains(allowedPrunes(snap.Message), it.name) {
		return r.allowedBy != snap.Revision
	}
	r.allowed, r.allowedBy = nil, snap.Revision
	return false
}

// allow finds the pools that the commit's trailer allows weir to delete. They are in the build of the first
// parent and not in the build of the commit. If they cannot be found, it adds a diagnostic, and the next pass
// tries again.
func (it *item) allow(ctx context.Context) error {
	snap := it.view.Snapshot
	if it.render.allowedBy == snap.Revision {
		return nil
	}
	it.render.allowed = nil
	if !slices.Contains(allowedPrunes(snap.Message), it.name) {
		it.render.allowedBy = snap.Revision
		return nil
	}
	note := func(format string, args ...any) error {
		it.diags = append(it.diags, diag.Diagnostic{
			Severity: diag.Warning, Code: "trailer-ignored", Summary: "the trailer " + pruneTrailer + " has no effect: " + fmt.Sprintf(format, args...),
		})
		return ctx.Err()
	}
	if snap.Parent == "" {
		return note("the commit has no parent")
	}
	parent, err := it.view.At(ctx, snap.Parent)
	if err != nil {
		return note("%v", err)
	}
	before, err := render.Keep(ctx, parent.Tree, it.path, it.options(), render.NewShared(it.budget.shared))
	if err != nil {
		return note("%v", err)
	}
	if before.Diags.HasErrors() {
		return note("the parent commit does not render")
	}
	it.render.allowed, it.render.allowedBy = map[string]bool{}, snap.Revision
	for _, p := range before.Set.Pools {
		it.render.allowed[p.Key.String()] = true
	}
	for _, p := range it.render.result.Set.Pools {
		delete(it.render.allowed, p.Key.String())
	}
	if it.proposed {
		it.diags = append(it.diags, diag.Diagnostic{
			Severity: diag.Info, Code: "trailer-counts", Summary: "the head commit has the trailer " + pruneTrailer + ": what it removes may be deleted beyond the limit",
			Detail: diag.Hint("trailer-counts"),
		})
	}
	return nil
}

// pruneTrailer is the Git trailer that lets a target delete more than its limit.
const pruneTrailer = "Weir-Allow-Prune"

// allowedPrunes returns the targets that the trailers of a commit message name. Each trailer names one.
func allowedPrunes(message string) []string {
	var out []string
	for _, t := range snapshot.Trailers(message) {
		if strings.EqualFold(t.Key, pruneTrailer) {
			out = append(out, t.Value)
		}
	}
	return out
}
