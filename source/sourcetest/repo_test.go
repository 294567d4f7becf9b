package sourcetest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-gitops/weir/source/sourcetest"
)

// TestGitAgrees checks the repository and its server with git itself.
func TestGitAgrees(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	repo.Write(map[string]string{"a.yaml": "a", "dir/b.yaml": "b", "link": "symlink:a.yaml", "odd \"name\"\xff": "c"})
	one := repo.Commit("one")
	repo.Remove("dir")
	repo.Write(map[string]string{"a.yaml": "changed"})
	two := repo.Commit("two")
	repo.Git("fsck", "--strict")

	// Fixed, so that other packages' golden files can hold object names.
	if want := "7b48f6d277c5ff704d246263bde5fc1a97cc5895"; one != want {
		t.Errorf("first commit %s, want %s", one, want)
	}
	if got := repo.Git("rev-parse", "main~1"); got != one || repo.Tip("main") != two {
		t.Errorf("main~1 is %s and main %s, want %s and %s", got, repo.Tip("main"), one, two)
	}
	if got, want := repo.Git("-c", "core.quotePath=true", "ls-tree", "-r", "--name-only", two), "a.yaml\nlink\n\"odd \\\"name\\\"\\377\""; got != want {
		t.Errorf("files %q, want %q", got, want)
	}

	clone := filepath.Join(t.TempDir(), "clone")
	repo.GitIn(t.TempDir(), "clone", "--quiet", repo.URL(), clone)
	if err := os.WriteFile(filepath.Join(clone, "a.yaml"), []byte("pushed"), 0o600); err != nil {
		t.Fatal(err)
	}
	repo.GitIn(clone, "commit", "--quiet", "--all", "--message", "three")
	repo.GitIn(clone, "push", "--quiet", "origin", "main")
	if got := repo.Git("show", "main:a.yaml"); got != "pushed" {
		t.Errorf("after a push, a.yaml is %q", got)
	}
	repo.Write(map[string]string{"d": "d"})
	if got := repo.Git("rev-parse", repo.Commit("four")+"~3"); got != one {
		t.Errorf("a commit after the push does not build on it: main~3 is %s", got)
	}
}
