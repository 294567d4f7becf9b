package worktree_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/source/git"
	"github.com/weir-gitops/weir/source/sourcetest"
	"github.com/weir-gitops/weir/source/worktree"
)

// realDir is a temporary directory without symlinks in its path.
func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		link, isLink := strings.CutPrefix(text, "symlink:")
		err := error(nil)
		if isLink {
			err = os.Symlink(link, file)
		} else {
			err = os.WriteFile(file, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpenPathInWorkTree(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	writeFiles(t, dir, map[string]string{
		".git/HEAD": "ref: refs/heads/main\n", ".gitignore": "x", "base/pool.yaml": "pool", "overlays/prod/kustomization.yaml": "k",
		"link": "symlink:base", "out": "symlink:/etc", "sub/.git": "gitdir: ../.git/modules/sub\n", "sub/f": "1", "nested/.GIT/HEAD": "x", "nested/g": "2",
		"big": strings.Repeat("x", git.MaxFileBytes+1), "lfs": "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 1\n", "empty/.git/x": "",
	})
	if err := os.Chmod(filepath.Join(dir, "base/pool.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	tr, root, rel, err := worktree.OpenPath(filepath.Join(dir, "overlays", "prod"))
	if err != nil || root != dir || rel != "overlays/prod" {
		t.Fatalf("OpenPath: root %s, rel %s, %v; want root %s", root, rel, err, dir)
	}
	list, err := tr.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range list {
		got = append(got, e.Mode.String()+" "+e.Name)
	}
	want := []string{"100644 .gitignore", "040000 base", "100644 big", "040000 empty", "100644 lfs", "120000 link", "040000 nested", "120000 out", "040000 overlays", "160000 sub"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("root (-want +got):\n%s", diff)
	}
	if e, err := tr.Lookup("base/pool.yaml"); err != nil || e != (tree.Entry{Name: "pool.yaml", Mode: tree.Executable, Hash: tree.BlobHash([]byte("pool")), Size: 4}) {
		t.Errorf("Lookup: %+v, %v", e, err)
	}
	for p, want := range map[string]string{"base/pool.yaml": "pool", "link": "base", "out": "/etc"} {
		if data, err := tr.ReadFile(p); err != nil || string(data) != want {
			t.Errorf("ReadFile(%s) = %q, %v", p, data, err)
		}
	}
	for _, p := range []string{".git", ".git/HEAD", ".GIT", "nested/.GIT/HEAD", "sub/f", "link/pool.yaml", "out/passwd", "nope", "base/pool.yaml/x", "../x", "/etc/passwd", "base/", "", strings.Repeat("x", 300), "a\x00b"} {
		if _, err := tr.Lookup(p); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Lookup(%q) gave %v, want fs.ErrNotExist", p, err)
		}
		if _, err := tr.ReadFile(p); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("ReadFile(%q) gave %v, want fs.ErrNotExist", p, err)
		}
	}
	var tooLarge *tree.TooLargeError
	if _, err := tr.ReadFile("big"); !errors.As(err, &tooLarge) || tooLarge.Path != "big" {
		t.Errorf("big file: %v", err)
	}
	var lfs *tree.LFSPointerError
	if _, err := tr.ReadFile("lfs"); !errors.As(err, &lfs) || lfs.Path != "lfs" {
		t.Errorf("LFS pointer: %v", err)
	}
	for _, p := range []string{"base", "sub"} {
		_, err := tr.ReadFile(p)
		sourcetest.WantDamage(t, err)
	}

	// A file that was read keeps its content.
	writeFiles(t, dir, map[string]string{"base/pool.yaml": "changed", "base/new.yaml": "new"})
	if data, err := tr.ReadFile("base/pool.yaml"); err != nil || string(data) != "pool" {
		t.Errorf("ReadFile after a change = %q, %v", data, err)
	}
}

func TestOpenPathOutsideWorkTree(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	writeFiles(t, dir, map[string]string{"app/kustomization.yaml": "k", "repo/.git/HEAD": "x", "repo/base/f": "1", "via": "symlink:app"})
	tr, root, rel, err := worktree.OpenPath(filepath.Join(dir, "via"))
	if err != nil || root != "/" || "/"+rel != dir+"/app" {
		t.Fatalf("OpenPath: root %s, rel %s, %v", root, rel, err)
	}
	base := strings.TrimPrefix(dir, "/") + "/repo/base/f" // kustomize allows bases anywhere.
	if data, err := tr.ReadFile(base); err != nil || string(data) != "1" {
		t.Errorf("ReadFile(%s) = %q, %v", base, data, err)
	}
	if _, root, rel, err := worktree.OpenPath(filepath.Join(dir, "repo", "base", "f")); err != nil || root != dir+"/repo" || rel != "base/f" {
		t.Errorf("OpenPath of a file: root %s, rel %s, %v", root, rel, err)
	}
	if _, _, rel, err := worktree.OpenPath(filepath.Join(dir, "repo")); err != nil || rel != "." {
		t.Errorf("OpenPath of a root: rel %s, %v", rel, err)
	}
	for _, p := range []string{filepath.Join(dir, "nope"), filepath.Join(dir, "repo", ".git")} {
		if _, _, _, err := worktree.OpenPath(p); err == nil || !strings.Contains(err.Error(), p) {
			t.Errorf("OpenPath(%s) gave %v", p, err)
		}
	}
}

func TestOpenPathUnreadable(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	writeFiles(t, dir, map[string]string{".git/HEAD": "x", "d/f": "1"})
	l, err := net.Listen("unix", filepath.Join(dir, "d", "socket"))
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = l.Close() }()
	tr, _, _, err := worktree.OpenPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	list, err := tr.ReadDir("d")
	if err != nil || len(list) != 1 || list[0].Name != "f" {
		t.Errorf("ReadDir = %v, %v; want the socket left out", list, err)
	}
	_, err = tr.ReadFile("d/socket")
	sourcetest.WantDamage(t, err)
}

func TestOpenPathHoldsBoundedContent(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	writeFiles(t, dir, map[string]string{".git/HEAD": "x"})
	block := strings.Repeat("x", 1<<20)
	for i := range 70 {
		writeFiles(t, dir, map[string]string{string(rune('A'+i%26)) + strings.Repeat("z", i/26+1): block})
	}
	tr, _, _, err := worktree.OpenPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	list, err := tr.ReadDir(".")
	if err != nil || len(list) != 70 {
		t.Fatalf("%d files, %v", len(list), err)
	}
	last := list[69].Name
	if data, err := tr.ReadFile(last); err != nil || string(data) != block {
		t.Errorf("ReadFile = %d bytes, %v", len(data), err)
	}
	writeFiles(t, dir, map[string]string{last: "changed"})
	if data, err := tr.ReadFile(last); err == nil {
		t.Errorf("ReadFile gives %d bytes of a file that changed", len(data))
	}
}
