package source_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/source/sourcetest"
)

const pullHead = "refs/pull/7/head"

// propose sets the head of pull request 7 to a branch's tip, as a forge does.
func propose(repo *sourcetest.Repo, branch string) string {
	head := repo.Tip(branch)
	repo.Git("update-ref", pullHead, head)
	return head
}

func pull(t testing.TB, g *source.Git, p source.PullRef) source.Merge {
	t.Helper()
	m, err := g.Pull(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func ref(head, base string) source.PullRef {
	return source.PullRef{Head: pullHead, HeadSHA: head, Base: base}
}

// wantMoved asserts that Pull fails because the ref is not where the forge said.
func wantMoved(t *testing.T, g *source.Git, p source.PullRef, got string) {
	t.Helper()
	_, err := g.Pull(context.Background(), p)
	var me *source.MovedError
	if !errors.As(err, &me) || me.Got != got || me.Want != p.HeadSHA {
		t.Fatalf("Pull gave %v, want that %s is at %q", err, p.Head, got)
	}
	var ue *fault.UnavailableError
	if errors.As(err, &ue) {
		t.Errorf("what passes is told as a fault of the source: %v", err)
	}
}

// everyWay runs a test over HTTP, over SSH and on a repository on this machine.
func everyWay(t *testing.T, test func(t *testing.T, repo *sourcetest.Repo, cfg source.Config)) {
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		repo := sourcetest.New(t)
		test(t, repo, source.Config{URL: repo.URL()})
	})
	t.Run("ssh", func(t *testing.T) {
		t.Parallel()
		r := newSSHRepo(t)
		test(t, r.Repo, r.config(t))
	})
	t.Run("local", func(t *testing.T) {
		t.Parallel()
		repo := sourcetest.New(t)
		test(t, repo, source.Config{URL: repo.Dir()})
	})
}

func TestPull(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, repo *sourcetest.Repo, cfg source.Config) {
		repo.Write(map[string]string{"a/f": "1", "a/g": "1", "b/f": "1", "only": "1", "link": "symlink:only"})
		fork := repo.Commit("fork")
		repo.Switch("change")
		repo.Branch("change", fork)
		repo.Write(map[string]string{"a/f": "head", "new/h": "head"})
		repo.Remove("only")
		repo.Commit("Change a\n\nwith a body")
		head := propose(repo, "change")
		repo.Switch("main")
		repo.Write(map[string]string{"a/g": "base", "c": "base"})
		repo.Commit("main goes on")
		repo.Write(map[string]string{"d": "base"})
		base := repo.Commit("and on")
		g := open(t, cfg, source.Options{})
		followed := latest(t, g)

		m := pull(t, g, ref(head, base))
		want := source.Merge{MergeBase: fork, Behind: 2}
		want.Snapshot = m.Snapshot
		if diff := cmp.Diff(want, m, cmp.Comparer(func(a, b tree.Tree) bool { return a == b })); diff != "" {
			t.Error(diff)
		}
		s := m.Snapshot
		if s.Revision != head || s.Parent != base || s.Subject != "Change a" || s.Ref != pullHead || s.Source != "fleet" || s.SourceID != g.ID() {
			t.Errorf("snapshot %+v", s)
		}
		wantFiles := map[string]string{"a/f": "head", "a/g": "base", "b/f": "1", "link": "symlink:only", "new/h": "head", "c": "base", "d": "base"}
		if diff := cmp.Diff(wantFiles, files(t, s.Tree)); diff != "" {
			t.Error(diff)
		}
		for dir, of := range map[string]tree.Tree{"b": followed.Tree, "new": at(t, g, head).Tree} {
			got, err := s.Tree.Lookup(dir)
			want, werr := of.Lookup(dir)
			if err != nil || werr != nil || got.Hash != want.Hash {
				t.Errorf("%s is %+v, %v; want the name that Git gave it: %+v, %v", dir, got, err, want, werr)
			}
		}
		if last, _ := g.Last(); last.Revision != followed.Revision {
			t.Errorf("Last went from %s to %s", followed.Revision, last.Revision)
		}

		// A push by force.
		repo.Branch("change", fork)
		repo.Switch("change")
		repo.Write(map[string]string{"a/g": "head"})
		repo.Commit("again")
		again := propose(repo, "change")
		repo.Switch("main")
		m = pull(t, g, ref(again, base))
		if diff := cmp.Diff([]source.Conflict{{Path: "a/g", Kind: source.BothChanged}}, m.Conflicts); diff != "" || m.Snapshot.Tree != nil {
			t.Errorf("conflicts %s, tree %v", diff, m.Snapshot.Tree)
		}
		if m.Snapshot.Revision != again || m.Snapshot.Subject != "again" || m.MergeBase != fork {
			t.Errorf("with conflicts: %+v", m)
		}

		// The forge is ahead of its Git, then behind, then the head is gone.
		wantMoved(t, g, ref(strings.Repeat("1", 40), base), again)
		repo.Git("update-ref", "-d", pullHead)
		wantMoved(t, g, ref(strings.Repeat("1", 40), base), "")
		if err := g.Forget(pullHead); err != nil {
			t.Error(err)
		}
		if err := g.Forget(pullHead); err != nil {
			t.Errorf("forget what is forgotten: %v", err)
		}
	})
}

func at(t testing.TB, g *source.Git, revision string) snapshot.Snapshot {
	t.Helper()
	s, err := g.At(context.Background(), revision)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
