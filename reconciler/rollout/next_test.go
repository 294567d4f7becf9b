package rollout

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/render/intent"
)

func passes(f *fleet) func(Ask) Answer {
	return func(Ask) Answer { return Answer{Verdict: Pass, At: f.in.Now} }
}

func TestWavesFollowEachOther(t *testing.T) {
	canary := intent.Wave{Name: "canary", Pools: 1}
	for _, tc := range []struct {
		name  string
		spec  intent.FleetRollout
		pools int
		want  string
	}{
		{"without waves all at once", intent.FleetRollout{}, 3, "p0:10 p1:10 p2:10"},
		{"a canary of shares", intent.FleetRollout{Waves: []intent.Wave{{Pools: 1, Shares: []int32{10, 50, 100}}}}, 3, "p0:1, then p0:5, then p0:10, then p1:10 p2:10"},
		{"percentages are of all machines and take from each cluster", intent.FleetRollout{Waves: []intent.Wave{canary, {Percent: 40}, {Percent: 100}}}, 10,
			"p0:10, then p1:10 p2:10 p3:10, then p4:10 p5:10 p6:10 p7:10 p8:10 p9:10"},
		{"a percentage less than a pool takes none", intent.FleetRollout{Waves: []intent.Wave{{Percent: 1}, {Percent: 50}}}, 2, "p0:10, then p1:10"},
		{"a percentage counts what selectors took", intent.FleetRollout{Waves: []intent.Wave{{Selector: &intent.PoolSelector{Targets: []string{"*0"}}}, {Percent: 60}}}, 10,
			"p0:10 p2:10 p4:10 p6:10 p8:10, then p1:10, then p3:10 p5:10 p7:10 p9:10"},
		{"selectors first, and they keep theirs from a canary", intent.FleetRollout{Waves: []intent.Wave{canary, {Selector: &intent.PoolSelector{Targets: []string{"*0"}}}}}, 4,
			"p1:10, then p0:10 p2:10, then p3:10"},
		{"maxMachines cuts pools", intent.FleetRollout{MaxMachines: 4}, 2, "p0:4, then p0:8, then p0:10 p1:2, then p1:6, then p1:10"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFleet(t, Spec{FleetRollout: tc.spec}, tc.pools)
			f.commit("c1", "new")
			if got := f.story(); got != tc.want {
				t.Errorf("pools moved so: %s\nwant: %s", got, tc.want)
			}
			if r := f.record.Runs[0]; r.Ended.IsZero() {
				t.Errorf("the run has not ended: %+v", r)
			}
		})
	}
}

// A gate that passed while a share still baked is checked once more when the time is over.
func TestAGateIsAskedAfterTheBake(t *testing.T) {
	f := newFleet(t, Spec{FleetRollout: intent.FleetRollout{BakeTime: 10 * time.Minute, Waves: []intent.Wave{{Pools: 1}},
		Gates: []intent.RolloutGate{{Name: "errors", Prometheus: &intent.PrometheusGate{Provider: "prom", Query: "up"}}}}}, 2)
	var said time.Time
	f.answers = func(Ask) Answer {
		if said.IsZero() {
			return Answer{Verdict: Pass, At: f.in.Now}
		}
		return Answer{Verdict: Pass, At: said}
	}
	f.commit("c1", "new")
	turns := func(n int) (moved []string) {
		for range n {
			f.next(time.Minute)
			moved = append(moved, f.roll()...)
		}
		return moved
	}
	if moved := turns(6); !slices.Equal(moved, []string{"p0:10"}) {
		t.Fatalf("%v moved first", moved)
	}
	said = f.in.Now
	if moved, wait := turns(20), f.record.Runs[0].Wait; len(moved) > 0 || !strings.Contains(wait, "is checked once more") {
		t.Errorf("by an answer from before the end of the bake, %v moved, and it waits: %q", moved, wait)
	}
	said = time.Time{}
	if moved := turns(3); !slices.Equal(moved, []string{"p1:10"}) {
		t.Errorf("%v moved then", moved)
	}
}

