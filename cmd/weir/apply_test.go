package main

import (
	"errors"
	"slices"
	"testing"

	"github.com/weir-gitops/weir/cmd/weir/internal/workspace"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/terminal"
)

func TestGravest(t *testing.T) {
	for _, tc := range []struct {
		codes []int
		want  int
	}{
		{nil, 0},
		{[]int{0, 2}, 2},
		{[]int{3, 4}, 4},
		{[]int{4, 1, 3}, 1},
		{[]int{2, 4, 0}, 4},
	} {
		if got := gravest(tc.codes...); got != tc.want {
			t.Errorf("%v: want %d, got %d", tc.codes, tc.want, got)
		}
	}
}

func TestWhatIsWaitedForAndTheExitCode(t *testing.T) {
	held := func(h step.Hold) *plan.Plan { return &plan.Plan{Steps: []step.Step{{Held: h}}} }
	run := &plan.Plan{Steps: []step.Step{{}}}
	moving := []plan.PoolStatus{{InfrastructureReady: true}}
	failure := func(k observed.ErrorKind) []step.Outcome {
		return []step.Outcome{{Status: step.Failed, Err: &observed.Error{Kind: k}}}
	}
	faults := func(code string) diag.List { return diag.List{{Severity: diag.Error, Code: code}} }
	tests := map[string]struct {
		report  plan.Report
		settled bool
		code    int
	}{
		"converged":            {plan.Report{Plan: &plan.Plan{}}, true, exitOK},
		"moving":               {plan.Report{Plan: &plan.Plan{}, Pools: moving}, false, exitOK},
		"to be done":           {plan.Report{Plan: run}, false, exitOK},
		"no plan":              {plan.Report{Diagnostics: faults("yaml-syntax")}, true, exitError},
		"no credentials":       {plan.Report{Err: &observed.Error{Kind: observed.Credentials}}, true, exitError},
		"other error":          {plan.Report{Err: errors.New("x")}, true, exitError},
		"throttled":            {plan.Report{Err: &observed.Error{Kind: observed.Throttled}}, false, exitError},
		"conflict":             {plan.Report{Plan: held(step.HeldConflict), Diagnostics: faults("conflict")}, true, exitRefused},
		"conflict and fault":   {plan.Report{Plan: held(step.HeldConflict), Diagnostics: append(faults("conflict"), faults("rollout-failed")...)}, true, exitError},
		"held while moving":    {plan.Report{Plan: held(step.HeldPruneLimit), Pools: moving}, false, exitRefused},
		"its cluster is made":  {plan.Report{Plan: held(step.HeldControlPlane)}, false, exitRefused},
		"after one that is":    {plan.Report{Target: "let", Plan: held(step.HeldWave)}, false, exitRefused},
		"after one that fails": {plan.Report{Plan: held(step.HeldWave)}, true, exitRefused},
		"step refused":         {plan.Report{Plan: run, Outcomes: failure(observed.Invalid)}, true, exitError},
		"step may pass":        {plan.Report{Plan: run, Outcomes: failure(observed.Transient)}, false, exitError},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := []terminal.Applied{{First: &tc.report, Last: &tc.report}}
			if got := workspace.Settled(a, func(target string) bool { return target == "let" }); got != tc.settled {
				t.Errorf("settled: want %t, got %t", tc.settled, got)
			}
			if got := applyCode(a, false, false); got != tc.code {
				t.Errorf("code: want %d, got %d", tc.code, got)
			}
			want := gravest(tc.code, exitNotConverged)
			if slices.Contains([]string{"its cluster is made", "after one that is", "after one that fails"}, name) { // that is what was waited for
				want = exitNotConverged
			}
			if late := applyCode(a, true, true); late != want {
				t.Errorf("code when late: want %d, got %d", want, late)
			}
			if ended := applyCode(a, true, false); name == "after one that fails" && ended != exitRefused {
				t.Errorf("code when nothing moves any more: %d", ended)
			}
		})
	}
}
