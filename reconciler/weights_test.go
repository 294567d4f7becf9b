package reconciler_test

import (
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/render/intent"
)

// A group that counts in weights is up with fewer machines than its size: the group
// that it takes the place of goes then.
func TestAWeightedPoolIsRenamed(t *testing.T) {
	w := newWorld(t)
	pool := groupPool("web", "m5.large", 4)
	pool.Group.MixedInstancesPolicy = &intent.MixedInstances{OnDemandAllocationStrategy: "prioritized", OnDemandPercentageAboveBaseCapacity: 100,
		SpotAllocationStrategy: "price-capacity-optimized", Overrides: []intent.Override{{InstanceType: "m5.large", WeightedCapacity: "2"}}}
	w.settle(target("blue", pool))
	renamed := pool
	group := *pool.Group
	group.Name = "web-2"
	renamed.Group, renamed.AllowReplace = &group, true
	blue := target("blue", renamed)
	for range 15 {
		w.must(reconciler.Apply, blue)
		w.clock.Advance(2 * time.Second)
	}
	if n := w.srv.CallCounts()["autoscaling:DeleteAutoScalingGroup"]; n != 1 {
		t.Errorf("%d groups were deleted, want the one before", n)
	}
	w.settle(blue)
}
