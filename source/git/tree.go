package git

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/weir-gitops/weir/render/tree"
)

const (
	// MaxFileBytes is the maximum size of a file in a Tree. A file with a thousand pools is smaller, and a
	// larger file contains no manifests.
	MaxFileBytes = 8 << 20
	// maxLinkBytes is the maximum length of a symlink's text, as on Linux.
	maxLinkBytes = 4096
)

// Tree is the tree of a commit, read from the object store on demand.
type Tree struct {
	Db   *Store
	Root plumbing.Hash
	// Merged has directories that are in no commit.
	Merged map[plumbing.Hash]*Directory
	// Written has the content of files that are in no commit.
	Written map[plumbing.Hash][]byte
	// Epoch is the epoch of the mirror if the tree depends on it, and otherwise 0.
	Epoch int64
}

var _ tree.Tree = (*Tree)(nil)

// Lookup returns the entry at p.
func (t *Tree) Lookup(p string) (tree.Entry, error) {
	e, _, err := t.lookup("lookup", p)
	return e, err
}

// lookup returns the entry at p and its hash. op is the operation for errors. A path below a file or a
// symlink does not exist.
func (t *Tree) lookup(op, p string) (tree.Entry, plumbing.Hash, error) {
	if p == "." {
		return tree.Entry{Name: ".", Mode: tree.Dir, Hash: t.Root.String(), Size: -1}, t.Root, nil
	}
	if !ValidPath(p) {
		return tree.Entry{}, plumbing.ZeroHash, PathError(op, p, fs.ErrNotExist)
	}
	dir := t.Root
	for rest := p; ; {
		name, below, more := strings.Cut(rest, "/")
		node, err := t.node(dir)
		if err != nil {
			return tree.Entry{}, plumbing.ZeroHash, PathError(op, p, err)
		}
		i := node.find(name)
		if i < 0 || more && node.Entries[i].Mode != tree.Dir {
			return tree.Entry{}, plumbing.ZeroHash, PathError(op, p, fs.ErrNotExist)
		}
		if !more {
			return node.Entries[i], node.Hashes[i], nil
		}
		dir, rest = node.Hashes[i], below
	}
}

// ReadFile returns a file's content or a symlink's text. For a file above MaxFileBytes it returns a
// *tree.TooLargeError, and for a file in Git LFS a *tree.LFSPointerError.
func (t *Tree) ReadFile(p string) ([]byte, error) {
	e, h, err := t.lookup("read", p)
	if err != nil {
		return nil, err
	}
	limit := int64(MaxFileBytes)
	switch e.Mode {
	case tree.Dir:
		return nil, PathError("read", p, ErrIsDir)
	case tree.Submodule:
		return nil, PathError("read", p, ErrSubmodule)
	case tree.Symlink:
		limit = maxLinkBytes
	}
	data, written := t.Written[h]
	if !written {
		data, err = t.Db.blob(h, limit, t.Epoch)
	}
	var tooLarge *tree.TooLargeError
	if errors.As(err, &tooLarge) {
		return nil, &tree.TooLargeError{Path: p, Size: tooLarge.Size, Limit: limit}
	}
	if err != nil {
		return nil, PathError("read", p, err)
	}
	if e.Mode.IsFile() && IsLFSPointer(data) {
		return nil, &tree.LFSPointerError{Path: p}
	}
	// The cache keeps data, and a caller may change the result.
	return bytes.Clone(data), nil
}

// ReadDir lists the directory p, sorted by name.
func (t *Tree) ReadDir(p string) ([]tree.Entry, error) {
	e, h, err := t.lookup("readdir", p)
	if err != nil {
		return nil, err
	}
	if e.Mode != tree.Dir {
		return nil, PathError("readdir", p, ErrNotDir)
	}
	node, err := t.node(h)
	if err != nil {
		return nil, PathError("readdir", p, err)
	}
	return append([]tree.Entry(nil), node.Entries...), nil
}

func (t *Tree) node(h plumbing.Hash) (*Directory, error) {
	if n, ok := t.Merged[h]; ok {
		return n, nil
	}
	return t.Db.treeIn(h, t.Epoch)
}