func TestABadSignalStopsAllAndStays(t *testing.T) {
	spec := Spec{FleetRollout: intent.FleetRollout{
		Waves: []intent.Wave{{Name: "canary", Pools: 1}}, Gates: []intent.RolloutGate{{Name: "ready", NodesReady: &intent.NodesReadyGate{}}}, Rollback: true,
	}}
	f := newFleet(t, spec, 4)
	f.commit("c1", "bad")
	f.answers = func(Ask) Answer {
		if f.in.Pools[0].New > 0 {
			return Answer{Verdict: Fail, What: "1 of 10 nodes is not ready", At: f.in.Now}
		}
		return Answer{Verdict: Pass, At: f.in.Now}
	}
	if got := f.story(); got != "p0:10" {
		t.Fatalf("moved: %s", got)
	}
	check := func(when string) {
		t.Helper()
		for _, p := range []string{"p0", "p1", "p2", "p3"} {
			got := f.permit(p)
			if got.Share != 0 || !got.Stopped || !strings.Contains(got.Wait, "1 of 10 nodes is not ready") {
				t.Errorf("%s: %+v", when, got)
			}
		}
	}
	check("at once")
	if back := f.permit("p0").Back; back == nil || back.Hash != "old" {
		t.Errorf("p0 goes back to %+v", back)
	}
	f.answers = passes(f)
	f.commit("c2", "bad") // another commit that changes nothing of the pools
	f.story()
	check("after an unrelated commit")
	f.commit("c3", "old")
	f.in.Pools[0].New, f.in.Pools[0].Pending = 0, true
	for i := range f.in.Pools[1:] {
		f.in.Pools[i+1].New, f.in.Pools[i+1].Pending = 10, false
	}
	if got := f.story(); got != "p0:10" {
		t.Errorf("the revert moved: %s", got)
	}
	f.commit("c4", "bad")
	f.story()
	check("after a revert of the revert")
	f.in.Specs = nil
	f.story()
	check("without the FleetRollout")
	if _, governed := NewGovernor(&f.record, nil).Of(f.in.Pools[1]); !governed {
		t.Error("without the FleetRollout its bad pools are free")
	}
	f.in.Specs = []Spec{spec}
	f.next(time.Second)
	for _, target := range []string{"t0", "t1"} {
		f.record, _ = f.record.Retry(target, nil)
	}
	if got := f.story(); got != "p0:10, then p1:10 p2:10 p3:10" {
		t.Errorf("once it is asked for again: %s", got)
	}
}

func TestWhatIsUnknownHolds(t *testing.T) {
	f := newFleet(t, Spec{FleetRollout: intent.FleetRollout{
		Waves: []intent.Wave{{Pools: 1}}, Gates: []intent.RolloutGate{{Name: "errors", Prometheus: &intent.PrometheusGate{}}}, BakeTime: 5 * time.Minute,
	}}, 2)
	f.commit("c1", "new")
	f.answers = func(Ask) Answer {
		return Answer{Verdict: Unknown, What: "prometheus.example does not answer", At: f.in.Now}
	}
	if got := f.story(); got != "" {
		t.Errorf("moved although nobody knows how things are: %s", got)
	}
	if w := f.permit("p0").Wait; !strings.Contains(w, "prometheus.example does not answer") {
		t.Errorf("p0 waits: %s", w)
	}
	ask := passes(f)
	f.answers = ask
	f.next(time.Minute)
	f.next(time.Minute)
	f.roll()
	f.answers = func(Ask) Answer { return Answer{Verdict: Unknown, What: "it is gone again", At: f.in.Now} }
	if got := f.story(); got != "" {
		t.Errorf("moved although it is not known how the canary is: %s", got)
	}
	if w := f.permit("p1").Wait; !strings.Contains(w, "it is gone again") {
		t.Errorf("p1 waits: %s", w)
	}
	f.answers = ask
	if got := f.story(); got != "p1:10" {
		t.Errorf("then: %s", got)
	}
}

