package reconciler_test

import (
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/step"
)

func TestRolloutsOfAnAccountTakeTurns(t *testing.T) {
	w := newWorld(t)
	wish := func(machine string) []reconciler.Desired {
		blue, green := target("blue", groupPool("web", machine, 2), groupPool("api", machine, 2)), target("green", groupPool("batch", machine, 2))
		blue.Policy.MaxRollouts, green.Policy.MaxRollouts = 5, 1
		return []reconciler.Desired{blue, green}
	}
	w.settle(wish("m5.large")...)
	started := map[string]int{}
	waited := false
	for pass := range 200 {
		moving := 0
		reports := w.must(reconciler.Apply, wish("m5.xlarge")...)
		for _, r := range reports {
			for i, o := range r.Outcomes {
				if o.Step.Verb != step.Rollout {
					continue
				}
				switch st := r.Plan.Steps[i]; st.Held {
				case "":
					started[st.Name]++
				case step.HeldRolloutLimit:
					waited = true
				default:
					t.Errorf("%s is held: %s", st.Name, st.Held)
				}
			}
			for _, p := range r.Pools {
				if p.Rollout != nil {
					moving++
				}
			}
		}
		if moving > 1 {
			t.Fatalf("pass %d: %d rollouts move", pass, moving)
		}
		if converged(reports) {
			break
		}
		w.clock.Advance(10 * time.Second)
	}
	for _, name := range []string{"web", "api", "batch"} {
		if started[name] != 1 {
			t.Errorf("%s rolled %d times", name, started[name])
		}
	}
	if !waited || !converged(w.must(reconciler.Apply, wish("m5.xlarge")...)) {
		t.Error("no rollout waited, or not all are done")
	}
}
