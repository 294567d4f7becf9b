package source

import (
	"bytes"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/weir-gitops/weir/render/tree"
)

// treeNode is one decoded tree object, its entries sorted by name.
type treeNode struct {
	entries []tree.Entry
	hashes  []plumbing.Hash
}

func (n *treeNode) Len() int           { return len(n.entries) }
func (n *treeNode) Less(i, j int) bool { return n.entries[i].Name < n.entries[j].Name }
func (n *treeNode) Swap(i, j int) {
	n.entries[i], n.entries[j] = n.entries[j], n.entries[i]
	n.hashes[i], n.hashes[j] = n.hashes[j], n.hashes[i]
}

// find gives the position of a name, or -1.
func (n *treeNode) find(name string) int {
	i := sort.Search(len(n.entries), func(i int) bool { return n.entries[i].Name >= name })
	if i < len(n.entries) && n.entries[i].Name == name {
		return i
	}
	return -1
}

// decodeTree reads Git's tree format: mode, space, name, NUL, 20 bytes of hash.
// Names are kept as they are, in whatever encoding; those that cannot stand for
// one path element, and repeated ones, make the tree invalid.
func decodeTree(data []byte) (*treeNode, error) {
	n := &treeNode{}
	for len(data) > 0 {
		head, rest, ok := bytes.Cut(data, []byte{0})
		if !ok || len(rest) < len(plumbing.ZeroHash) {
			return nil, errors.New("the tree is cut short")
		}
		mode, name, ok := strings.Cut(string(head), " ")
		if !ok {
			return nil, errors.New("a tree entry has no name")
		}
		if name == "" || name == "." || name == ".." || strings.Contains(name, "/") {
			return nil, fmt.Errorf("a tree entry has the name %q", name)
		}
		m, err := entryMode(mode)
		if err != nil {
			return nil, fmt.Errorf("tree entry %q: %w", name, err)
		}
		var h plumbing.Hash
		copy(h[:], rest)
		data = rest[len(h):]
		n.entries = append(n.entries, tree.Entry{Name: name, Mode: m, Hash: h.String(), Size: -1})
		n.hashes = append(n.hashes, h)
	}
	// Git sorts a directory as if its name ended in a slash.
	sort.Sort(n)
	for i := 1; i < len(n.entries); i++ {
		if n.entries[i].Name == n.entries[i-1].Name {
			return nil, fmt.Errorf("two tree entries have the name %q", n.entries[i].Name)
		}
	}
	return n, nil
}

func entryMode(s string) (tree.Mode, error) {
	switch s {
	case "100644", "100664": // The second was written by early versions of Git.
		return tree.File, nil
	case "100755":
		return tree.Executable, nil
	case "40000", "040000":
		return tree.Dir, nil
	case "120000":
		return tree.Symlink, nil
	case "160000":
		return tree.Submodule, nil
	default:
		return 0, fmt.Errorf("unknown mode %q", s)
	}
}