// TestAGateThatFailsBeforehandBlamesNoChange is about an alarm that rings for something else.
func TestAGateThatFailsBeforehandBlamesNoChange(t *testing.T) {
	f := newFleet(t, Spec{FleetRollout: intent.FleetRollout{Gates: []intent.RolloutGate{{Name: "disk", CloudWatchAlarms: &intent.AlarmsGate{}}}}}, 1)
	f.commit("c1", "new")
	f.answers = func(Ask) Answer { return Answer{Verdict: Fail, What: "disk is in ALARM", At: f.in.Now} }
	if got := f.story(); got != "" || len(f.record.Bad) > 0 {
		t.Errorf("moved %q, bad %v", got, f.record.Bad)
	}
	f.answers = passes(f)
	if got := f.story(); got != "p0:10" {
		t.Errorf("then: %s", got)
	}
}

func TestAFailureIsWithinTheBudgetOrNot(t *testing.T) {
	for budget, want := range map[int32]bool{0: true, 1: false} {
		f := newFleet(t, Spec{FleetRollout: intent.FleetRollout{Waves: []intent.Wave{{Pools: 1}}, FailureBudget: budget}}, 3)
		f.commit("c1", "new")
		f.next(time.Minute)
		f.in.Pools[0].Failed = "no machine came"
		f.story()
		stopped := f.record.Runs[0].Stopped != nil
		if stopped != want || f.in.Pools[2].Pending != want {
			t.Errorf("budget %d: stopped %v, pools %+v", budget, stopped, f.in.Pools)
		}
	}
}

func TestWhoReportsLateIsRolledLast(t *testing.T) {
	f := newFleet(t, Spec{FleetRollout: intent.FleetRollout{Waves: []intent.Wave{{Pools: 1}}}}, 4)
	f.commit("c1", "new")
	all := f.in.Pools
	f.in.Pools = slices.DeleteFunc(slices.Clone(all), func(p Pool) bool { return p.Target == "t0" })
	f.in.Missing["t0"] = "has not been looked at"
	f.next(time.Minute)
	if p := f.permit("p1"); p.Share != 0 || !strings.Contains(p.Wait, "t0") {
		t.Errorf("before all have reported: %+v", p)
	}
	f.next(Settle)
	if p := f.permit("p1"); p.Share != 100 {
		t.Errorf("once t0 had its time: %+v", p)
	}
	f.in.Pools, f.in.Missing = all, map[string]string{}
	if got := f.story(); got != "p1:10, then p0:10 p2:10 p3:10" {
		t.Errorf("moved: %s", got)
	}
}

// TestARecordAloneAdvancesNothing is a weir that has just started: no owner has reported.
func TestARecordAloneAdvancesNothing(t *testing.T) {
	f := newFleet(t, Spec{FleetRollout: intent.FleetRollout{Waves: []intent.Wave{{Pools: 1}}}}, 2)
	f.commit("c1", "new")
	f.next(time.Minute)
	f.in.Pools, f.in.Missing = nil, map[string]string{"t0": "has not been looked at", "t1": "has not been looked at"}
	before := f.permit("p0")
	f.next(time.Hour)
	if r := f.record.Runs[0]; r.Wave != 0 || !r.Active() || !strings.Contains(r.Wait, "t0") {
		t.Errorf("the run goes on: %+v", r)
	}
	if f.permit("p0").Share != before.Share || f.permit("p1").Share != 0 {
		t.Errorf("permits: %+v", f.record.Permits)
	}
}

