package reverts

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/proposal"
)

// TestABranchThatWasPushedMovesOn: the branch is there, its pull request could not be opened, and
// by then what is followed is another commit, which asks for another revert or pin.
func TestABranchThatWasPushedMovesOn(t *testing.T) {
	for name, tt := range map[string]struct {
		first, bad, later []string
		image             bool
		want              string
	}{
		// Both files have to go back, until somebody took one of them back.
		"a revert of other paths": {[]string{"a.yaml", "1", "base.yaml", "1"}, []string{"a.yaml", "2", "base.yaml", "2"}, []string{"base.yaml", "1"}, false, "1"},
		"a pin in other lines":    {nil, []string{"a.yaml", "newest"}, []string{"a.yaml", "# newest\nnewest"}, true, "# ami-good\nnewest"},
	} {
		for _, crash := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t)
				if tt.first != nil {
					w.Commit("first", tt.first...)
				}
				bad := w.Commit("bad", tt.bad...)
				w.stop(bad, "why")
				if tt.image {
					w.badImage(bad, "two")
				}
				w.Fails["open"] = &forgehttp.Error{Fault: forgehttp.FaultDenied}
				if e := w.turn(); e.Phase != proposal.Wanted || w.Branches() == "" {
					t.Fatalf("%+v", e)
				}
				w.Commit("later", tt.later...)
				if crash { // once the branch was moved on
					w.Fails["open"] = &forgehttp.Error{Fault: forgehttp.FaultBusy}
					w.turn()
				}
				e := w.turn()
				if e.Phase != proposal.Open || len(w.Pulls) != 1 {
					t.Fatalf("%+v: %q", e, w.Branches())
				}
				for _, p := range w.Pulls {
					branch := p.HeadRef
					if got := w.Repo.Git("show", branch+":a.yaml"); got != tt.want {
						t.Errorf("the branch has %q", got)
					}
					if n := w.Repo.Git("rev-list", "--count", "main.."+branch); n != "2" {
						t.Errorf("%s commits of weir's", n)
					}
				}
			})
		}
	}
	// Somebody pushed to it meanwhile.
	w := newWorld(t)
	w.Commit("first", "a.yaml", "1", "base.yaml", "1")
	bad := w.Commit("bad", "a.yaml", "2", "base.yaml", "2")
	w.stop(bad, "why")
	w.Fails["open"] = &forgehttp.Error{Fault: forgehttp.FaultDenied}
	w.turn()
	branch := branchOf(bad)
	w.Repo.Git("update-ref", "refs/heads/"+branch, w.Repo.Git("commit-tree", "-m", "theirs", "-p", branch, branch+"^{tree}"))
	theirs := w.Repo.Tip(branch)
	w.Commit("later", "base.yaml", "1")
	if e := w.turn(); e.Phase != proposal.ByHand || w.Repo.Tip(branch) != theirs || len(w.Pulls) != 0 {
		t.Errorf("%+v", e)
	}
}

// flaky is a mirror that cannot be read for a while.
type flaky struct {
	*source.Git
	err error
}

func (f *flaky) Descends(ctx context.Context, revision, from string) (bool, error) {
	if f.err != nil {
		return false, f.err
	}
	return f.Git.Descends(ctx, revision, from)
}

// TestAMirrorThatCannotBeRead says nothing of whether a commit is followed still.
func TestAMirrorThatCannotBeRead(t *testing.T) {
	kinds(t, func(t *testing.T, begin func(t *testing.T) (w *world, stop func())) {
		w, stop := begin(t)
		stop()
		mirror := &flaky{w.Git, errors.New("read: input/output error")}
		w.restart(mirror)
		if e := w.turn(); e.Phase != proposal.Wanted {
			t.Errorf("%+v", e)
		}
		mirror.err = nil
		if e := w.turn(); e.Phase != proposal.Open {
			t.Errorf("%+v", e)
		}
	})
}

// TestOneRevertForEachCommit: what a commit launches is bad, and then what it launches of a newer
// image as well: reverting it takes both back.
func TestOneRevertForEachCommit(t *testing.T) {
	for name, end := range map[string]forge.State{"open": forge.Open, "closed": forge.Closed} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Commit("first", "a.yaml", "1")
			bad := w.Commit("bad", "a.yaml", "2")
			w.stop(bad, "why")
			if e := w.turn(); e.Phase != proposal.Open {
				t.Fatalf("%+v", e)
			}
			w.Last().State = end
			w.turn()
			w.stop(bad, "why")
			w.standing.Record.Runs[0].Members[0].Hash, w.standing.Record.Bad[0].Hash, w.standing.Pools[0].Hash = "newer", "newer", "newer"
			e := w.turn()
			if end == forge.Open && (e.Phase != proposal.Open || e.Number != 1 || w.Last().State != forge.Open) {
				t.Errorf("%+v", e)
			}
			if end == forge.Closed && (e.Phase != proposal.ByHand || !strings.Contains(e.Text, "pull request #1 already reverted this commit")) {
				t.Errorf("%+v", e)
			}
			if len(w.Pulls) != 1 || len(w.Bodies) != 1 {
				t.Errorf("%d pull requests", len(w.Bodies))
			}
			w.turn()
			w.standing.Pools = []rollout.Pool{{ID: poolA, Hash: "fine"}}
			if e = w.turn(); end == forge.Open && e.Phase != proposal.Obsolete {
				t.Errorf("another commit came: %+v", e)
			}
		})
	}
}
