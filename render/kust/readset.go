package kust

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

// ReadSet holds what a build looked up. For each path it has the mode and hash of the blob or link,
// that it is a directory, or that it is missing. For a directory whose files were listed it has
// their names. As long as all of it is the same, so is the build. The zero value is an empty set. A
// ReadSet is immutable.
type ReadSet struct {
	paths []reading // the results of lookups of paths
	lists []reading // the names that were found in a directory
}

// reading is the result of a lookup of a path. The readings of a set are sorted.
type reading struct{ path, found string }

const missing = "missing"

// state returns everything at a path that a build can depend on. A directory's hash is left out:
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

func (v *view) readSet() ReadSet {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := ReadSet{paths: make([]reading, 0, len(v.found))}
	for p, l := range v.found {
		s.paths = append(s.paths, reading{p, state(l.entry, l.err)})
	}
	for p, names := range v.lists {
		s.lists = append(s.lists, reading{p, names})
	}
	slices.SortFunc(s.paths, reading.compare)
	slices.SortFunc(s.lists, reading.compare)
	return s
}

func (r reading) compare(o reading) int {
	return cmp.Or(strings.Compare(r.path, o.path), strings.Compare(r.found, o.found))
}

// Union returns the lookups of all sets. It is unchanged in a tree if each of them is.
func Union(sets ...ReadSet) ReadSet {
	var out ReadSet
	for _, s := range sets {
		out.paths, out.lists = append(out.paths, s.paths...), append(out.lists, s.lists...)
	}
	slices.SortFunc(out.paths, reading.compare)
	slices.SortFunc(out.lists, reading.compare)
	out.paths, out.lists = slices.Clip(slices.Compact(out.paths)), slices.Clip(slices.Compact(out.lists))
	return out
}

// With returns the set with each of its texts replaced by an equal one, so that
// several sets can hold them once.
func (s ReadSet) With(one func(string) string) ReadSet {
	replaced := func(list []reading) []reading {
		out := make([]reading, len(list))
		for i, r := range list {
			out[i] = reading{one(r.path), one(r.found)}
		}
		return out
	}
	return ReadSet{paths: replaced(s.paths), lists: replaced(s.lists)}
}

// Record is a ReadSet as it can be written down.
type Record struct{ Paths, Lists []Reading }

// Reading is the result of a lookup of a path.
type Reading struct{ Path, Found string }

// Record returns what Set makes the set of again.
func (s ReadSet) Record() Record {
	of := func(list []reading) (out []Reading) {
		for _, r := range list {
			out = append(out, Reading{r.path, r.found})
		}
		return out
	}
	return Record{Paths: of(s.paths), Lists: of(s.lists)}
}

// Set is the ReadSet that was written down.
func (r Record) Set() ReadSet {
	of := func(list []Reading) (out []reading) {
		for _, r := range list {
			out = append(out, reading{r.Path, r.Found})
		}
		return out
	}
	return ReadSet{paths: of(r.Paths), lists: of(r.Lists)}
}

// Len is the number of lookups in the set.
func (s ReadSet) Len() int { return len(s.paths) + len(s.lists) }

// Same reports whether every lookup of the set gives the same in t. An error
// means that t could not be read.
func (s ReadSet) Same(t tree.Tree) (bool, error) {
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
		if listing(entries) != r.found {
			return false, nil
		}
	}
	return true, nil
}

// Digest is a hash over the whole set, in hex. Two builds of one path with equal
// digests, options and version of weir give the same result.
func (s ReadSet) Digest() string {
	h := sha256.New()
	for _, r := range s.paths {
		fmt.Fprintf(h, "%q %s\n", r.path, r.found)
	}
	for _, r := range s.lists {
		fmt.Fprintf(h, "%q lists %s\n", r.path, r.found)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Paths returns every path of the set in order, those that are missing included.
func (s ReadSet) Paths() []string {
	out := make([]string, len(s.paths))
	for i, r := range s.paths {
		out[i] = r.path
	}
	return out
}

// listing returns the part of a plain directory that its build depends on: the names in it that
// look like YAML files.
func listing(entries []tree.Entry) string {
	var names []string
	for _, e := range entries {
		if isYAMLName(e.Name) && e.Mode != tree.Dir {
			names = append(names, fmt.Sprintf("%q", e.Name))
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func isYAMLName(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// list returns the names of the YAML files of a directory, sorted, and records
// them.
func (v *view) list(dir string) ([]string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	entries, err := v.tree.ReadDir(dir)
	if err != nil {
		return nil, v.fail(fmt.Errorf("list %s: %w", dir, err))
	}
	if v.lists == nil {
		v.lists = map[string]string{}
	}
	v.lists[dir] = listing(entries)
	var names []string
	for _, e := range entries {
		if isYAMLName(e.Name) && e.Mode != tree.Dir {
			names = append(names, e.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}