func TestRemovingItInTheCommitThatChangesPoolsFreesNothing(t *testing.T) {
	f := newFleet(t, Spec{FleetRollout: intent.FleetRollout{Waves: []intent.Wave{{Pools: 1}}}}, 3)
	f.in.Specs = nil
	f.commit("c1", "new")
	if got := f.story(); got != "p0:10, then p1:10 p2:10" {
		t.Errorf("moved: %s", got)
	}
	if len(f.record.Runs) > 0 || len(f.record.Permits) > 0 {
		t.Errorf("and then it is gone: %+v", f.record)
	}
}

func TestAnEditWaitsForWhatMoves(t *testing.T) {
	f := newFleet(t, Spec{FleetRollout: intent.FleetRollout{Waves: []intent.Wave{{Pools: 1}}}}, 4)
	f.commit("c1", "new")
	f.next(time.Minute)
	f.in.Pools[0].Moving = &Move{Hash: "new", Share: 100, Left: 10}
	f.in.Specs = []Spec{f.in.Specs[0]}
	f.in.Specs[0].Waves = []intent.Wave{{Pools: 2}}
	f.next(time.Minute)
	if r := f.record.Runs[0]; r.Next == nil || f.permit("p1").Share != 0 || f.permit("p0").Share != 100 {
		t.Errorf("while p0 moves: %+v", f.record)
	}
	f.in.Pools[0].Moving, f.in.Pools[0].New, f.in.Pools[0].Pending = nil, 10, false
	if got := f.story(); got != "p1:10 p2:10, then p3:10" {
		t.Errorf("then: %s", got)
	}
}

func TestAPauseHoldsUntilItIsResumed(t *testing.T) {
	f := newFleet(t, Spec{FleetRollout: intent.FleetRollout{Waves: []intent.Wave{{Pools: 1}}}}, 2)
	f.commit("c1", "new")
	f.next(time.Minute)
	f.record, _ = f.record.Pause("nodes", Decision{By: "ann", Why: "lunch", At: f.in.Now})
	if p := f.permit("p0"); p.Share != 0 || !strings.Contains(p.Wait, "paused by ann (lunch): weir rollout resume default/nodes") {
		t.Errorf("before the conductor's next turn: %+v", p)
	}
	if got := f.story(); got != "" {
		t.Errorf("moved while it is paused: %s", got)
	}
	var err error
	if f.record, err = f.record.Resume("nodes"); err != nil {
		t.Fatal(err)
	}
	if got := f.story(); got != "p0:10, then p1:10" {
		t.Errorf("then: %s", got)
	}
	if _, err := f.record.Abort("nodes", Decision{}); err == nil {
		t.Error("what has ended can be aborted")
	}
	if _, err := f.record.Pause("other", Decision{}); err == nil {
		t.Error("what is not there can be paused")
	}
}

func TestANodegroupTooLargeIsNamed(t *testing.T) {
	f := newFleet(t, Spec{FleetRollout: intent.FleetRollout{MaxMachines: 5}}, 1)
	f.in.Pools[0].Whole = true
	f.commit("c1", "new")
	if got := f.story(); got != "" || !strings.Contains(f.permit("p0").Wait, "more than maxMachines, which is 5: split it") {
		t.Errorf("moved %q: %+v", got, f.permit("p0"))
	}
}

func TestSelects(t *testing.T) {
	p := Pool{ID: ID{"prod-eu", "a/b"}, Namespace: "a", Labels: map[string]string{"tier": "web"}}
	for want, list := range map[bool][]intent.PoolSelector{
		true:  {{}, {Targets: []string{"prod-*"}}, {Targets: []string{"x", "*-eu"}, Namespaces: []string{"a"}, Labels: map[string]string{"tier": "web"}}},
		false: {{Targets: []string{"prod"}}, {Targets: []string{"prod-*"}, Namespaces: []string{"b"}}, {Labels: map[string]string{"tier": "db"}}, {Labels: map[string]string{"x": ""}}},
	} {
		for _, s := range list {
			if got := Selects(s, p); got != want {
				t.Errorf("%+v: %v", s, got)
			}
		}
	}
}
