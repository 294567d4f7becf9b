package page

import (
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/statustest"
)

// TestAParkedStepSaysOnThePageHowItIsLifted, and its pool's failure is told by the step's
// event alone.
func TestAParkedStepSaysOnThePageHowItIsLifted(t *testing.T) {
	const lift = "weir does not try again for an hour; weir reconcile prod --retry makes weir try at once"
	o := step.Outcome{
		Step: step.Step{Verb: step.Update, Resource: step.AutoScalingGroup, Name: "web", Pool: "default/web"}, Status: step.Failed, Parked: true, Lift: lift,
		Err: &observed.Error{Kind: observed.Invalid, Code: "ValidationError", Message: "no"},
	}
	if got := outcomeViews([]step.Outcome{o}, forge.Links{}, "prod", "")[0].Error; !strings.Contains(got, "ValidationError") || !strings.HasSuffix(got, lift) {
		t.Errorf("the step says %q", got)
	}
	pool := plan.PoolStatus{Target: "prod", Namespace: "default", Name: "web"}
	plan.NoteRefused(&pool, &o)
	r := &plan.Report{Target: "prod", Plan: &plan.Plan{}, Outcomes: []step.Outcome{o}, Pools: []plan.PoolStatus{pool}}
	v := (&views{current: current.New(current.Options{})}).targetView(current.TargetState{Target: current.Target{Name: "prod"}, Last: r})
	if !strings.HasSuffix(v.Error, lift) {
		t.Errorf("the target says %q", v.Error)
	}
	if !strings.HasSuffix(pool.FailureMessage, lift) {
		t.Errorf("the pool says %q", pool.FailureMessage)
	}
	_, events := events.Between(events.Known{}, r, statustest.Noon, false)
	var kinds []string
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	if !slices.Contains(kinds, "step-failed") || slices.Contains(kinds, "pool-failed") {
		t.Errorf("told are %v", kinds)
	}
}
