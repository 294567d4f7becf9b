package worktree_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/source/worktree"
)

// gitDo runs Git in a directory, with the configuration in home alone.
func gitDo(t *testing.T, dir, home string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+filepath.Join(home, ".config"), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// filesOf lists all files of a tree.
func filesOf(t *testing.T, tr tree.Tree, dir string) (out []string) {
	t.Helper()
	list, err := tr.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if p := path.Join(dir, e.Name); e.Mode == tree.Dir {
			out = append(out, filesOf(t, tr, p)...)
		} else {
			out = append(out, p)
		}
	}
	return out
}

// A work tree holds what Git tracks or would track, as Git itself tells it.
func TestAWorkTreeIsWhatGitWouldTrack(t *testing.T) {
	dir, home := realDir(t), realDir(t)
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	writeFiles(t, home, map[string]string{".config/git/ignore": "*.swp\n"})
	writeFiles(t, dir, map[string]string{
		".gitignore":        "# build results\n*.out\n/build/\nsecret*\n!secret.example\nvendor/**/tmp\ntrailing \n\\#hash\n",
		"pool.yaml":         "pool",
		"a.out":             "ignored",
		"kept.out":          "ignored, and tracked all the same",
		"build/x":           "ignored",
		"build/kept":        "tracked in an ignored directory",
		"deep/build/x":      "another directory",
		"deep/.gitignore":   "*.yaml\n!want.yaml\n",
		"deep/want.yaml":    "kept",
		"deep/other.yaml":   "ignored",
		"deep/er/b.yaml":    "ignored",
		"secret.key":        "ignored",
		"secret.example":    "kept",
		"vendor/a/b/tmp/x":  "ignored",
		"vendor/a/b/keep/x": "kept",
		"edit.swp":          "ignored by the user",
		"local":             "ignored by the repository",
		"trailing":          "ignored",
		"#hash":             "ignored",
		"gone":              "to be deleted",
		"link":              "symlink:pool.yaml",
		"with space/ä.yaml": "kept",
	})
	gitDo(t, dir, home, "init", "-q", "-b", "main")
	writeFiles(t, dir, map[string]string{".git/info/exclude": "local\n"})
	gitDo(t, dir, home, "add", "-f", "kept.out", "build/kept", "pool.yaml", "gone")
	gitDo(t, dir, home, "commit", "-qm", "first")
	if err := os.Remove(filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	writeFiles(t, dir, map[string]string{"pool.yaml": "pool, changed"})
	want := strings.Split(gitDo(t, dir, home, "-c", "core.quotePath=false", "ls-files", "-co", "--exclude-standard"), "\n")
	want = slices.DeleteFunc(want, func(f string) bool { return f == "gone" })
	slices.Sort(want)

	w, err := worktree.OpenWorkTree(filepath.Join(dir, "deep"))
	if err != nil {
		t.Fatal(err)
	}
	got := filesOf(t, w.Tree, ".")
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Git's files and the tree's: %s", diff)
	}
	if text, err := w.Tree.ReadFile("pool.yaml"); err != nil || string(text) != "pool, changed" {
		t.Errorf("%q, %v", text, err)
	}
	for _, hidden := range []string{"a.out", "build/x", "deep/er/b.yaml", "gone"} {
		if _, err := w.Tree.ReadFile(hidden); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s can be read: %v", hidden, err)
		}
	}
	if _, err := w.Tree.ReadDir("deep/er"); err != nil {
		t.Errorf("a directory of which all is ignored is one still: %v", err)
	}
}

