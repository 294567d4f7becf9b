package reverts

import (
	"os"
	"path/filepath"
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
	m := &w.now.Record.Runs[0].Members[0]
	m.Hash, m.Earlier = hash, &rollout.Version{Template: "lt-a", Number: 7, Pin: "ami-good"}
	w.now.Record.Bad[0].Hash, w.now.Pools[0].Hash = hash, hash
}

func TestABadImageIsPinned(t *testing.T) {
	w := newWorld(t)
	head := w.commit("first", "a.yaml", "image: newest # ours\n")
	w.badImage(head, "two")
	e := w.turn()
	if e.Phase != proposal.Open || !e.Pin || e.Number != 1 {
		t.Fatalf("%+v", e)
	}
	branch := pinBranchOf(&e)
	if got := w.repo.Git("show", branch+":a.yaml"); got != "image: ami-good # ours" {
		t.Error(got)
	}
	if got := w.repo.Git("log", "-1", "--format=%P %B", branch); !strings.HasPrefix(got, head) || !strings.Contains(got, PinTrailer+": "+head) {
		t.Error(got)
	}
	for _, want := range []string{"No commit changed", "gate nodes: none is ready", "`t default/a`: `a` is `ami-good`, at `a.yaml:1:1`", "take the pin out"} {
		if !strings.Contains(w.bodies[0], want) {
			t.Errorf("%q is not in %s", want, w.bodies[0])
		}
	}
	if len(w.status) != 1 || !strings.Contains(w.status[0], "success pull request #1 proposes the pin") {
		t.Errorf("%q", w.status)
	}
	for range 2 {
		if again := w.turn(); again.Phase != proposal.Open || len(w.pulls) != 1 || len(w.status) != 1 || len(w.events) != 1 {
			t.Fatalf("%+v, %q, %q", again, w.status, w.events)
		}
	}
	// A newer image that is good makes it obsolete.
	w.now.Pools[0].Hash = "three"
	if e := w.turn(); e.Phase != proposal.Obsolete || !strings.Contains(e.Text, "launch something else by now") {
		t.Errorf("%+v", e)
	}
}

// TestEachWriteOfAPinMayBeLost: as with reverts, one pull request.
func TestEachWriteOfAPinMayBeLost(t *testing.T) {
	for _, lost := range []bool{false, true} {
		for _, forgets := range []bool{false, true} {
			w := newWorld(t)
			w.badImage(w.commit("first", "a.yaml", "newest"), "two")
			w.fails["open"], w.lost = &forgehttp.Error{Fault: forgehttp.FaultBusy}, lost
			w.turn()
			if forgets {
				if err := w.store.Update(func(tx *state.Tx) error { return records.Delete(tx, "s") }); err != nil {
					t.Fatal(err)
				}
			}
			w.commit("another", "README", "x") // does not change whose branch it is
			if e := w.turn(); e.Phase != proposal.Open || len(w.pulls) != 1 || !e.Pin {
				t.Errorf("done %t, forgotten %t: %+v, %d", lost, forgets, e, len(w.pulls))
			}
		}
	}
}

// TestASecondBadImage at the same commit is a matter of its own, whatever became of the first
// one, and so is an image that is bad after the commit itself was stopped.
func TestASecondBadImage(t *testing.T) {
	w := newWorld(t)
	w.commit("zeroth", "a.yaml", "newest")
	head := w.commit("first", "a.yaml", "newest 2")
	w.stop(head, "why")
	if e := w.turn(); e.Phase != proposal.Open || e.Pin {
		t.Fatalf("%+v", e)
	}
	w.pulls[branchOf(head)].State = forge.Closed
	w.badImage(head, "two")
	if e := w.turn(); e.Phase != proposal.Open || !e.Pin || len(w.pulls) != 2 {
		t.Fatalf("%+v, %d", e, len(w.pulls))
	}
	first := w.turn()
	w.pulls[pinBranchOf(&first)].State = forge.Closed
	w.turn()
	w.badImage(head, "three")
	if e := w.turn(); e.Phase != proposal.Open || !e.Pin || len(w.pulls) != 3 {
		t.Fatalf("%+v, %d", e, len(w.pulls))
	}
}

// TestPinsLeftToPeople: the commit's status says what to write.
func TestPinsLeftToPeople(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(w *world)
		want string
	}{
		"no place":        {func(w *world) { w.badImage(w.commit("first", "a.yaml", "x"), "two") }, "t default/a: write a: ami-good into a.yaml"},
		"does not render": {func(w *world) { w.badImage(w.commit("first", "a.yaml", "newest", "base.yaml", "broken"), "two") }, "does not render"},
		"somebody else's branch": {func(w *world) {
			w.badImage(w.commit("first", "a.yaml", "newest"), "two")
			w.repo.Branch(pinBranchOf(&Entry{Revision: w.now.Head, Pools: []rollout.Subject{{ID: poolA, Hash: "two"}}}), w.now.Head)
		}, "is there already"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tt.do(w)
			before := w.branches()
			for range 2 {
				if e := w.turn(); e.Phase != proposal.ByHand || !strings.Contains(e.Text, tt.want) || w.branches() != before || len(w.pulls) != 0 || len(w.status) != 1 {
					t.Fatalf("%+v, branches %q, %q", e, w.branches(), w.status)
				}
			}
		})
	}
}

