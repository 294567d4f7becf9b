package rollout

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/render/intent"
)

// Each of these tries to make a promise false that a run makes.

// bare is how a pool is reported that could not be planned.
func bare(p Pool) Pool {
	return Pool{ID: p.ID, Namespace: p.Namespace, Cluster: p.Cluster, Labels: p.Labels, Revision: p.Revision}
}

// canaryFirst is a FleetRollout whose canary is in the target t1.
var canaryFirst = intent.FleetRollout{Waves: []intent.Wave{{Name: "canary", Selector: &intent.PoolSelector{Targets: []string{"t1"}}}}}

// TestWavesBeginWithTheCanaryWhoeverSeesTheChangeFirst is about an image that moves without a
// commit, which owners see when their answers expire: none of them is known to be the first
// before all have asked anew.
func TestWavesBeginWithTheCanaryWhoeverSeesTheChangeFirst(t *testing.T) {
	f := newFleet(t, Spec{FleetRollout: canaryFirst}, 4)
	sees := func(target string) {
		for i := range f.in.Pools {
			if p := &f.in.Pools[i]; p.Target == target {
				p.Hash, p.New, p.Pending = "image", 0, true
			}
		}
	}
	f.next(time.Minute)
	before := f.in.Now
	sees("t0")
	f.nextKnown(time.Minute, map[string]time.Time{"t0": before, "t1": before})
	f.nextKnown(time.Second, map[string]time.Time{"t0": f.in.Now, "t1": before})
	if moved := f.roll(); len(moved) > 0 {
		t.Fatalf("%v moved before the canary's owner has asked", moved)
	}
	if w := f.permit("p0").Wait; !strings.Contains(w, "until t1 reported") {
		t.Errorf("p0 waits: %s", w)
	}
	sees("t1")
	if got := f.story(); got != "p1:10 p3:10, then p0:10 p2:10" {
		t.Errorf("moved: %s", got)
	}
}

// TestARetryBeginsWithTheCanary: what was reported before it says still that the canary has
// failed.
func TestARetryBeginsWithTheCanary(t *testing.T) {
	f := newFleet(t, Spec{FleetRollout: canaryFirst}, 4)
	f.commit("c1", "new")
	f.next(time.Minute)
	f.next(time.Minute)
	for i := range f.in.Pools {
		if p := &f.in.Pools[i]; p.Target == "t1" {
			p.Failed = "no machine came"
		}
	}
	f.next(time.Minute)
	if f.record.Runs[0].Stopped == nil {
		t.Fatalf("not stopped: %+v", f.record.Runs[0])
	}
	before := f.in.Now
	for _, target := range []string{"t0", "t1"} {
		f.record, _ = f.record.Retry(target, nil)
	}
	f.nextKnown(time.Second, map[string]time.Time{"t0": before, "t1": before})
	f.nextKnown(time.Second, map[string]time.Time{"t0": f.in.Now, "t1": before})
	if moved := f.roll(); len(moved) > 0 {
		t.Fatalf("%v moved by a report of before", moved)
	}
	for i := range f.in.Pools {
		f.in.Pools[i].Failed = ""
	}
	if got := f.story(); got != "p1:10 p3:10, then p0:10 p2:10" {
		t.Errorf("moved: %s", got)
	}
}

// TestAHashThatWasBadBindsNoOther: without its FleetRollout, a pool of which something was
// bad once rolls to anything else.
func TestAHashThatWasBadBindsNoOther(t *testing.T) {
	f := newFleet(t, Spec{FleetRollout: intent.FleetRollout{}}, 1)
	f.commit("c1", "bad")
	f.next(time.Minute)
	f.next(time.Second)
	f.in.Pools[0].Failed = "no machine came"
	f.next(time.Minute)
	f.in.Specs = nil
	f.commit("c2", "old")
	f.in.Pools[0].New, f.in.Pools[0].Pending = 10, false
	f.next(time.Minute)
	f.next(time.Minute)
	f.commit("c3", "good")
	if got := f.story(); got != "p0:10" {
		t.Errorf("moved: %q, %+v", got, f.record)
	}
	f.commit("c4", "bad")
	if got := f.story(); got != "" {
		t.Errorf("what is bad moved: %s", got)
	}
}

// TestAPoolThatCannotBePlannedKeepsItsPlace: AWS does not answer a lookup for a while.
func TestAPoolThatCannotBePlannedKeepsItsPlace(t *testing.T) {
	f := newFleet(t, Spec{FleetRollout: intent.FleetRollout{MaxMachines: 10}}, 3)
	f.commit("c1", "new")
	f.next(time.Minute)
	f.next(time.Second)
	f.in.Pools[0].Moving = &Move{ID: "r", Hash: "new", Share: 100, Left: 10}
	f.next(time.Second)
	had, whole := f.permit("p0"), f.in.Pools[0]
	f.in.Pools[0] = bare(whole)
	f.next(time.Second)
	f.next(time.Second)
	if p := f.permit("p0"); p.Hash != had.Hash || p.Share != had.Share {
		t.Errorf("its permit was %+v and is %+v", had, p)
	}
	if f.permit("p1").Share > 0 || f.permit("p2").Share > 0 {
		t.Errorf("others take its place: %+v", f.record.Permits)
	}
	f.in.Specs = []Spec{f.in.Specs[0]}
	f.in.Specs[0].MaxMachines = 20
	f.next(time.Second)
	if r := f.record.Runs[0]; r.Next == nil {
		t.Errorf("an edit takes hold though it may move: %+v", r)
	}
}

