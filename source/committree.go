package source

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/weir-gitops/weir/render/tree"
)

const (
	// MaxFileBytes is the largest file that a Tree of this package reads. A
	// manifest is far smaller; what is larger is no manifest.
	MaxFileBytes = 1 << 20
	// maxLinkBytes is the longest symlink text, as on Linux.
	maxLinkBytes = 4096
)

// commitTree is the tree of one commit, read from the object store on demand.
type commitTree struct {
	db   *objectDB
	root plumbing.Hash
	// merged holds directories that no commit has.
	merged map[plumbing.Hash]*treeNode
	// epoch is the mirror's, if the tree goes with it; else 0.
	epoch int64
}

var _ tree.Tree = (*commitTree)(nil)

// Lookup describes the entry at p.
func (t *commitTree) Lookup(p string) (tree.Entry, error) {
	e, _, err := t.lookup("lookup", p)
	return e, err
}

func (t *commitTree) lookup(op, p string) (tree.Entry, plumbing.Hash, error) {
	if p == "." {
		return tree.Entry{Name: ".", Mode: tree.Dir, Hash: t.root.String(), Size: -1}, t.root, nil
	}
	if !validPath(p) {
		return tree.Entry{}, plumbing.ZeroHash, pathError(op, p, fs.ErrNotExist)
	}
	dir := t.root
	for rest := p; ; {
		name, below, more := strings.Cut(rest, "/")
		node, err := t.node(dir)
		if err != nil {
			return tree.Entry{}, plumbing.ZeroHash, pathError(op, p, err)
		}
		i := node.find(name)
		if i < 0 || more && node.entries[i].Mode != tree.Dir {
			return tree.Entry{}, plumbing.ZeroHash, pathError(op, p, fs.ErrNotExist)
		}
		if !more {
			return node.entries[i], node.hashes[i], nil
		}
		dir, rest = node.hashes[i], below
	}
}

// ReadFile gives a file's content or a symlink's text. A file above
// MaxFileBytes is a *tree.TooLargeError, one kept in Git LFS a *tree.LFSPointerError.
func (t *commitTree) ReadFile(p string) ([]byte, error) {
	e, h, err := t.lookup("read", p)
	if err != nil {
		return nil, err
	}
	limit := int64(MaxFileBytes)
	switch e.Mode {
	case tree.Dir:
		return nil, pathError("read", p, errIsDir)
	case tree.Submodule:
		return nil, pathError("read", p, errSubmodule)
	case tree.Symlink:
		limit = maxLinkBytes
	}
	data, err := t.db.blob(h, limit, t.epoch)
	var tooLarge *tree.TooLargeError
	if errors.As(err, &tooLarge) {
		return nil, &tree.TooLargeError{Path: p, Size: tooLarge.Size, Limit: limit}
	}
	if err != nil {
		return nil, pathError("read", p, err)
	}
	if e.Mode.IsFile() && isLFSPointer(data) {
		return nil, &tree.LFSPointerError{Path: p}
	}
	// The cache keeps data, and a caller may write into what it was given.
	return bytes.Clone(data), nil
}

// ReadDir lists the directory p, sorted by name.
func (t *commitTree) ReadDir(p string) ([]tree.Entry, error) {
	e, h, err := t.lookup("readdir", p)
	if err != nil {
		return nil, err
	}
	if e.Mode != tree.Dir {
		return nil, pathError("readdir", p, errNotDir)
	}
	node, err := t.node(h)
	if err != nil {
		return nil, pathError("readdir", p, err)
	}
	return append([]tree.Entry(nil), node.entries...), nil
}

func (t *commitTree) node(h plumbing.Hash) (*treeNode, error) {
	if n, ok := t.merged[h]; ok {
		return n, nil
	}
	return t.db.treeIn(h, t.epoch)
}
