package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/lazyregexp"
)

// roster lists the targets of a source's commit.
type roster struct {
	revision string
	names    []string // sorted
	// removed are the names that the revision removed.
	removed []string
}

// findRemoved finds the targets that each source's commit removed. If a source was not read completely, it
// removed nothing. A change of the configuration removes nothing either.
func (f *Fleet) findRemoved(views map[string]View, items []*item) {
	next := map[string]*roster{}
	for _, source := range f.o.Config.Sources {
		old := f.rosters[source]
		r := &roster{revision: views[source].Snapshot.Revision}
		readable := views[source].Snapshot.Tree != nil
		for _, it := range items {
			switch {
			case it.target.Source != source:
			case !it.unknown:
				r.names = append(r.names, it.name)
			case it.unlisted():
				readable = false
			}
		}
		slices.Sort(r.names)
		switch {
		case !readable && old != nil:
			r = old
		case !readable:
			continue
		case old != nil && old.revision == r.revision:
			r.removed = old.removed
		case old != nil:
			for _, name := range old.names {
				if !slices.ContainsFunc(items, func(it *item) bool { return it.name == name }) {
					r.removed = append(r.removed, name)
				}
			}
		}
		next[source] = r
	}
	f.rosters = next
}

// allKnown reports whether all targets are known.
func allKnown(items []*item) bool {
	return !slices.ContainsFunc(items, (*item).unlisted)
}

// expandedName bounds the names that wildcards may produce: a name becomes the value of a tag (up
// to 256 characters in AWS), a part of an address and an argument on the command line.
var expandedName = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,255}$`)

// named gives the item the name that its path produces. If that is no valid name, the item gets another one
// and an error.
func (it *item) named(name string) {
	it.name = name
	if expandedName.MatchString(name) {
		return
	}
	sum := sha256.Sum256([]byte(it.path))
	it.name = "target-" + hex.EncodeToString(sum[:4])
	why := fmt.Sprintf("%q begins with neither a letter, a digit nor an underscore", name)
	if len(name) > 256 {
		why = fmt.Sprintf("the name would have %d characters, more than the 256 that the value of a tag may have", len(name))
	}
	it.diags = append(it.diags, diag.Diagnostic{
		Severity: diag.Error, Code: "bad-target-name", Summary: fmt.Sprintf("path %s gives no valid name for a target: %s", it.path, why),
		Detail: "Rename the directory, or change the text around the wildcards in the target's name.",
	})
}

// sourceError says that a source could not be read. This is no fault of the commit.
type sourceError struct{ error }

// Unwrap returns the cause, and ErrSource.
func (e sourceError) Unwrap() []error { return []error{e.error, plan.ErrSource} }

// unreadable marks an error of reading a source. It returns nil for nil.
func unreadable(err error) error {
	if err == nil {
		return nil
	}
	return sourceError{err}
}
