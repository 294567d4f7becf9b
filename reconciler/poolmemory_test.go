package reconciler

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/render/intent"
)

func TestSettledPoolsOfUnknownTargetsStay(t *testing.T) {
	m := poolMemory{converged: map[string]model.LastConverged{model.ConvergedKey("blue", "p"): {}, model.ConvergedKey("green", "p"): {}, model.ConvergedKey("gone", "p"): {}}}
	got := m.convergedElsewhere([]Desired{{Policy: model.Policy{Target: "blue"}, Set: &intent.Set{}}, {Policy: model.Policy{Target: "green"}}})
	if want := []string{model.ConvergedKey("green", "p")}; !slices.Equal(want, slices.Sorted(maps.Keys(got))) {
		t.Errorf("kept: %v", got)
	}
}

// The time of an instance stays while it is in service, also if the pass did not plan its target.
func TestInServiceTimes(t *testing.T) {
	before, now := noon, noon.Add(time.Minute)
	state := &observed.State{Groups: map[string]observed.Group{"web": {Instances: []observed.Instance{
		{ID: "i-seen", LifecycleState: "InService"}, {ID: "i-unplanned", LifecycleState: "InService"}, {ID: "i-ends", LifecycleState: "Terminating"}, {ID: "i-new", LifecycleState: "InService"},
	}}}}
	m := poolMemory{inService: map[string]time.Time{"i-seen": before, "i-unplanned": before, "i-ends": before, "i-gone": before}}
	m.update(nil, map[string]time.Time{"i-seen": now}, state)
	if diff := cmp.Diff(map[string]time.Time{"i-seen": now, "i-unplanned": before}, m.inService); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