// TestRemovingItFreesNoPoolThatCannotBePlannedYet is a removal in the commit that changes a
// pool, whose image AWS does not name at first.
func TestRemovingItFreesNoPoolThatCannotBePlannedYet(t *testing.T) {
	f := newFleet(t, Spec{FleetRollout: intent.FleetRollout{Waves: []intent.Wave{{Pools: 1}}}}, 2)
	f.in.Specs = nil
	all := slices.Clone(f.in.Pools)
	f.in.Revision = "c1"
	for i := range f.in.Pools {
		f.in.Pools[i] = bare(all[i])
		f.in.Pools[i].Revision = "c1"
	}
	f.next(time.Minute)
	f.next(time.Minute)
	f.in.Pools = all
	f.commit("c1", "new")
	if got := f.story(); got != "p0:10, then p1:10" {
		t.Errorf("moved: %s", got)
	}
}

// TestMachinesThatAreNotAtWorkAreNotDone: AWS says that a rollout succeeded, and the nodes of
// its machines are not ready.
func TestMachinesThatAreNotAtWorkAreNotDone(t *testing.T) {
	f := newFleet(t, Spec{FleetRollout: intent.FleetRollout{Waves: []intent.Wave{{Pools: 1}}}}, 2)
	for i := range f.in.Pools {
		f.in.Pools[i].Facts = Facts{NodesFrom: FromNodes, Ready: 10}
	}
	f.commit("c1", "new")
	f.in.Pools[0].Facts.Ready = 9
	if got := f.story(); got != "p0:10" {
		t.Errorf("moved: %s", got)
	}
	f.in.Pools[0].Facts.Ready = 10
	if got := f.story(); got != "p1:10" {
		t.Errorf("then: %s", got)
	}
}

// TestWhatGatesAskAboutIsWatched and nothing else.
func TestWhatGatesAskAboutIsWatched(t *testing.T) {
	f := newFleet(t, Spec{FleetRollout: intent.FleetRollout{
		Waves: []intent.Wave{{Pools: 1}}, BakeTime: time.Hour, Gates: []intent.RolloutGate{{Name: "alarms", CloudWatchAlarms: &intent.AlarmsGate{Alarms: []string{"a"}}}},
	}}, 2)
	watched := func(want ...string) {
		t.Helper()
		var got []string
		for _, p := range f.record.Permits {
			if p.Watched != (len(p.Alarms) == 1) {
				t.Errorf("alarms of %s: %v", p.ID, p.Alarms)
			}
			if p.Watched {
				got = append(got, strings.TrimPrefix(p.Pool, "default/"))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("watched: %v, want %v", got, want)
		}
	}
	watched()
	f.answers = passes(f)
	f.commit("c1", "new")
	f.next(time.Minute)
	f.next(time.Minute)
	f.next(time.Minute)
	watched("p0")
	f.roll()
	for range 3 {
		f.next(40 * time.Minute)
	}
	watched("p0", "p1")
	f.roll()
	for range 3 {
		f.next(2 * time.Hour)
	}
	watched()
}

// TestFleetRolloutsThatWaitForEachOtherSaySo: two, and three in a ring; what merely waits for
// another that goes on does not.
func TestFleetRolloutsThatWaitForEachOtherSaySo(t *testing.T) {
	order := func(name string, targets ...string) Spec {
		s := Spec{Target: "t0"}
		s.Key = intent.Key{Namespace: "default", Name: name}
		s.Selector.Targets = targets
		for _, target := range targets {
			s.Waves = append(s.Waves, intent.Wave{Name: "of " + target, Selector: &intent.PoolSelector{Targets: []string{target}}})
		}
		return s
	}
	for name, c := range map[string]struct {
		specs []Spec
		says  map[string]string
	}{
		"two": {[]Spec{order("a", "t0", "t1"), order("b", "t1", "t0")}, map[string]string{
			"default/a": "of t0: t0 default/p0 waits forever: default/b reaches it in of t0, after pools that wait for default/a",
			"default/b": "of t1: t1 default/p1 waits forever: default/a reaches it in of t1, after pools that wait for default/b",
		}},
		"three": {[]Spec{order("a", "t0", "t1"), order("b", "t1", "t2"), order("c", "t2", "t0")}, map[string]string{
			"default/a": "default/c reaches it in of t0", "default/b": "default/a reaches it in of t1", "default/c": "default/b reaches it in of t2",
		}},
		"one after another": {[]Spec{order("a", "t0", "t1"), order("b", "t0", "t1")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, c.specs[0], 3)
			f.in.Pools[2].Target = "t2"
			f.in.Specs = c.specs
			f.next(time.Minute)
			f.commit("c1", "new")
			moved := f.story()
			if (moved == "") != (c.says != nil) {
				t.Errorf("moved: %s", moved)
			}
			for _, r := range f.record.Runs {
				if want := c.says[r.Name]; !strings.Contains(r.Wait, want) || want == "" && strings.Contains(r.Wait, "for ever") {
					t.Errorf("%s: %q, want %q", r.Name, r.Wait, want)
				}
			}
		})
	}
}

