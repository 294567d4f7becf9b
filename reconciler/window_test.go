package reconciler_test

import (
	"fmt"
	"testing"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/render/intent"
)

// A closed window holds every update that has AWS end machines, though it is no
// rollout, and none that does not.
func TestAWindowHoldsWhatEndsMachines(t *testing.T) {
	w := newWorld(t)
	mixed := func(replicas, onDemand int32) intent.Pool {
		p := groupPool("mixed", "m5.large", replicas)
		p.Group.Refresh.Disable = true
		p.Group.MixedInstancesPolicy = &intent.MixedInstances{OnDemandAllocationStrategy: "prioritized", OnDemandPercentageAboveBaseCapacity: onDemand,
			SpotAllocationStrategy: "price-capacity-optimized", Overrides: []intent.Override{{InstanceType: "m5.large"}, {InstanceType: "m5a.large"}}}
		return p
	}
	cooled := groupPool("cooled", "m5.large", 2)
	w.settle(target("blue", groupPool("small", "m5.large", 3), groupPool("big", "m5.large", 3), cooled, groupPool("bound", "m5.large", 3),
		groupPool("life", "m5.large", 1), mixed(2, 100), nodegroupPool("ng", 3), nodegroupPool("grows", 1)))

	cooled = groupPool("cooled", "m5.large", 2)
	cooled.Group.DefaultCooldown = new(int32(60))
	bound := groupPool("bound", "m5.large", 3)
	bound.Replicas.Written, bound.Group.MaxSize = false, 2
	life := groupPool("life", "m5.large", 1)
	day := int32(86400)
	life.Group.Options.MaxInstanceLifetime = &day
	ng := nodegroupPool("ng", 1)
	ng.Nodegroup.MaxSize = intent.Number{Value: 3, Written: true}
	blue := target("blue", groupPool("small", "m5.large", 1), groupPool("big", "m5.large", 4), cooled, bound, life, mixed(2, 0), ng, nodegroupPool("grows", 2))
	blue.Policy.Gates.Window = "opens on Monday"
	got := map[string]string{}
	for _, s := range w.must(reconciler.Apply, blue)[0].Plan.Steps {
		got[s.Name] = fmt.Sprintf("%s %v %d", s.Held, s.Disruptive, s.Instances)
	}
	want := map[string]string{"small": "window true 2", "big": " false 0", "cooled": " false 0", "bound": "window true 1", "life": "window true 0",
		"mixed": "window true 0", "ng": "window true 2", "grows": " false 0"}
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s: got %q, want %q", name, got[name], want[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("steps of %v", got)
	}
	for _, p := range w.must(reconciler.PlanOnly, blue)[0].Pools {
		if p.Name == "small" && p.Replicas != 3 {
			t.Errorf("the window is closed and %d of 3 machines are left", p.Replicas)
		}
	}
	blue.Policy.Gates = model.Gates{}
	w.settle(blue)
}
