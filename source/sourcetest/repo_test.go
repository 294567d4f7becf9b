package sourcetest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
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

// TestRefsAreNeverOld asks for the refs right after each kind of change.
func TestRefsAreNeverOld(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	ask := func(what, want string) {
		t.Helper()
		for range 2 { // the second answer is a kept one
			if got := repo.GitIn(repo.Dir(), "ls-remote", repo.URL()); (want == "") != (got == "") || !strings.Contains(got, want) {
				t.Errorf("%s: %q, want %s in it", what, got, want)
			}
		}
	}
	ask("an empty repository", "")
	for i := range 5 {
		repo.Write(map[string]string{"a.yaml": strconv.Itoa(i)})
		ask("a commit", repo.Commit("next")+"\trefs/heads/main")
	}
	first := repo.Git("rev-parse", "main~4")
	repo.Branch("main", first)
	ask("a forced update", first+"\tHEAD")
	repo.Branch("other", first)
	repo.SetHead("other")
	repo.DeleteBranch("main")
	ask("another HEAD", first+"\trefs/heads/other")
	repo.Git("pack-refs", "--all")
	tag := repo.AnnotatedTag("v1", first)
	ask("a tag", tag+"\trefs/tags/v1\n"+first+"\trefs/tags/v1^{}")
}

// TestSSHAgrees clones over SSH with OpenSSH's own client, which also reads the
// known_hosts line that the server gives.
func TestSSHAgrees(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("ssh is not installed")
	}
	repo := sourcetest.New(t)
	repo.Write(map[string]string{"a.yaml": "a"})
	one := repo.Commit("one")
	server := repo.ServeSSH()
	dir := t.TempDir()
	key, known := filepath.Join(dir, "key"), filepath.Join(dir, "known_hosts")
	server.Allow(sourcetest.WriteSSHKey(t, key, ""))
	if err := os.WriteFile(known, []byte(server.KnownHosts()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("git", "clone", "--quiet", server.URL(), filepath.Join(dir, "clone"))
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_SSH_COMMAND=ssh -F none -i "+key+" -o IdentitiesOnly=yes -o StrictHostKeyChecking=yes -o UserKnownHostsFile="+known)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git clone: %v\n%s", err, out)
	}
	if got := repo.GitIn(filepath.Join(dir, "clone"), "rev-parse", "HEAD"); got != one {
		t.Errorf("the clone is at %s, want %s", got, one)
	}
}