// TestARecordIsTheSameWhileNothingIsNews: several daemons read a record as it is written, and
// the one that conducts looks again when they do. A record that is another one by the time at
// which somebody looked would be written as fast as an engine takes it.
func TestARecordIsTheSameWhileNothingIsNews(t *testing.T) {
	f := newFleet(t, Spec{FleetRollout: intent.FleetRollout{
		Waves: []intent.Wave{{Pools: 1}}, Gates: []intent.RolloutGate{{Name: "ready", NodesReady: &intent.NodesReadyGate{}}, {Name: "errors", Prometheus: &intent.PrometheusGate{}}},
	}}, 2)
	f.commit("c1", "new")
	read := time.Now() // of this machine, as it is where an owner has not written it yet
	f.answers = func(a Ask) Answer {
		if a.Gate.NodesReady != nil {
			return Answer{Verdict: Pass, What: "all are", At: read}
		}
		return Answer{Verdict: Unknown, What: "nobody answers", At: f.in.Now}
	}
	f.in.Now = read
	f.next(0)
	f.next(time.Second)
	for range 5 {
		text, err := json.Marshal(f.record)
		var again Record
		if err == nil {
			err = json.Unmarshal(text, &again)
		}
		if err != nil {
			t.Fatal(err)
		}
		f.record = again
		if f.next(time.Second); f.record.Seq != again.Seq {
			t.Fatalf("it is written again: %+v after %+v", f.record.Runs[0].Gates, again.Runs[0].Gates)
		}
	}
}

// TestAPoolThatCannotBePlannedSaysWhy: a newer commit names an image that AWS lacks.
func TestAPoolThatCannotBePlannedSaysWhy(t *testing.T) {
	f := newFleet(t, Spec{FleetRollout: canaryFirst}, 4)
	f.commit("c1", "new")
	f.next(time.Minute)
	f.next(time.Minute)
	f.in.Revision = "c2"
	for i, p := range f.in.Pools {
		f.in.Pools[i] = bare(p)
		f.in.Pools[i].Revision, f.in.Pools[i].Fault = "c2", "there is no image ami-1"
	}
	f.next(time.Minute)
	const want = "canary: t1 default/p1 cannot be planned at c2: there is no image ami-1"
	if w := f.record.Runs[0].Wait; w != want {
		t.Errorf("it waits: %s", w)
	}
}

// A gate is told from an earlier wave, and from a pause: each is ended by somebody else.
func TestAPermitTellsWhatItWaitsFor(t *testing.T) {
	f := newFleet(t, Spec{FleetRollout: intent.FleetRollout{
		Waves: []intent.Wave{{Pools: 1, Shares: []int32{50, 100}}, {Percent: 100}}, Gates: []intent.RolloutGate{{Name: "errors", Prometheus: &intent.PrometheusGate{Provider: "prom", Query: "up"}}},
	}}, 4)
	verdict := Pass
	f.answers = func(Ask) Answer { return Answer{Verdict: verdict, What: "what it says", At: f.in.Now} }
	waiting := func(when string, gate bool, ends string) {
		t.Helper()
		n := 0
		for _, p := range f.record.Permits {
			if p.Share == 100 || p.Stopped {
				continue
			}
			n++
			later := strings.Contains(p.Wait, "waits for wave") // that one waits for a wave, whatever that waits for
			if p.Gate != (gate && !later) || p.Ends != ends || gate && !strings.Contains(p.Wait, "gate errors") {
				t.Errorf("%s: %s is held by a gate: %v, until %q: %s", when, p.ID, p.Gate, p.Ends, p.Wait)
			}
		}
		if at := slices.ContainsFunc(f.record.Permits, func(p Permit) bool { return p.Gate }); n == 0 || at != gate {
			t.Errorf("%s: %d wait, for a gate: %v", when, n, at)
		}
	}
	f.commit("c1", "new")
	f.next(time.Second)
	for range 3 {
		f.next(time.Second)
	}
	waiting("while the first pool rolls", false, "")
	f.roll()
	verdict = Unknown
	for range 3 {
		f.next(time.Second)
	}
	waiting("once its gate is unknown", true, "")
	paused, err := f.record.Pause("default/nodes", Decision{By: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	f.record = paused
	f.next(time.Second)
	waiting("paused", false, "weir rollout resume default/nodes")
	if f.record, err = f.record.Resume("default/nodes"); err != nil {
		t.Fatal(err)
	}
	f.next(time.Second)
	waiting("and on", true, "")
	aborted, err := f.record.Abort("default/nodes", Decision{By: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range aborted.Permits {
		if p.Gate || p.Stopped && p.Ends != "a commit that changes what its machines are, or weir reconcile "+p.Target+" --retry" {
			t.Errorf("aborted: %+v", p)
		}
	}
}
