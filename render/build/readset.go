package build

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/render/tree"
)

// ReadSet is what a build looked up: for each path the mode and hash of the blob
// or link, that it is a directory, or that it is missing, and for a directory
// whose files were listed their names. As long as all of it is the same, so is
// the build. The zero value is an empty set. A ReadSet is immutable.
type ReadSet struct {
	paths map[string]string // path -> what was found there
	lists map[string]string // directory -> names that were found in it
}

const missing = "missing"

// state is what a build can depend on at a path. A directory's hash is left
// out: what it holds is recorded path by path.
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
	s := ReadSet{paths: make(map[string]string, len(v.found)), lists: maps.Clone(v.lists)}
	for p, l := range v.found {
		s.paths[p] = state(l.entry, l.err)
	}
	return s
}

// Len is the number of lookups in the set.
func (s ReadSet) Len() int { return len(s.paths) + len(s.lists) }

// Same reports whether every lookup of the set gives the same in t. An error
// means that t could not be read.
func (s ReadSet) Same(t tree.Tree) (bool, error) {
	for p, want := range s.paths {
		e, err := t.Lookup(p)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("compare read set: look up %s: %w", p, err)
		}
		if state(e, err) != want {
			return false, nil
		}
	}
	for dir, want := range s.lists {
		entries, err := t.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("compare read set: list %s: %w", dir, err)
		}
		if listing(entries) != want {
			return false, nil
		}
	}
	return true, nil
}

// Digest is a hash over the whole set, in hex. Two builds of one path with equal
// digests, options and version of weir give the same result.
func (s ReadSet) Digest() string {
	var b strings.Builder
	for _, p := range slices.Sorted(maps.Keys(s.paths)) {
		b.WriteString(strconv.Quote(p) + " " + s.paths[p] + "\n")
	}
	for _, p := range slices.Sorted(maps.Keys(s.lists)) {
		b.WriteString(strconv.Quote(p) + " lists " + s.lists[p] + "\n")
	}
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:])
}

// Paths returns every path of the set in order, those that are missing included.
func (s ReadSet) Paths() []string {
	return slices.Sorted(maps.Keys(s.paths))
}

// listing is what a build of a plain directory depends on: the names in it that
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