// TestThePinGoesOnTopOfWhatChanged its file since, and a commit of weir's that pins is not
// reverted.
func TestThePinGoesOnTopOfWhatChanged(t *testing.T) {
	w := newWorld(t)
	head := w.commit("first", "a.yaml", "newest")
	w.badImage(head, "two")
	later := w.commit("later", "a.yaml", "size: 3, newest")
	e := w.turn()
	if e.Phase != proposal.Open || w.repo.Git("rev-parse", pinBranchOf(&e)+"^") != later || w.repo.Git("show", pinBranchOf(&e)+":a.yaml") != "size: 3, ami-good" {
		t.Fatalf("%+v", e)
	}
	merged := w.commit("Pin\n\n"+PinTrailer+": "+head, "a.yaml", "size: 3, ami-good")
	w.stop(merged, "why")
	if e := w.turn(); e.Phase != proposal.ByHand || !strings.Contains(e.Text, "of weir's own") {
		t.Errorf("%+v", e)
	}
}

// TestAForgeThatIsDownForAnHour is asked again and again, and then has one pull request.
func TestAForgeThatIsDownForAnHour(t *testing.T) {
	w := newWorld(t)
	w.badImage(w.commit("first", "a.yaml", "newest"), "two")
	for range 5 {
		w.fails["open"] = &forgehttp.Error{Fault: forgehttp.FaultBusy}
		if e := w.turn(); e.Phase != proposal.Wanted || len(w.pulls) != 0 || e.After.IsZero() {
			t.Fatalf("%+v", e)
		}
	}
	if e := w.turn(); e.Phase != proposal.Open || len(w.pulls) != 1 || len(w.events) != 1 {
		t.Errorf("%+v, %q", e, w.events)
	}
}

// kinds are the two things that are proposed.
func kinds(t *testing.T, test func(t *testing.T, w *world)) {
	for _, pin := range []bool{false, true} {
		t.Run(map[bool]string{false: "revert", true: "pin"}[pin], func(t *testing.T) {
			w := newWorld(t)
			head := w.commit("first", "a.yaml", "newest")
			if pin {
				w.badImage(head, "two")
			} else {
				w.stop(w.commit("bad", "a.yaml", "another"), "why")
			}
			test(t, w)
		})
	}
}

// TestTwoMembers, of which one ends between the push of the branch and the pull request, and
// the other knows nothing of it: one branch, one pull request.
func TestTwoMembers(t *testing.T) {
	kinds(t, func(t *testing.T, w *world) {
		w.fails["open"] = &forgehttp.Error{Fault: forgehttp.FaultBusy}
		if e := w.turn(); e.Phase != proposal.Wanted {
			t.Fatalf("%+v", e)
		}
		branches, first := w.branches(), w.store
		other, err := state.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = other.Close() }()
		w.store = other
		if e := w.turn(); e.Phase != proposal.Open || e.Number != 1 || w.branches() != branches {
			t.Fatalf("%+v, %s", e, w.branches())
		}
		w.store = first
		if e := w.turn(); e.Phase != proposal.Open || e.Number != 1 || len(w.pulls) != 1 || w.branches() != branches {
			t.Fatalf("%+v, %s", e, w.branches())
		}
	})
}

// TestAServerThatTakesNoPush, as where weir's branches are protected or the token may not push,
// is said on the commit, and mended without a restart.
func TestAServerThatTakesNoPush(t *testing.T) {
	kinds(t, func(t *testing.T, w *world) {
		hook := filepath.Join(w.repo.Dir(), "hooks", "pre-receive")
		if err := os.MkdirAll(filepath.Dir(hook), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(hook, []byte("#!/bin/sh\necho weir/ is protected >&2\nexit 1\n"), 0o700); err != nil { //nolint:gosec // Git runs it.
			t.Fatal(err)
		}
		for range 2 {
			if e := w.turn(); e.Phase != proposal.Wanted || !e.Refused || w.branches() != "" || len(w.status) != 1 || !strings.Contains(w.status[0], "failure weir may not propose the "+e.what()) {
				t.Fatalf("%+v, %q", e, w.status)
			}
		}
		if err := os.Remove(hook); err != nil {
			t.Fatal(err)
		}
		if e := w.turn(); e.Phase != proposal.Open || len(w.pulls) != 1 || !strings.Contains(w.status[len(w.status)-1], "success") {
			t.Errorf("%+v, %q", e, w.status)
		}
	})
}
