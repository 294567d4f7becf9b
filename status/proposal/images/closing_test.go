package images

import (
	"testing"

	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/proposal"
)

// TestWhatSomebodyClosesAfterWeirCouldNot: nobody needed it, the forge did not close it, it is
// needed again, and then somebody turns it down.
func TestWhatSomebodyClosesAfterWeirCouldNot(t *testing.T) {
	w := newWorld(t, "a")
	w.newest = "ami-2"
	w.turn()
	w.running["a"] = "ami-2"
	w.fails["close"] = &forgehttp.Error{Fault: forgehttp.FaultBusy}
	if e := w.turn(); e.Closing == "" || w.pulls[0].State != forge.Open {
		t.Fatalf("%+v", e)
	}
	w.running["a"] = "ami-1"
	w.turn()
	w.pulls[0].State = forge.Closed
	for range 2 {
		if e := w.turn(); e.Phase != proposal.Closed || len(w.pulls) != 1 {
			t.Errorf("proposed again: %+v", e)
		}
	}
}

// TestOneThatWasOpenedAnewIsFound: its answer is lost, and of several pull requests of a branch a
// forge may name any.
func TestOneThatWasOpenedAnewIsFound(t *testing.T) {
	for _, oldest := range []bool{false, true} {
		w := newWorld(t, "a")
		w.newest, w.oldest = "ami-2", oldest
		w.turn()
		w.running["a"] = "ami-2"
		w.turn()
		w.running["a"] = "ami-1"
		w.fails["open"], w.lost = &forgehttp.Error{Fault: forgehttp.FaultBusy}, true
		w.turn()
		w.restart()
		if e := w.turn(); e.Phase != proposal.Open || e.Number != 2 || len(w.pulls) != 2 {
			t.Errorf("the oldest %t: %+v, %d", oldest, e, len(w.pulls))
		}
	}
}