func TestNamesInAWorkTree(t *testing.T) {
	t.Parallel()
	dir, home := realDir(t), realDir(t)
	writeFiles(t, dir, map[string]string{"f": "1"})
	gitDo(t, dir, home, "init", "-q", "-b", "main")
	gitDo(t, dir, home, "remote", "add", "fork", "https://example.com/me/pools")
	gitDo(t, dir, home, "remote", "add", "origin", "git@example.com:o/pools.git")
	gitDo(t, dir, home, "add", ".")
	gitDo(t, dir, home, "commit", "-qm", "first")
	gitDo(t, dir, home, "tag", "-am", "v1", "v1")
	gitDo(t, dir, home, "checkout", "-qb", "change")
	writeFiles(t, dir, map[string]string{"f": "2"})
	gitDo(t, dir, home, "commit", "-qam", "second")
	second := gitDo(t, dir, home, "rev-parse", "HEAD")
	linked := filepath.Join(realDir(t), "linked")
	gitDo(t, dir, home, "worktree", "add", "-q", "--detach", linked, "main")

	w, err := worktree.OpenWorkTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"git@example.com:o/pools.git", "https://example.com/me/pools"}, w.Remotes); diff != "" {
		t.Error(diff)
	}
	for name, subject := range map[string]string{"HEAD": "second", "change": "second", "main": "first", "refs/heads/main": "first", "heads/main": "first", "v1": "first", second: "second"} {
		git, err := w.At(name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		defer git.Close()
		s, err := git.Latest(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if s.Subject != subject {
			t.Errorf("%s is %q", name, s.Subject)
		}
		if newer, err := git.Descends(t.Context(), s.Revision, second); err != nil || newer != (subject == "second") {
			t.Errorf("%s descends from the second: %t, %v", name, newer, err)
		}
	}
	for _, bad := range []string{"nothing", "", "../config", "main~1", strings.Repeat("a", 40)} {
		git, err := w.At(bad)
		if err == nil {
			_, err = git.Latest(t.Context())
			git.Close()
		}
		if err == nil {
			t.Errorf("%q stands for something", bad)
		}
	}
	other, err := worktree.OpenWorkTree(linked)
	if err != nil {
		t.Fatal(err)
	}
	git, err := other.At("HEAD")
	if err != nil {
		t.Fatal(err)
	}
	defer git.Close()
	if s, err := git.Latest(t.Context()); err != nil || s.Subject != "first" {
		t.Errorf("HEAD of a linked work tree: %q, %v", s.Subject, err)
	}
	if _, err := worktree.OpenWorkTree(realDir(t)); err == nil {
		t.Error("a plain directory is taken for a work tree")
	}
}

// Only files that somebody has added are sent elsewhere, and no clean filter is passed
// by.
func TestWhatOfAWorkTreeIsSent(t *testing.T) {
	dir := t.TempDir()
	home := t.TempDir()
	git := func(args ...string) { gitDo(t, dir, home, args...) }
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q")
	// Patterns that go-git and Git read differently.
	write(".gitignore", "\ufeff# ours\nconfig/**.key\nkey[!0-9].env\nsecrets/\n!*.yaml\n")
	write("a.yaml", "a")
	write("secrets/kept.yaml", "kept")
	git("add", "-f", ".gitignore", "a.yaml", "secrets/kept.yaml")
	for _, name := range []string{"config/x.key", "keyA.env", "secrets/a.yaml", "new.yaml"} {
		write(name, "not added")
	}
	write("a.yaml", "changed")
	w, err := worktree.OpenWorkTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	var sent []string
	var walk func(string)
	walk = func(at string) {
		list, err := w.Tracked().ReadDir(at)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if p := path.Join(at, e.Name); e.Mode == tree.Dir {
				walk(p)
			} else {
				sent = append(sent, p)
			}
		}
	}
	walk(".")
	if want := []string{".gitignore", "a.yaml", "secrets/kept.yaml"}; !slices.Equal(sent, want) {
		t.Errorf("sent %v, want %v", sent, want)
	}
	if text, err := w.Tracked().ReadFile("a.yaml"); err != nil || string(text) != "changed" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := w.Tracked().ReadFile("new.yaml"); err == nil {
		t.Error("a file that was not added can be read")
	}
	if left, err := w.Untracked(); err != nil || !slices.Contains(left, "new.yaml") || slices.Contains(left, "a.yaml") {
		t.Errorf("left %v, %v", left, err)
	}
	if line, file := w.Filtered(); line != "" {
		t.Errorf("%q of %s", line, file)
	}
	write("secrets/.gitattributes", "# filter=none\n*.bin filter=lfs -text\n*.env filter=git-crypt\n")
	git("add", "-f", "secrets/.gitattributes")
	if w, err = worktree.OpenWorkTree(dir); err != nil {
		t.Fatal(err)
	}
	if line, file := w.Filtered(); line != "*.env filter=git-crypt" || !strings.HasSuffix(file, "secrets/.gitattributes") {
		t.Errorf("%q of %q", line, file)
	}
}
