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
					w.commit("first", tt.first...)
				}
				bad := w.commit("bad", tt.bad...)
				w.stop(bad, "why")
				if tt.image {
					w.badImage(bad, "two")
				}
				w.fails["open"] = &forgehttp.Error{Fault: forgehttp.FaultDenied}
				if e := w.turn(); e.Phase != proposal.Wanted || w.branches() == "" {
					t.Fatalf("%+v", e)
				}
				w.commit("later", tt.later...)
				if crash { // once the branch was moved on
					w.fails["open"] = &forgehttp.Error{Fault: forgehttp.FaultBusy}
					w.turn()
				}
				e := w.turn()
				if e.Phase != proposal.Open || len(w.pulls) != 1 {
					t.Fatalf("%+v: %q", e, w.branches())
				}
				for branch := range w.pulls {
					if got := w.repo.Git("show", branch+":a.yaml"); got != tt.want {
						t.Errorf("the branch has %q", got)
					}
					if n := w.repo.Git("rev-list", "--count", "main.."+branch); n != "2" {
						t.Errorf("%s commits of weir's", n)
					}
				}
			})
		}
	}
	// Somebody pushed to it meanwhile.
	w := newWorld(t)
	w.commit("first", "a.yaml", "1", "base.yaml", "1")
	bad := w.commit("bad", "a.yaml", "2", "base.yaml", "2")
	w.stop(bad, "why")
	w.fails["open"] = &forgehttp.Error{Fault: forgehttp.FaultDenied}
	w.turn()
	branch := branchOf(bad)
	w.repo.Git("update-ref", "refs/heads/"+branch, w.repo.Git("commit-tree", "-m", "theirs", "-p", branch, branch+"^{tree}"))
	theirs := w.repo.Tip(branch)
	w.commit("later", "base.yaml", "1")
	if e := w.turn(); e.Phase != proposal.ByHand || w.repo.Tip(branch) != theirs || len(w.pulls) != 0 {
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
	kinds(t, func(t *testing.T, w *world) {
		mirror := &flaky{w.git, errors.New("read: input/output error")}
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

// TestWhatSomebodyPushedToIsLeftAlone, also once nobody needs it.
func TestWhatSomebodyPushedToIsLeftAlone(t *testing.T) {
	kinds(t, func(t *testing.T, w *world) {
		w.turn()
		for branch, p := range w.pulls {
			p.HeadSHA = w.repo.Tip(branch)
			if e := w.turn(); strings.Contains(e.Text, "somebody else") {
				t.Errorf("%+v", e)
			}
			p.HeadSHA = w.repo.Git("commit-tree", "-m", "theirs", "-p", branch, branch+"^{tree}")
			w.repo.Git("update-ref", "refs/heads/"+branch, p.HeadSHA)
		}
		w.now.Pools = nil
		for range 2 {
			if e := w.turn(); e.Phase != proposal.Theirs || !strings.Contains(e.Text, "commits of somebody else") {
				t.Errorf("%+v", e)
			}
		}
		if len(w.events) != 1 || len(w.status) != 2 || len(w.said) != 0 {
			t.Errorf("%q %q %q", w.events, w.status, w.said)
		}
		for _, p := range w.pulls {
			p.State = forge.Merged
		}
		if e := w.turn(); e.Phase != proposal.Merged {
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
			w.commit("first", "a.yaml", "1")
			bad := w.commit("bad", "a.yaml", "2")
			w.stop(bad, "why")
			if e := w.turn(); e.Phase != proposal.Open {
				t.Fatalf("%+v", e)
			}
			w.pulls[branchOf(bad)].State = end
			w.turn()
			w.stop(bad, "why")
			w.now.Record.Runs[0].Members[0].Hash, w.now.Record.Bad[0].Hash, w.now.Pools[0].Hash = "newer", "newer", "newer"
			e := w.turn()
			if end == forge.Open && (e.Phase != proposal.Open || e.Number != 1 || w.pulls[branchOf(bad)].State != forge.Open) {
				t.Errorf("%+v", e)
			}
			if end == forge.Closed && (e.Phase != proposal.ByHand || !strings.Contains(e.Text, "pull request #1 reverted this commit already")) {
				t.Errorf("%+v", e)
			}
			if len(w.pulls) != 1 || len(w.bodies) != 1 {
				t.Errorf("%d pull requests", len(w.bodies))
			}
			w.turn()
			w.now.Pools = []rollout.Pool{{ID: poolA, Hash: "fine"}}
			if e = w.turn(); end == forge.Open && e.Phase != proposal.Obsolete {
				t.Errorf("another commit came: %+v", e)
			}
		})
	}
}

// TestWhatWeirClosesIsNotClosedByHand: the answer is lost. One that could not be closed, and is
// needed again, is somebody's to close.
func TestWhatWeirClosesIsNotClosedByHand(t *testing.T) {
	for _, lost := range []bool{false, true} {
		w := newWorld(t)
		w.commit("first", "a.yaml", "1")
		bad := w.commit("bad", "a.yaml", "2")
		w.stop(bad, "why")
		w.turn()
		needed := w.now.Pools[0].Hash
		w.now.Pools[0].Hash = "another"
		w.fails["close"], w.lost = &forgehttp.Error{Fault: forgehttp.FaultBusy}, lost
		if e := w.turn(); e.Phase != proposal.Open {
			t.Fatalf("done %t: %+v", lost, e)
		}
		if !lost {
			w.now.Pools[0].Hash = needed
			w.turn()
			w.pulls[branchOf(bad)].State = forge.Closed
			if e := w.turn(); e.Phase != proposal.Closed {
				t.Errorf("somebody closed it: %+v", e)
			}
			continue
		}
		if e := w.turn(); e.Phase != proposal.Obsolete || !strings.Contains(e.Text, "another commit changed") {
			t.Errorf("%+v", e)
		}
	}
}
