package reverts

import (
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/proposal"
)

// badImage has a newly published image be bad for pool a at a commit that did not change it.
func (w *world) badImage(revision, hash string) {
	w.stop(revision, "gate nodes: none is ready")
	m := &w.standing.Record.Runs[0].Members[0]
	m.Hash, m.Earlier = hash, &rollout.Version{Template: "lt-a", Number: 7, Pin: "ami-good"}
	w.standing.Record.Bad[0].Hash, w.standing.Pools[0].Hash = hash, hash
}

func TestABadImageIsPinned(t *testing.T) {
	w := newWorld(t)
	head := w.Commit("first", "a.yaml", "image: newest # ours\n")
	w.badImage(head, "two")
	e := w.turn()
	if e.Phase != proposal.Open || !e.Pin || e.Number != 1 {
		t.Fatalf("%+v", e)
	}
	branch := pinBranchOf(&e)
	if got := w.Repo.Git("show", branch+":a.yaml"); got != "image: ami-good # ours" {
		t.Error(got)
	}
	if got := w.Repo.Git("log", "-1", "--format=%P %B", branch); !strings.HasPrefix(got, head) || !strings.Contains(got, PinTrailer+": "+head) {
		t.Error(got)
	}
	for _, want := range []string{"No commit changed", "gate nodes: none is ready", "`t default/a`: `a` is `ami-good`, at `a.yaml:1:1`", "remove the pin"} {
		if !strings.Contains(w.Bodies[0], want) {
			t.Errorf("%q is not in %s", want, w.Bodies[0])
		}
	}
	if len(w.status) != 1 || !strings.Contains(w.status[0], "success pull request #1 proposes the pin") {
		t.Errorf("%q", w.status)
	}
	for range 2 {
		if again := w.turn(); again.Phase != proposal.Open || len(w.Pulls) != 1 || len(w.status) != 1 || len(w.Events) != 1 {
			t.Fatalf("%+v, %q, %q", again, w.status, w.Events)
		}
	}
	// A newer image that is good makes it obsolete.
	w.standing.Pools[0].Hash = "three"
	if e := w.turn(); e.Phase != proposal.Obsolete || !strings.Contains(e.Text, "now launch something else") {
		t.Errorf("%+v", e)
	}
}

// TestASecondBadImage at the same commit is a matter of its own, whatever became of the first
// one, and so is an image that is bad after the commit itself was stopped.
func TestASecondBadImage(t *testing.T) {
	w := newWorld(t)
	w.Commit("zeroth", "a.yaml", "newest")
	head := w.Commit("first", "a.yaml", "newest 2")
	w.stop(head, "why")
	if e := w.turn(); e.Phase != proposal.Open || e.Pin {
		t.Fatalf("%+v", e)
	}
	w.Last().State = forge.Closed
	w.badImage(head, "two")
	if e := w.turn(); e.Phase != proposal.Open || !e.Pin || len(w.Pulls) != 2 {
		t.Fatalf("%+v, %d", e, len(w.Pulls))
	}
	w.Last().State = forge.Closed
	w.turn()
	w.badImage(head, "three")
	if e := w.turn(); e.Phase != proposal.Open || !e.Pin || len(w.Pulls) != 3 {
		t.Fatalf("%+v, %d", e, len(w.Pulls))
	}
}

// TestPinsLeftToPeople: the commit's status says what to write.
func TestPinsLeftToPeople(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(w *world)
		want string
	}{
		"no place":        {func(w *world) { w.badImage(w.Commit("first", "a.yaml", "x"), "two") }, "t default/a: write a: ami-good into a.yaml"},
		"does not render": {func(w *world) { w.badImage(w.Commit("first", "a.yaml", "newest", "base.yaml", "broken"), "two") }, "does not render"},
		"somebody else's branch": {func(w *world) {
			w.badImage(w.Commit("first", "a.yaml", "newest"), "two")
			w.Repo.Branch(pinBranchOf(&Entry{Revision: w.Now.Head, Pools: []rollout.Subject{{ID: poolA, Hash: "two"}}}), w.Now.Head)
		}, "already exists at"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tt.do(w)
			before := w.Branches()
			for range 2 {
				if e := w.turn(); e.Phase != proposal.ByHand || !strings.Contains(e.Text, tt.want) || w.Branches() != before || len(w.Pulls) != 0 || len(w.status) != 1 {
					t.Fatalf("%+v, branches %q, %q", e, w.Branches(), w.status)
				}
			}
		})
	}
}

// TestThePinGoesOnTopOfWhatChanged its file since, and a commit of weir's that pins is not
// reverted.
func TestThePinGoesOnTopOfWhatChanged(t *testing.T) {
	w := newWorld(t)
	head := w.Commit("first", "a.yaml", "newest")
	w.badImage(head, "two")
	later := w.Commit("later", "a.yaml", "size: 3, newest")
	e := w.turn()
	if e.Phase != proposal.Open || w.Repo.Git("rev-parse", pinBranchOf(&e)+"^") != later || w.Repo.Git("show", pinBranchOf(&e)+":a.yaml") != "size: 3, ami-good" {
		t.Fatalf("%+v", e)
	}
	merged := w.Commit("Pin\n\n"+PinTrailer+": "+head, "a.yaml", "size: 3, ami-good")
	w.stop(merged, "why")
	if e := w.turn(); e.Phase != proposal.ByHand || !strings.Contains(e.Text, "a revert by weir") {
		t.Errorf("%+v", e)
	}
}

// TestTwoMembers, of which one ends between the push of the branch and the pull request, and
// the other knows nothing of it: one branch, one pull request.
func TestTwoMembers(t *testing.T) {
	kinds(t, func(t *testing.T, begin func(t *testing.T) (w *world, stop func())) {
		w, stop := begin(t)
		stop()
		w.Fails["open"] = &forgehttp.Error{Fault: forgehttp.FaultBusy}
		if e := w.turn(); e.Phase != proposal.Wanted {
			t.Fatalf("%+v", e)
		}
		branches, first := w.Branches(), w.Store
		other, err := state.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = other.Close() }()
		w.Store = other
		if e := w.turn(); e.Phase != proposal.Open || e.Number != 1 || w.Branches() != branches {
			t.Fatalf("%+v, %s", e, w.Branches())
		}
		w.Store = first
		if e := w.turn(); e.Phase != proposal.Open || e.Number != 1 || len(w.Pulls) != 1 || w.Branches() != branches {
			t.Fatalf("%+v, %s", e, w.Branches())
		}
	})
}
