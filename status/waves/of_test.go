package waves

import (
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/rollout"
)

// A pool with faults is reported without its machines: what the record has counts, and that
// nobody has seen them is said.
func TestAPoolWithFaultsHasMachines(t *testing.T) {
	at := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	id := func(pool string) rollout.ID { return rollout.ID{Target: "prod", Pool: "default/" + pool} }
	record := &rollout.Record{Runs: []rollout.Run{{Name: "default/nodes", Began: at, Members: []rollout.Member{
		{ID: id("done"), Hash: "h", Machines: 4, Granted: 100}, {ID: id("moves"), Hash: "h", Machines: 3, Granted: 100, Reserved: 2}, {ID: id("waits"), Hash: "h", Machines: 2},
	}}}}
	faulty := Reported([]rollout.Pool{{ID: id("done")}, {ID: id("moves")}}, nil)
	for name, pools := range map[string]map[rollout.ID]rollout.Pool{"with faults": faulty, "silent": nil} {
		r := Of("fleet", record, &record.Runs[0], pools, at)
		if r.Machines != (Machines{All: 9, New: 4, Old: 5}) {
			t.Errorf("%s: %+v", name, r.Machines)
		}
		for _, p := range r.Pools {
			if !p.Unseen {
				t.Errorf("%s: %+v", name, p)
			}
		}
	}
	whole := Reported([]rollout.Pool{{ID: id("moves"), Hash: "h", Machines: 3, New: 2, Facts: rollout.Facts{Ready: 1}}}, nil)
	r := Of("fleet", record, &record.Runs[0], whole, at)
	if p, _ := r.Governs("prod", "default/moves"); p.Counts() != (Machines{All: 3, New: 2, Starting: 1, Old: 1}) || p.Unseen {
		t.Errorf("%+v", p)
	}
}
