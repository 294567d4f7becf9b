package edit

import (
	"path"

	"github.com/weir-gitops/weir/render/tree"
)

// changed is a tree in which some files have other contents.
type changed struct {
	tree.Tree
	files map[string][]byte
}

// Lookup implements tree.Tree.
func (c changed) Lookup(p string) (tree.Entry, error) {
	e, err := c.Tree.Lookup(p)
	if content, ok := c.files[p]; ok && err == nil {
		e.Hash, e.Size = tree.BlobHash(content), int64(len(content))
	}
	return e, err
}

// ReadFile implements tree.Tree.
func (c changed) ReadFile(p string) ([]byte, error) {
	if content, ok := c.files[p]; ok {
		return content, nil
	}
	return c.Tree.ReadFile(p)
}

// ReadDir implements tree.Tree.
func (c changed) ReadDir(p string) ([]tree.Entry, error) {
	list, err := c.Tree.ReadDir(p)
	if err != nil || len(c.files) == 0 {
		return list, err
	}
	out := make([]tree.Entry, len(list))
	for i, e := range list {
		if content, ok := c.files[path.Join(p, e.Name)]; ok {
			e.Hash, e.Size = tree.BlobHash(content), int64(len(content))
		}
		out[i] = e
	}
	return out, nil
}

// With is a tree with other contents of some of its files.
func With(t tree.Tree, files map[string][]byte) tree.Tree { return changed{t, files} }
