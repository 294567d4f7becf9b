package source

import (
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/weir-gitops/weir/render/tree"
)

// hash is the name that Git gives a tree object with these entries, so that a
// directory that came out of a merge compares equal with one that was committed.
func (n *treeNode) hash() plumbing.Hash {
	order, keys, size := make([]int, len(n.entries)), make([]string, len(n.entries)), 0
	for i, e := range n.entries {
		order[i], keys[i] = i, e.Name
		if e.Mode == tree.Dir {
			keys[i] += "/" // Git sorts a directory as if its name ended so.
		}
		size += len("100644 ") + len(e.Name) + 1 + len(plumbing.ZeroHash)
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(keys[a], keys[b]) })
	data := make([]byte, 0, size)
	for _, i := range order {
		data = append(data, strings.TrimPrefix(n.entries[i].Mode.String(), "0")...)
		data = append(data, ' ')
		data = append(data, n.entries[i].Name...)
		data = append(data, 0)
		data = append(data, n.hashes[i][:]...)
	}
	return plumbing.ComputeHash(plumbing.TreeObject, data)
}
