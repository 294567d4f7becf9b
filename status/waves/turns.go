package waves

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/wording"
)

// Turn describes a target that waits because of the configuration, independent of FleetRollouts: for a
// target that it depends on, or for the limit of concurrent rollouts in an account and region.
type Turn struct {
	Target string `json:"target"`
	// Hold is wave or rollout-limit.
	Hold  string `json:"hold"`
	Steps int    `json:"steps"`
	// Pools lists the pools of the steps.
	Pools []string `json:"pools"`
	// Waits describes the reason and end of the wait.
	Waits string `json:"waits"`
}

// Turns returns the turns in the last reports of targets, by target. Its texts come from the reports.
func Turns(reports []*plan.Report) []Turn {
	out := []Turn{}
	for _, r := range reports {
		if r.Plan == nil {
			continue
		}
		// The state of the FleetRollout already contains its own waits.
		steps := slices.DeleteFunc(slices.Clone(r.Plan.Steps), func(s step.Step) bool {
			return s.Held != step.HeldRolloutLimit && (s.Held != step.HeldWave || s.HeldEnds != model.EarlierEnds)
		})
		for _, wait := range wording.WaitsOf(r.Target, steps) {
			t := Turn{Target: r.Target, Hold: string(wait.Hold), Steps: len(wait.Steps), Pools: []string{}, Waits: wait.Text()}
			for i := range wait.Steps {
				if pool := wait.Steps[i].Pool; pool != "" && !slices.Contains(t.Pools, pool) {
					t.Pools = append(t.Pools, pool)
				}
			}
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out, func(a, b Turn) int { return strings.Compare(a.Target, b.Target) })
	return out
}
