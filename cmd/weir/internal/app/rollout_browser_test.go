package app

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/status/browsertest"
	"github.com/weir-gitops/weir/status/commands"
	"github.com/weir-gitops/weir/status/waves"
)

// TestSomebodyStopsARolloutByTheKeyboard pauses a rollout that bakes, lets it go on and stops
// it, in a real browser and without a mouse.
func TestSomebodyStopsARolloutByTheKeyboard(t *testing.T) {
	t.Parallel()
	browser := browsertest.Start(t)
	w := newWorld(t, quickAWS())
	w.extra = otherTargets
	spec := "  bakeTime: 2h\n  waves:\n  - name: canary\n    selector: {targets: [third]}\n"
	w.repo.Write(inWaves("m5.large", spec))
	first := w.repo.Commit("first")
	token := strings.Repeat("a-token-", 5)
	a, stop := w.startConfig(guardedConfig(w, token), nil)
	defer stop()
	for _, target := range []string{"prod", "second", "third"} {
		targetConverged(t, a, target, first)
	}
	w.repo.Write(inWaves("m6i.large", spec))
	second := w.repo.Commit("second")
	standing := func() waves.Rollout {
		list, err := a.rollouts.List()
		if err != nil || len(list.Rollouts) != 1 {
			t.Fatalf("rollouts: %+v, %v", list, err)
		}
		return list.Rollouts[0]
	}
	until := func(phase string) {
		eventually(t, "the rollout is "+phase, func() string {
			if r := standing(); r.Phase != phase || r.Revision != second {
				return r.Phase + " at " + r.Revision
			}
			return ""
		})
	}
	until(waves.Baking)

	b := browser.Open(t, a.PageURL()+"/rollouts/pools/default/nodes", 1280, "light")
	b.Await("document.activeElement.id === 'token'")
	b.Write(token)
	b.Press("Enter")
	b.Await("location.pathname === '/rollouts/pools/default/nodes' && document.querySelector('#rollout-pause')")
	b.TabTo("#rollout-pause > summary")
	b.Press("Enter")
	b.TabTo("#rollout-pause input[name=reason]")
	b.Write("not <b>today</b>")
	b.TabTo("#rollout-pause button")
	b.Press("Enter")
	b.Shows("ann paused the rollout default/nodes: not <b>today</b>.")
	if r := standing(); r.Paused == nil || r.Paused.By != "ann" || r.Paused.Why != "not <b>today</b>" {
		t.Errorf("it is %s, paused %+v", r.Phase, r.Paused)
	}
	b.TabTo("#rollout-resume")
	b.Press(" ")
	b.Shows("ann resumed the rollout default/nodes.")
	until(waves.Baking)

	// What was looked at is stopped, and no other change.
	var wrong *gates.Fault
	if _, err := a.rollouts.Do(commands.RolloutRequest{Do: "abort", Name: "nodes", By: "ann", Revision: first}); !errors.As(err, &wrong) || !strings.Contains(wrong.Message, "rolls out another change") {
		t.Errorf("another change is stopped: %v", err)
	}
	b.TabTo("#rollout-abort > summary")
	b.Press("Enter")
	b.TabTo("#rollout-abort button")
	b.Press("Enter")
	b.Shows("ann aborted the rollout default/nodes.")
	b.Await("!document.querySelector('#rollout-abort')")
	until(waves.Stopped)
	if r := standing(); r.Stopped.By != "ann" {
		t.Errorf("stopped: %+v", r.Stopped)
	}
	if faults := b.Complaints(); len(faults) > 0 {
		t.Errorf("the console has errors:\n%s", strings.Join(faults, "\n"))
	}
}
