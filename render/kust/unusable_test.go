package kust_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/tree"
)

// unusable is a tree in which one file cannot be used, as Git's trees tell.
type unusable struct {
	tree.Map
	file string
	err  error
}

func (u unusable) Lookup(p string) (tree.Entry, error) {
	e, err := u.Map.Lookup(p)
	e.Size = -1 // Git does not tell before it reads
	return e, err
}

func (u unusable) ReadFile(p string) ([]byte, error) {
	if p == u.file {
		return nil, fmt.Errorf("read %s: %w", p, u.err)
	}
	return u.Map.ReadFile(p)
}

// A file that a tree holds and cannot give is a fault of the commit, with its place,
// and not one of reading: another commit may mend it.
func TestFilesThatCannotBeUsed(t *testing.T) {
	m := tree.Map{"kustomization.yaml": "resources: [a.yaml]\nconfigMapGenerator: [{name: b, files: [data.txt]}]\n", "a.yaml": configMap, "data.txt": "x"}
	for name, c := range map[string]struct {
		file       string
		err        error
		code, says string
	}{
		"objects that are too large": {"a.yaml", &tree.TooLargeError{Path: "a.yaml", Size: 500 << 20, Limit: 1 << 20}, "too-large", "a.yaml has 524288000 bytes, and a file at most 1048576"},
		"data that is too large":     {"data.txt", &tree.TooLargeError{Path: "data.txt", Size: 500 << 20, Limit: 1 << 20}, "too-large", "data.txt has 524288000 bytes"},
		"objects kept elsewhere":     {"a.yaml", &tree.LFSPointerError{Path: "a.yaml"}, "lfs-pointer", "Git LFS pointer"},
		"data kept elsewhere":        {"data.txt", &tree.LFSPointerError{Path: "data.txt"}, "lfs-pointer", "Git LFS pointer"},
	} {
		t.Run(name, func(t *testing.T) {
			u := unusable{m, c.file, c.err}
			r, err := kust.Build(context.Background(), u, ".", kust.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Diags) != 1 || r.Diags[0].Code != c.code || !strings.Contains(r.Diags[0].Summary, c.says) || !r.Diags[0].Known() {
				t.Errorf("%v", r.Diags)
			}
			if same, err := r.Reads.Same(u); err != nil || !same {
				t.Errorf("the same tree is another: %v", err)
			}
			mended := tree.Map{"kustomization.yaml": m["kustomization.yaml"], "a.yaml": m["a.yaml"] + "data: {a: b}\n", "data.txt": "y"}
			if same, err := r.Reads.Same(mended); err != nil || same {
				t.Errorf("a tree with another %s is the same: %v", c.file, err)
			}
		})
	}
}
