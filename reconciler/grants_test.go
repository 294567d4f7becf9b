package reconciler_test

import (
	"errors"
	"testing"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
)

// An approval is on record as begun before the first step that it lets run, and
// only then: one whose plan cannot run now stays the approval of that very plan.
func TestAnApprovalBeginsBeforeItsFirstStep(t *testing.T) {
	for name, tc := range map[string]struct {
		mode   reconciler.Mode
		change func(*model.Gates)
		fails  bool
		begins int
		writes int
	}{
		"the approved plan":  {mode: reconciler.Apply, begins: 1, writes: 2},
		"another plan":       {mode: reconciler.Apply, change: func(g *model.Gates) { g.Grant.Digest = "another" }},
		"begun before":       {mode: reconciler.Apply, change: func(g *model.Gates) { g.Grant.Exact = false }, writes: 2},
		"all of it held":     {mode: reconciler.Apply, change: func(g *model.Gates) { g.Wave = "waits for canary" }},
		"a plan only":        {mode: reconciler.PlanOnly},
		"it cannot be noted": {mode: reconciler.Apply, fails: true, begins: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			blue := target("blue", groupPool("web", "m5.large", 1))
			blue.Policy.Gates.AsReviewed = true
			grant := plan.GrantOf(w.must(reconciler.PlanOnly, blue)[0].Plan)
			blue.Policy.Gates.Grant = &grant
			if tc.change != nil {
				tc.change(&blue.Policy.Gates)
			}
			begins, full := 0, errors.New("the disk is full")
			blue.Begin = func(*plan.Plan) error {
				begins++
				if _, writes := w.calls(); writes > 0 {
					t.Error("a step ran before")
				}
				if tc.fails {
					return full
				}
				return nil
			}
			reports, err := w.pass(tc.mode, blue)
			if err != nil {
				t.Fatal(err)
			}
			r := reports[0]
			if _, writes := w.calls(); writes != tc.writes || begins != tc.begins {
				t.Errorf("it began %d times and wrote %d times, want %d and %d", begins, writes, tc.begins, tc.writes)
			}
			if errors.Is(r.Err, full) != tc.fails || tc.fails && (r.Plan.Granted || r.Plan.Runnable() > 0 || r.Converged()) {
				t.Errorf("error %v, granted %v", r.Err, r.Plan.Granted)
			}
		})
	}
}
