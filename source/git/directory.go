package git

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/weir-gitops/weir/render/tree"
)

// Directory is a decoded tree object, with its entries sorted by name.
type Directory struct {
	Entries []tree.Entry
	Hashes  []plumbing.Hash
}

func (n *Directory) Len() int           { return len(n.Entries) }
func (n *Directory) Less(i, j int) bool { return n.Entries[i].Name < n.Entries[j].Name }
func (n *Directory) Swap(i, j int) {
	n.Entries[i], n.Entries[j] = n.Entries[j], n.Entries[i]
	n.Hashes[i], n.Hashes[j] = n.Hashes[j], n.Hashes[i]
}

// find returns the index of a name, or -1.
func (n *Directory) find(name string) int {
	i := sort.Search(len(n.Entries), func(i int) bool { return n.Entries[i].Name >= name })
	if i < len(n.Entries) && n.Entries[i].Name == name {
		return i
	}
	return -1
}

// decodeTree decodes Git's tree format: mode, space, name, NUL, 20 bytes of hash. It keeps names unchanged in
// any encoding. Names that are not a single path element, and duplicate names, make the tree invalid.
func decodeTree(data []byte) (*Directory, error) {
	n := &Directory{}
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
		n.Entries = append(n.Entries, tree.Entry{Name: name, Mode: m, Hash: h.String(), Size: -1})
		n.Hashes = append(n.Hashes, h)
	}
	// Git sorts a directory as if its name ended in a slash.
	sort.Sort(n)
	for i := 1; i < len(n.Entries); i++ {
		if n.Entries[i].Name == n.Entries[i-1].Name {
			return nil, fmt.Errorf("two tree entries have the name %q", n.Entries[i].Name)
		}
	}
	return n, nil
}

// entryMode returns the mode of a tree entry. Git's other modes are an error.
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

// Hash returns Git's name for a tree object with these entries, so that a merged directory is equal to a
// committed one.
func (n *Directory) Hash() plumbing.Hash {
	return plumbing.ComputeHash(plumbing.TreeObject, n.Encode())
}

// Encode returns the tree object in Git's format.
func (n *Directory) Encode() []byte {
	order, keys, size := make([]int, len(n.Entries)), make([]string, len(n.Entries)), 0
	for i, e := range n.Entries {
		order[i], keys[i] = i, e.Name
		if e.Mode == tree.Dir {
			keys[i] += "/" // Git sorts a directory as if its name ended in a slash.
		}
		size += len("100644 ") + len(e.Name) + 1 + len(plumbing.ZeroHash)
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(keys[a], keys[b]) })
	data := make([]byte, 0, size)
	for _, i := range order {
		data = append(data, strings.TrimPrefix(n.Entries[i].Mode.String(), "0")...)
		data = append(data, ' ')
		data = append(data, n.Entries[i].Name...)
		data = append(data, 0)
		data = append(data, n.Hashes[i][:]...)
	}
	return data
}
