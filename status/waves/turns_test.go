package waves

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
)

// What waits by the configuration is told in the words of plans, and apart from what
// FleetRollouts hold.
func TestTurnsAreThoseOfTheConfiguration(t *testing.T) {
	held := func(pool string, hold step.Hold, reason, ends string) step.Step {
		return step.Step{Verb: step.Update, Pool: pool, Held: hold, HeldReason: reason, HeldEnds: ends}
	}
	prod := "waits for the target dev, which rolls out"
	reports := []*plan.Report{
		{Target: "prod", Plan: &plan.Plan{Steps: []step.Step{
			held("default/web", step.HeldWave, prod, model.EarlierEnds), held("default/web", step.HeldWave, prod, model.EarlierEnds), held("default/db", step.HeldWave, prod, model.EarlierEnds),
			held("default/a", step.HeldWave, "default/nodes: canary", "canary"), held("default/b", step.HeldWave, "default/nodes: early", ""), held("default/c", step.HeldWave, "default/nodes: late", ""),
			held("default/d", step.HeldWindow, "", ""), {Pool: "default/e"},
		}}},
		{Target: "dev", Plan: &plan.Plan{Steps: []step.Step{held("default/web", step.HeldRolloutLimit, "2 of at most 2 rollouts are under way in the account and region; 0 wait before this one", "")}}},
		{Target: "blank"},
		{Target: "rests", Plan: &plan.Plan{}},
	}
	want := []Turn{
		{"dev", "rollout-limit", 1, []string{"default/web"}, "1 step waits for other rollouts to end: 2 of at most 2 rollouts are under way in the account and region; 0 wait before this one; released by: the other rollouts"},
		{"prod", "wave", 3, []string{"default/web", "default/db"}, "3 steps wait for an earlier wave: waits for the target dev, which rolls out; released by: the earlier target, once it has converged with the same"},
	}
	if d := cmp.Diff(want, Turns(reports)); d != "" {
		t.Errorf("turns (-want +got):\n%s", d)
	}
	if got := Turns(nil); got == nil || len(got) != 0 {
		t.Errorf("without reports: %#v, and JSON has a list", got)
	}
}
