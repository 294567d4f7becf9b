package source_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/sourcetest"
)

func TestLocalFormsOfRepository(t *testing.T) {
	repo, one := oneCommit(t)
	dir := t.TempDir()
	clone, linked := filepath.Join(dir, "clone"), filepath.Join(dir, "linked")
	repo.GitIn(dir, "clone", "--quiet", repo.Dir(), clone)
	repo.GitIn(clone, "worktree", "add", "--quiet", "-b", "side", linked)
	if err := os.WriteFile(filepath.Join(linked, "f"), []byte("2"), 0o600); err != nil {
		t.Fatal(err)
	}
	repo.GitIn(linked, "commit", "--quiet", "--all", "--message", "two")
	two := repo.GitIn(linked, "rev-parse", "HEAD")
	shared := filepath.Join(dir, "shared")
	repo.GitIn(dir, "clone", "--quiet", "--shared", "--bare", repo.Dir(), shared)
	relative := filepath.Join(dir, "relative")
	repo.GitIn(dir, "clone", "--quiet", "--shared", "--bare", clone, relative)
	put(t, relative, "objects/info/alternates", "../../clone/.git/objects\n# a comment\n\n")
	t.Chdir(dir)

	for url, want := range map[string]string{
		clone: one, clone + "/.git": one, "clone": one, "./clone/": one, linked: one, shared: one, relative: one,
		"file://" + linked: one, "file://localhost" + clone: one,
	} {
		t.Run(url, func(t *testing.T) { wantRevision(t, open(t, source.Config{URL: url}, source.Options{}), want) })
	}
	t.Run("branch of a linked worktree through the main one", func(t *testing.T) {
		wantRevision(t, open(t, source.Config{URL: clone, Ref: source.Ref{Branch: "side"}}, source.Options{}), two)
	})
	for url, reason := range map[string]fault.Reason{
		filepath.Join(dir, "nope"): fault.NotFound, dir: fault.NotFound, filepath.Join(clone, "f"): fault.NotFound,
	} {
		wantUnavailable(t, open(t, source.Config{URL: url}, source.Options{}), reason)
	}
}

// TestLocalDefaultBranch: what somebody has checked out is not what is followed.
func TestLocalDefaultBranch(t *testing.T) {
	repo, one := oneCommit(t)
	switched := func(dir string, args ...string) string {
		repo.GitIn(dir, append([]string{"switch", "--quiet"}, args...)...)
		repo.GitIn(dir, "commit", "--quiet", "--allow-empty", "--message", "try")
		return dir
	}
	clone := func(args ...string) string {
		dir := filepath.Join(t.TempDir(), "clone")
		repo.GitIn(filepath.Dir(dir), append(append([]string{"clone", "--quiet"}, args...), repo.Dir(), dir)...)
		return dir
	}
	unrelated := func(dir string) string { repo.GitIn(dir, "remote", "remove", "origin"); return dir }
	renamed := unrelated(clone())
	repo.GitIn(renamed, "branch", "--quiet", "--move", "main", "fleet")
	linked := filepath.Join(t.TempDir(), "linked")
	repo.GitIn(repo.Dir(), "worktree", "add", "--quiet", "-b", "side", linked)
	for what, dir := range map[string]string{
		"origin's":         switched(clone(), "-c", "work"),
		"main of two":      switched(unrelated(clone()), "-c", "work"),
		"detached":         switched(clone(), "--detach"),
		"the only one":     switched(renamed, "--detach"),
		"the bare one's":   repo.Dir(),
		"of a linked tree": switched(linked, "side"),
	} {
		t.Run(what, func(t *testing.T) { wantRevision(t, open(t, source.Config{URL: dir}, source.Options{}), one) })
	}
	unclear := switched(renamed, "-c", "work")
	wantUnavailable(t, open(t, source.Config{URL: unclear}, source.Options{}), fault.MissingRef)
}

func TestLocalRepositoryIsOnlyRead(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	repo.Write(map[string]string{"f": "1", "d/g": "2"})
	repo.Commit("one")
	before := fingerprint(t, repo.Dir())
	g := open(t, source.Config{URL: repo.Dir()}, source.Options{})
	s := latest(t, g)
	files(t, s.Tree)
	if _, err := g.At(context.Background(), s.Revision); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, fingerprint(t, repo.Dir())); diff != "" {
		t.Errorf("the repository changed (-before +after):\n%s", diff)
	}
}

func fingerprint(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		out[p] = fmt.Sprint(info.Mode(), info.ModTime())
		if !d.IsDir() {
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			out[p] += fmt.Sprintf(" %x", sha256.Sum256(data))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestLocalRepack(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	want := map[string]string{}
	for i := range 30 {
		want[fmt.Sprintf("d%d/f", i)] = fmt.Sprint(i)
	}
	repo.Write(want)
	repo.Commit("one")
	g := open(t, source.Config{URL: repo.Dir()}, source.Options{})
	s := latest(t, g)
	for range 3 { // Loose objects become a pack, and packs other packs.
		repo.Git("repack", "-a", "-d", "-q", "-f")
		repo.Git("pack-refs", "--all")
		if diff := cmp.Diff(want, files(t, s.Tree)); diff != "" {
			t.Fatalf("after a repack (-want +got):\n%s", diff)
		}
		repo.Write(map[string]string{"extra": noise(10)})
		repo.Commit("more")
		latest(t, g)
	}
}

// TestLocalMissingObject takes away each object of the new commit in turn. None
// may lead to a snapshot, since every one would look like a deletion.
func TestLocalMissingObject(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	repo.Write(map[string]string{"a/b/f": "1", "a/g": "2", "h": "3"})
	repo.Commit("one")
	repo.Write(map[string]string{"a/b/f": "4"})
	two := repo.Commit("two")
	for _, rev := range []string{two, two + "^{tree}", two + ":a", two + ":a/b", two + ":a/b/f", two + ":h"} {
		name := repo.Git("rev-parse", rev)
		file := filepath.Join(repo.Dir(), "objects", name[:2], name[2:])
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		g := open(t, source.Config{URL: repo.Dir()}, source.Options{})
		remove(t, file)
		if ue := wantUnavailable(t, g, fault.Corrupt); !strings.Contains(ue.Error(), name) {
			t.Errorf("%s: the error does not name the object: %v", rev, ue)
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		wantRevision(t, g, two)
		// Damage that is not absence shows when the object is read.
		if err := os.WriteFile(file, data[:len(data)/2], 0o600); err != nil {
			t.Fatal(err)
		}
		g = open(t, source.Config{URL: repo.Dir()}, source.Options{})
		if s, err := g.Latest(context.Background()); err == nil {
			p := strings.TrimPrefix(rev, two+":")
			_, err = s.Tree.ReadFile(p)
			sourcetest.WantDamage(t, err)
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLocalFormatsThatAreRefused(t *testing.T) {
	t.Parallel()
	for option, value := range map[string]string{"refStorage": "reftable", "objectFormat": "sha256", "newThing": "true"} {
		repo := sourcetest.New(t)
		repo.Write(map[string]string{"f": "1"})
		repo.Commit("one")
		put(t, repo.Dir(), "config", "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\t"+option+" = "+value+"\n")
		wantUnavailable(t, open(t, source.Config{URL: repo.Dir()}, source.Options{}), fault.Unsupported)
	}
}
