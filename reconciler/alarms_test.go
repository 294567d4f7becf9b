package reconciler_test

import (
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/rollout"
)

// TestAlarmsAreReadForWhatIsGoverned: one call for all targets of the account and region
// while a gate asks, none for pools that no FleetRollout governs.
func TestAlarmsAreReadForWhatIsGoverned(t *testing.T) {
	w := newWorld(t)
	governed := func(name, pool string, alarms ...string) reconciler.Desired {
		d := target(name, groupPool(pool, "m5.large", 1))
		if alarms != nil {
			d.Policy.Gates.Alarms = alarms
			d.Policy.Gates.Rollouts = map[string]rollout.Permit{d.Set.Pools[0].Key.String(): {Share: 100}}
		}
		return d
	}
	asked := func(targets ...reconciler.Desired) int {
		t.Helper()
		w.clock.Advance(time.Minute)
		w.srv.ResetCalls()
		w.must(reconciler.PlanOnly, targets...)
		return w.srv.CallCounts()["monitoring:DescribeAlarms"]
	}
	free := governed("green", "api")
	free.Policy.Gates.Alarms = []string{"errors"}
	if n := asked(free); n != 0 {
		t.Errorf("%d calls for what is not governed", n)
	}
	if n := asked(governed("blue", "web", "errors", "late"), governed("green", "api", "errors", "other")); n != 1 {
		t.Errorf("%d calls for two targets", n)
	}
	defer w.deny("monitoring", "DescribeAlarms", "")()
	if n := asked(governed("blue", "web", "errors")); n != 1 {
		t.Errorf("%d calls where they are denied", n)
	}
}
