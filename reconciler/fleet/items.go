package fleet

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/targetspec"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/sops"
)

// item is a target during a composition.
type item struct {
	target *targetspec.Target
	name   string
	path   string
	match  targetspec.Match
	view   View
	vars   map[string]string
	// secretVars names the variables that are marked as secret. keys decrypt encrypted files.
	secretVars []string
	keys       keyring
	// valueFiles are the files of the tree that contain values of variables.
	valueFiles []string
	// plain and keyless replace the variables and the decrypter in an untrusted proposal. hidden says that
	// plain has placeholders.
	plain   map[string]string
	keyless *sops.Decrypter
	hidden  bool
	// proposed says that the item is of a proposal. light says that the proposal must be light.
	proposed, light bool
	// earlier says that the item is of an earlier commit, because the followed one cannot be applied.
	earlier bool
	// unknown says that the item represents the targets of a path with wildcards whose names are unknown,
	// because the path matches nothing or could not be read. crowded says that the targets are too many.
	unknown, crowded bool
	// rowless says that the target's table has no row for the item.
	rowless bool
	// waitsFor are the targets that must converge first.
	waitsFor []string
	// err is the reason why the target cannot be rendered, or why its render may be incomplete.
	err error
	// doubted says that the commit may change the target, but err prevents a comparison.
	doubted bool
	diags   diag.List
	render  *rendered
	budget  *budget
	written Written
	desired reconciler.Desired
	key     reconciler.ScopeKey
	// heldSum identifies the intents of the earlier revision that the target uses, if it uses one.
	heldSum string
	// kept says that the last build is valid for the commit. since is when the render of a newer commit
	// started, if it has not ended.
	kept  bool
	since time.Time
}

// unlisted reports whether the item's targets are unknown.
func (it *item) unlisted() bool { return it.unknown && (it.err != nil || it.crowded) }

// expand makes one item of each target that the configuration stands for.
func (f *Fleet) expand(in *inputs) []*item {
	f.earlier, f.made = f.made, map[string]*targetspec.Target{}
	var items []*item
	taken := map[string]*item{}
	room := map[string]int{} // how many more targets each source may have
	for _, name := range f.o.Config.Sources {
		room[name] = int(f.limits().Targets)
	}
	for i := range f.o.Config.Targets {
		t := &f.o.Config.Targets[i]
		expanded := expandTarget(t, in.views[t.Source], f.limits(), room[t.Source])
		room[t.Source] -= len(expanded)
		if in.unusedRows {
			unmatched(t, expanded)
		}
		f.give(in, t, expanded)
		for _, it := range expanded {
			if first := taken[it.name]; first != nil {
				first.diags = append(first.diags, diag.Diagnostic{
					Severity: diag.Error, Code: "duplicate-target",
					Summary: fmt.Sprintf("paths %s and %s both define the target %q", first.path, it.path, it.name),
					Detail:  "Give the targets names that tell them apart.",
				})
				continue
			}
			taken[it.name] = it
			items = append(items, it)
		}
	}
	return items
}

// expandTarget makes an item of each target that t stands for. room bounds the number of items for
// its source.
func expandTarget(t *targetspec.Target, v View, limits targetspec.Limits, room int) []*item {
	glob, err := targetspec.ParseGlob(t.Path)
	if err != nil {
		return []*item{{target: t, name: t.Name, path: t.Path, view: v, err: err}}
	}
	if v.Snapshot.Tree == nil {
		// The matches of a wildcard are unknown. One item stands for all of them, so that the account does
		// not count as complete.
		err := v.Err
		if err == nil {
			err = fmt.Errorf("read source %s: not read yet", t.Source)
		}
		return []*item{{target: t, name: t.Name, path: t.Path, view: v, unknown: true, err: unreadable(err)}}
	}
	matches, found, err := glob.Expand(v.Snapshot.Tree, room)
	switch {
	case errors.Is(err, targetspec.ErrTooManyNames) || found > room:
		return []*item{{target: t, name: t.Name, path: t.Path, view: v, unknown: true, crowded: true, diags: diag.List{tooManyTargets(t, limits, found, room)}}}
	case err != nil:
		return []*item{{target: t, name: t.Name, path: t.Path, view: v, unknown: true, err: unreadable(err)}}
	}
	if len(matches) == 0 {
		return []*item{{target: t, name: t.Name, path: t.Path, view: v, unknown: true, diags: diag.List{{
			Severity: diag.Error, Code: "path-missing", Summary: fmt.Sprintf("nothing in the commit matches path %s", t.Path),
			Detail: "Correct targets.path, or remove the target from the configuration. Until then weir deletes nothing in the accounts and regions of this target.",
		}}}}
	}
	items := make([]*item, len(matches))
	for i, m := range matches {
		items[i] = &item{target: t, path: m.Path, match: m, view: v}
		items[i].named(targetspec.NameFor(t.Name, m))
	}
	return items
}
