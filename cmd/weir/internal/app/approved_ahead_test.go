package app

import (
	"net/http"
	"testing"

	"github.com/weir-gitops/weir/reconciler/step"
)

// TestAPlanThatWasApprovedAheadRunsAtOnce: a plan that was approved before its commit came, as in
// a pull request, runs as soon as it is known, and not at the next interval.
func TestAPlanThatWasApprovedAheadRunsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.extra = "  apply: as-reviewed\n"
	push := func(a *App, size int) string {
		w.repo.Write(overlay(map[string]string{"workers": pool("workers", "m5.large", size)}))
		commit := w.repo.Commit("a size")
		if a != nil {
			if code, err := deliver(a, commit, commit, hookSecret); code != http.StatusAccepted || err != nil {
				t.Fatalf("%d, %v", code, err)
			}
		}
		return commit
	}
	first := push(nil, 3)
	a, stop := w.startConfig(w.hooked(), nil) // nobody looks by himself for an hour
	defer stop()
	approve(t, a, first, "weir approve ")
	targetConverged(t, a, "prod", first)
	larger := heldBy(t, a, "prod", push(a, 5), step.HeldApproval, "weir approve ")
	targetConverged(t, a, "prod", push(a, 3))
	if _, err := a.recorder.Approve(larger.Digest(), "ann"); err != nil {
		t.Fatal(err)
	}
	targetConverged(t, a, "prod", push(a, 5))
}
