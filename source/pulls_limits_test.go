package source_test

import (
	"context"
	"errors"
	"fmt"
	"github.com/weir-gitops/weir/source/git"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/sourcetest"
)

func TestPullsRememberedAreBounded(t *testing.T) {
	t.Parallel()
	repo := newFork(t)
	dir := t.TempDir()
	now := sourcetest.Epoch
	g := open(t, source.Config{URL: repo.URL(), Dir: dir}, source.Options{Now: func() time.Time { now = now.Add(time.Second); return now }})
	source.SetPullLimits(g, 3, 1<<20)
	latest(t, g)
	want := map[string]bool{}
	for i := range 6 {
		p := repo.open("f", fmt.Sprint(i))
		pull(t, g, p)
		if i >= 3 {
			want[p.HeadSHA] = true
		}
	}
	got := map[string]bool{}
	for _, h := range strings.Fields(repo.GitIn(mirrorDir(t, dir), "for-each-ref", "--format=%(objectname)", "refs/weir/pulls")) {
		got[h] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPullTooLarge(t *testing.T) {
	t.Parallel()
	repo := newFork(t)
	g := open(t, source.Config{URL: repo.URL()}, source.Options{})
	source.SetMirrorLimits(g, 100, 1<<20)
	source.SetPullLimits(g, 200, 50_000)
	latest(t, g)
	wantPullFails(t, g, repo.open("noise", noise(200_000)), fault.Unsupported, "larger than 50000 bytes")
	wantPullFails(t, g, repo.open("bomb", strings.Repeat("\x00", 1<<20+1)), fault.Unsupported, "an object of 1048577 bytes")
	deep := repo.open(strings.Repeat("d/", 200)+"f", "1")
	if ue := wantPullFails(t, g, deep, fault.Unsupported, "are nested more than"); ue.Revision != deep.HeadSHA {
		t.Errorf("revision %q, want the head", ue.Revision)
	}
	pull(t, g, repo.open("f", "2"))
}

// TestPullOfWhatGitWouldNotMake is refused, and the mirror is not to blame.
func TestPullOfWhatGitWouldNotMake(t *testing.T) {
	t.Parallel()
	repo := newFork(t)
	g := open(t, source.Config{URL: repo.URL()}, source.Options{})
	latest(t, g)
	list := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(list, []byte("100644 ..\x00"+unhex(t, repo.Git("rev-parse", repo.base+":f"))), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := repo.Git("commit-tree", "-p", repo.base, "-m", "bad", repo.Git("hash-object", "--literally", "-t", "tree", "-w", list))
	repo.Git("update-ref", pullHead, bad)
	if ue := wantPullFails(t, g, ref(bad, repo.base), fault.Unsupported, `the name ".."`); ue.Revision != bad {
		t.Errorf("revision %q, want %s", ue.Revision, bad)
	}
	before := countPosts(repo.Repo)
	latest(t, g)
	if n := countPosts(repo.Repo) - before; n > 0 {
		t.Error("the mirror was made again")
	}
}

// TestPullsCrowdTheMirror: it is made again without them, and what was given out
// says so.
func TestPullsCrowdTheMirror(t *testing.T) {
	t.Parallel()
	repo := newFork(t)
	dir := t.TempDir()
	g := open(t, source.Config{URL: repo.URL(), Dir: dir}, source.Options{})
	source.SetMirrorLimits(g, 2, 1<<20)
	followed := latest(t, g)
	first := repo.open("f", "a")
	m := pull(t, g, first)
	pull(t, g, repo.open("f", "b"))
	pull(t, g, repo.open("f", "c"))
	full := repo.open("f", "d")
	wantPullFails(t, g, full, fault.Storage, "the mirror is full")
	if got := files(t, m.Snapshot.Tree)["f"]; got != "a" {
		t.Errorf("f is %q", got)
	}
	if s := latest(t, g); s.Revision != followed.Revision {
		t.Errorf("revision %s, want %s", s.Revision, followed.Revision)
	}
	if _, err := m.Snapshot.Tree.ReadFile("f"); !errors.Is(err, git.ErrReplaced) {
		t.Errorf("reading what is gone gives %v", err)
	}
	if _, err := m.Snapshot.Tree.ReadDir("."); !errors.Is(err, git.ErrReplaced) {
		t.Errorf("listing what is gone gives %v", err)
	}
	if got := files(t, followed.Tree)["f"]; got != "1" {
		t.Errorf("what is followed reads %q", got)
	}
	pull(t, g, full)
	if got := files(t, pull(t, g, first).Snapshot.Tree)["f"]; got != "a" {
		t.Errorf("f is %q", got)
	}
	repo.GitIn(mirrorDir(t, dir), "fsck", "--full")
}

func TestPullFromDamagedMirror(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, m string){
		"packs are gone": func(t *testing.T, m string) { each(t, m, "objects/pack/*.pack", func(f string) { remove(t, f) }) },
		"packs are cut":  func(t *testing.T, m string) { each(t, m, "objects/pack/*.pack", func(f string) { truncate(t, f, 60) }) },
		"all is gone":    func(t *testing.T, m string) { remove(t, m) },
	} {
		t.Run(name, func(t *testing.T) {
			repo := newFork(t)
			cfg := source.Config{URL: repo.URL(), Dir: t.TempDir()}
			g := open(t, cfg, source.Options{})
			latest(t, g)
			p := repo.open("d/g", "2")
			pull(t, g, p)
			g.Close()
			damage(t, mirrorDir(t, cfg.Dir))
			again := open(t, cfg, source.Options{})
			for attempt := 1; ; attempt++ {
				_, err := again.Latest(context.Background())
				var m source.Merge
				if err == nil {
					m, err = again.Pull(context.Background(), p)
				}
				if err == nil {
					if err = readAll(m.Snapshot.Tree, "."); err == nil {
						break
					}
				}
				if attempt == 4 {
					t.Fatalf("not healed after %d attempts: %v", attempt, err)
				}
			}
		})
	}
}
