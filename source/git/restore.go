package git

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/weir-gitops/weir/render/tree"
)

// Changed returns the paths of files that differ between two trees, in order. It returns at most limit+1
// paths. A directory that replaces a file counts with all its files.
func Changed(ctx context.Context, db *Store, from, to plumbing.Hash, limit int) (paths []string, err error) {
	var walk func(at string, a, b plumbing.Hash) error
	walk = func(at string, a, b plumbing.Hash) error {
		if a == b || len(paths) > limit {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		sides := [2]*Directory{{}, {}}
		for i, h := range []plumbing.Hash{a, b} {
			if !h.IsZero() {
				n, err := db.Tree(h)
				if err != nil {
					return err
				}
				sides[i] = n
			}
		}
		names := make([]string, 0, len(sides[0].Entries))
		for _, n := range sides {
			for _, e := range n.Entries {
				names = append(names, e.Name)
			}
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			var file [2]string
			var sub [2]plumbing.Hash
			for i, n := range sides {
				switch at := n.find(name); {
				case at < 0:
				case n.Entries[at].Mode == tree.Dir:
					sub[i] = n.Hashes[at]
				default:
					file[i] = n.Entries[at].Mode.String() + n.Hashes[at].String()
				}
			}
			if file[0] != file[1] {
				paths = append(paths, at+name)
			}
			if err := walk(at+name+"/", sub[0], sub[1]); err != nil {
				return err
			}
		}
		return nil
	}
	err = walk("", from, to)
	return paths, err
}

// Restore returns the tree on with the files at paths as they are in from. It removes a path that is missing
// in from. The new directories are in Merged.
func Restore(db *Store, on, from plumbing.Hash, paths []string) (*Tree, error) {
	old := &Tree{Db: db, Root: from}
	out := &Tree{Db: db, Root: on, Merged: map[plumbing.Hash]*Directory{}}
	for _, p := range paths {
		e, h, err := old.lookup("lookup", p)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err != nil || e.Mode == tree.Dir {
			e = tree.Entry{}
		}
		root, err := out.put(out.Root, strings.Split(p, "/"), e, h)
		if err != nil {
			return nil, err
		}
		if root.IsZero() {
			root = out.storeDirectory(&Directory{})
		}
		out.Root = root
	}
	out.prune()
	return out, nil
}

// Edit returns the tree on with the given contents of files, which may be new. The new directories are in
// Merged, and the new files in Written.
func Edit(db *Store, on plumbing.Hash, files map[string][]byte) (*Tree, error) {
	out := &Tree{Db: db, Root: on, Merged: map[plumbing.Hash]*Directory{}, Written: map[plumbing.Hash][]byte{}}
	for _, p := range slices.Sorted(maps.Keys(files)) {
		had, _, err := out.lookup("lookup", p)
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist) || err != nil && !ValidPath(p):
			return nil, err
		case err == nil && !had.Mode.IsFile():
			return nil, PathError("edit", p, ErrNotFile)
		}
		for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
			if e, _, err := out.lookup("lookup", dir); err == nil && e.Mode != tree.Dir {
				return nil, PathError("edit", dir, ErrNotDir)
			}
		}
		h := Object(plumbing.BlobObject, files[p]).Hash()
		out.Written[h] = files[p]
		if out.Root, err = out.put(out.Root, strings.Split(p, "/"), tree.Entry{Mode: cmp.Or(had.Mode, tree.File), Size: int64(len(files[p]))}, h); err != nil {
			return nil, err
		}
	}
	out.prune()
	return out, nil
}

// prune removes intermediate directories that are not part of the tree.
func (t *Tree) prune() {
	reached := map[plumbing.Hash]*Directory{}
	var mark func(h plumbing.Hash)
	mark = func(h plumbing.Hash) {
		if n := t.Merged[h]; n != nil && reached[h] == nil {
			reached[h] = n
			for i, e := range n.Entries {
				if e.Mode == tree.Dir {
					mark(n.Hashes[i])
				}
			}
		}
	}
	mark(t.Root)
	t.Merged = reached
}

// put sets an entry below a directory. An entry without a mode is removed. The zero hash stands for an empty
// directory.
func (t *Tree) put(dir plumbing.Hash, path []string, e tree.Entry, h plumbing.Hash) (plumbing.Hash, error) {
	n := &Directory{}
	if !dir.IsZero() {
		had, err := t.node(dir)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		n = &Directory{Entries: slices.Clone(had.Entries), Hashes: slices.Clone(had.Hashes)}
	}
	at, name := n.find(path[0]), path[0]
	if len(path) > 1 {
		below := plumbing.ZeroHash
		if at >= 0 && n.Entries[at].Mode == tree.Dir {
			below = n.Hashes[at]
		} else if e.Mode == 0 {
			return dir, nil // it is already missing
		}
		sub, err := t.put(below, path[1:], e, h)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		e, h = tree.Entry{Mode: tree.Dir, Size: -1}, sub
		if sub.IsZero() {
			e = tree.Entry{}
		}
	} else if e.Mode == 0 && at >= 0 && n.Entries[at].Mode == tree.Dir {
		return dir, nil // the file of that name is already removed
	}
	switch {
	case e.Mode == 0 && at < 0:
		return dir, nil
	case e.Mode == 0:
		n.Entries, n.Hashes = slices.Delete(n.Entries, at, at+1), slices.Delete(n.Hashes, at, at+1)
	default:
		e.Name, e.Hash = name, h.String()
		if at < 0 {
			at, _ = slices.BinarySearchFunc(n.Entries, name, func(e tree.Entry, name string) int { return strings.Compare(e.Name, name) })
			n.Entries, n.Hashes = slices.Insert(n.Entries, at, e), slices.Insert(n.Hashes, at, h)
		} else {
			n.Entries[at], n.Hashes[at] = e, h
		}
	}
	if len(n.Entries) == 0 {
		return plumbing.ZeroHash, nil
	}
	return t.storeDirectory(n), nil
}

func (t *Tree) storeDirectory(n *Directory) plumbing.Hash {
	h := n.Hash()
	t.Merged[h] = n
	return h
}
