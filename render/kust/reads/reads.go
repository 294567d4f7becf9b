// Package reads records the lookups of a build in a tree, and compares their results with another tree.
package reads

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/tree"
)

// Set has the lookups of a build, with their results. For a path, the result is the mode and hash of a blob
// or link, or that it is a directory or missing. For a listed directory, the result is the names of its
// files. If all results are the same in another tree, so is the build. The zero value is an empty set. A Set
// is immutable after Sort.
type Set struct {
	paths []reading // lookups of paths
	lists []reading // names of the YAML files in directories
}

// reading is a lookup of a path with its result.
type reading struct{ path, found string }

const missing = "missing"

// state returns everything at a path that a build can depend on. It omits the hash of a directory, because
// its contents are recorded path by path.
func state(e tree.Entry, err error) string {
	switch {
	case err != nil:
		return missing
	case e.Mode == tree.Dir:
		return e.Mode.String()
	default:
		return e.Mode.String() + " " + e.Hash
	}
}

// Add records the lookup of a path, with its result. It must be called only once for each path.
func (s *Set) Add(path string, e tree.Entry, err error) {
	s.paths = append(s.paths, reading{path, state(e, err)})
}

// AddNames records the lookup of the names of the YAML files in a directory.
func (s *Set) AddNames(dir string, names []string) {
	s.lists = append(s.lists, reading{dir, joined(names)})
}

// Sort must be called after the last Add or AddNames.
func (s *Set) Sort() {
	slices.SortFunc(s.paths, reading.compare)
	slices.SortFunc(s.lists, reading.compare)
}

func (r reading) compare(o reading) int {
	return cmp.Or(strings.Compare(r.path, o.path), strings.Compare(r.found, o.found))
}

// Union returns the lookups of all sets. It has the same results in a tree if each of the sets does.
func Union(sets ...Set) Set {
	var out Set
	for _, s := range sets {
		out.paths, out.lists = append(out.paths, s.paths...), append(out.lists, s.lists...)
	}
	slices.SortFunc(out.paths, reading.compare)
	slices.SortFunc(out.lists, reading.compare)
	out.paths, out.lists = slices.Clip(slices.Compact(out.paths)), slices.Clip(slices.Compact(out.lists))
	return out
}

// With returns the set with each string replaced by an equal one from one, so that several sets can share
// strings.
func (s Set) With(one func(string) string) Set {
	replaced := func(list []reading) []reading {
		out := make([]reading, len(list))
		for i, r := range list {
			out[i] = reading{one(r.path), one(r.found)}
		}
		return out
	}
	return Set{paths: replaced(s.paths), lists: replaced(s.lists)}
}

// Record is a Set in a form for storage.
type Record struct{ Paths, Lists []Reading }

// Reading is the result of a lookup of a path.
type Reading struct{ Path, Found string }

// Record returns the set in a form for storage.
func (s Set) Record() Record {
	of := func(list []reading) (out []Reading) {
		for _, r := range list {
			out = append(out, Reading{r.path, r.found})
		}
		return out
	}
	return Record{Paths: of(s.paths), Lists: of(s.lists)}
}

// Set returns the stored set.
func (r Record) Set() Set {
	of := func(list []Reading) (out []reading) {
		for _, r := range list {
			out = append(out, reading{r.Path, r.Found})
		}
		return out
	}
	return Set{paths: of(r.Paths), lists: of(r.Lists)}
}

// Len returns the number of lookups in the set.
func (s Set) Len() int { return len(s.paths) + len(s.lists) }

// Same reports whether every lookup of the set has the same result in t. It returns an error if t could not
// be read.
func (s Set) Same(t tree.Tree) (bool, error) {
	for _, r := range s.paths {
		e, err := t.Lookup(r.path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("compare read set: look up %s: %w", r.path, err)
		}
		if state(e, err) != r.found {
			return false, nil
		}
	}
	for _, r := range s.lists {
		entries, err := t.ReadDir(r.path)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("compare read set: list %s: %w", r.path, err)
		}
		if joined(YAMLNames(entries)) != r.found {
			return false, nil
		}
	}
	return true, nil
}

// Digest returns a hash of the set, in hex. Builds of the same path with equal digests, options and version
// of weir have the same result.
func (s Set) Digest() string {
	h := sha256.New()
	for _, r := range s.paths {
		fmt.Fprintf(h, "%q %s\n", r.path, r.found)
	}
	for _, r := range s.lists {
		fmt.Fprintf(h, "%q lists %s\n", r.path, r.found)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Paths returns every path of the set in order, including missing ones.
func (s Set) Paths() []string {
	out := make([]string, len(s.paths))
	for i, r := range s.paths {
		out[i] = r.path
	}
	return out
}

// YAMLNames returns the names of the YAML files among the entries of a directory, sorted.
func YAMLNames(entries []tree.Entry) []string {
	var names []string
	for _, e := range entries {
		if (strings.HasSuffix(e.Name, ".yaml") || strings.HasSuffix(e.Name, ".yml")) && e.Mode != tree.Dir {
			names = append(names, e.Name)
		}
	}
	slices.Sort(names)
	return names
}

// joined encodes names as one string.
func joined(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(quoted, " ")
}
