package waves

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/rollout"
)

// What AWS goes on with is named wherever somebody has paused or stopped the rest: nobody can
// cancel the update of a nodegroup, and AWS has no pause for a refresh.
func TestWhatGoesOnIsNamed(t *testing.T) {
	at := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	id := func(pool string) rollout.ID { return rollout.ID{Target: "prod", Pool: "default/" + pool} }
	moving := func(pool string, whole bool, left int32) rollout.Pool {
		return rollout.Pool{ID: id(pool), Hash: "h", Machines: 40, Whole: whole, Moving: &rollout.Move{ID: "1", Hash: "h", Left: left}}
	}
	still := rollout.Pool{ID: id("still"), Hash: "h", Machines: 40, Whole: true}
	for name, c := range map[string]struct {
		paused, stopped bool
		pools           []rollout.Pool
		want            string // in its advice; empty for that nothing goes on
	}{
		"stopped, with an update":         {false, true, []rollout.Pool{moving("ng", true, 40), still}, "EKS finishes the updates that it has started, as they cannot be cancelled: up to 40 machines are still replaced, of prod default/ng (40)."},
		"stopped, a refresh is cancelled": {false, true, []rollout.Pool{moving("web", false, 40), still}, ""},
		"stopped, both":                   {false, true, []rollout.Pool{moving("ng", true, 7), moving("web", false, 40)}, "up to 7 machines are still replaced, of prod default/ng (7)."},
		"paused, with a refresh":          {true, false, []rollout.Pool{moving("web", false, 9), moving("ng", true, 7)}, "AWS continues the rollouts that it has started, up to their shares: up to 16 machines are still replaced, of prod default/ng (7), prod default/web (9)."},
		"neither":                         {false, false, []rollout.Pool{moving("ng", true, 40)}, ""},
		"nothing moves":                   {false, true, []rollout.Pool{still}, ""},
	} {
		run := rollout.Run{Name: "default/nodes", Began: at}
		if c.paused {
			run.Paused = &rollout.Decision{By: "ann"}
		}
		if c.stopped {
			run.Stopped = &rollout.Decision{By: "ann"}
		}
		slices.SortFunc(c.pools, func(a, b rollout.Pool) int { return strings.Compare(a.Pool, b.Pool) })
		for _, p := range c.pools {
			run.Members = append(run.Members, rollout.Member{ID: p.ID, Hash: "h", Machines: 40, Granted: 100, Reserved: 40})
		}
		record := &rollout.Record{Runs: []rollout.Run{run}}
		advice := strings.Join(Of("fleet", record, &record.Runs[0], AddPools(nil, c.pools), at).Do, "\n")
		if goes := strings.Contains(advice, "still replaced"); goes != (c.want != "") || !strings.Contains(advice, c.want) {
			t.Errorf("%s: %s", name, advice)
		}
		if strings.Contains(advice, "the remaining pools do not change.") && strings.Contains(advice, "still replaced") {
			t.Errorf("%s: it says that all others stay: %s", name, advice)
		}
	}
}

// A pool with faults is reported without its machines: what the record has counts, and that
// nobody has seen them is said.
func TestAPoolWithFaultsHasMachines(t *testing.T) {
	at := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	id := func(pool string) rollout.ID { return rollout.ID{Target: "prod", Pool: "default/" + pool} }
	record := &rollout.Record{Runs: []rollout.Run{{Name: "default/nodes", Began: at, Members: []rollout.Member{
		{ID: id("done"), Hash: "h", Machines: 4, Granted: 100}, {ID: id("moves"), Hash: "h", Machines: 3, Granted: 100, Reserved: 2}, {ID: id("waits"), Hash: "h", Machines: 2},
	}}}}
	faulty := AddPools(nil, []rollout.Pool{{ID: id("done")}, {ID: id("moves")}})
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
	whole := AddPools(nil, []rollout.Pool{{ID: id("moves"), Hash: "h", Machines: 3, New: 2, Facts: rollout.Facts{Ready: 1}}})
	r := Of("fleet", record, &record.Runs[0], whole, at)
	if p, _ := r.Governs("prod", "default/moves"); p.Counts() != (Machines{All: 3, New: 2, Starting: 1, Old: 1}) || p.Unseen {
		t.Errorf("%+v", p)
	}
}

// Each case is the state of a run, and its phase. Baking and Incomplete need its pools too.
func TestPhasesOfARun(t *testing.T) {
	at := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	word := &rollout.Decision{By: "ann"}
	for _, tc := range []struct {
		name string
		run  rollout.Run
		want string
	}{
		{"no commit asks for it yet", rollout.Run{}, Idle},
		{"it waits for what targets make of the commit", rollout.Run{Began: at, Gathers: true}, Gathering},
		{"it advances", rollout.Run{Began: at}, Running},
		{"it ended", rollout.Run{Began: at, Ended: at}, Done},
		{"somebody paused it", rollout.Run{Began: at, Gathers: true, Paused: word}, Paused},
		{"somebody paused it before its first commit", rollout.Run{Paused: word}, Paused},
		{"somebody stopped it", rollout.Run{Began: at, Stopped: word}, Stopped},
		{"it was stopped during a pause", rollout.Run{Began: at, Paused: word, Stopped: word}, Stopped},
	} {
		if got := phaseOf(&tc.run); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}
