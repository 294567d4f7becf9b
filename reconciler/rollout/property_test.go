package rollout

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/render/intent"
	"pgregory.net/rapid"
)

// world is a fleet of pools with owners that heed permits, as AWS and weir's planner do.
type world struct {
	t       *rapid.T
	now     time.Time
	rev     int
	specs   []Spec
	pools   []*machine
	answers map[string]Answer
	silent  map[string]bool
	record  Record
	broken  map[string]bool // hashes whose machines fail
	asks    []Ask
	max     int32 // the least of maxMachines since something moved
}

// machine is a pool as it is in AWS.
type machine struct {
	Pool
	old int32 // machines of other hashes
}

func (w *world) see() []Pool {
	var out []Pool
	for _, m := range w.pools {
		if w.silent[m.Target] {
			continue
		}
		p := m.Pool
		p.Pending = m.old > 0
		p.Revision = fmt.Sprint(w.rev)
		out = append(out, p)
	}
	return out
}

func (w *world) input() Input {
	in := Input{Revision: fmt.Sprint(w.rev), Specs: w.specs, Pools: w.see(), Missing: map[string]string{}, Answers: w.answers, Fresh: map[string]time.Time{"t0": w.now, "t1": w.now, "t2": w.now}, Now: w.now}
	for target := range w.silent {
		in.Missing[target] = "says nothing"
	}
	return in
}

// step is one turn of the conductor, sometimes of another one that has the record alone.
func (w *world) step() {
	in := w.input()
	out := Next(w.record, in)
	data, err := json.Marshal(out.Record)
	if err != nil {
		w.t.Fatal(err)
	}
	var again Record
	if err := json.Unmarshal(data, &again); err != nil {
		w.t.Fatal(err)
	}
	if !reflect.DeepEqual(again, out.Record) {
		w.t.Fatalf("the record is another one once it was written:\n%s", data)
	}
	if same := Next(again, in); !reflect.DeepEqual(same.Record, again) {
		one, _ := json.MarshalIndent(again, "", " ")
		two, _ := json.MarshalIndent(same.Record, "", " ")
		w.t.Fatalf("the same input makes another record:\n%s", cmp.Diff(string(one), string(two)))
	}
	w.record, w.asks = again, out.Asks
}

// heed lets a pool's owner do what its permit says.
func (w *world) heed(m *machine) {
	permit, governed := w.record.PermitOf(m.ID)
	if !governed {
		w.t.Fatalf("%s is governed and has no permit", m.ID)
	}
	if w.record.BadOf(m.ID, m.Hash) != nil && permit.Share > 0 && permit.Hash == m.Hash {
		w.t.Fatalf("%s may roll to %s, which is bad", m.ID, m.Hash)
	}
	if m.Moving != nil && permit.Stopped && permit.Hash == m.Moving.Hash {
		m.Moving = nil
		return
	}
	if m.Moving != nil || permit.Hash != m.Hash || permit.Share == 0 || m.old == 0 || m.Failed != "" {
		return
	}
	left := Need(m.Machines, permit.Share) - m.New
	if m.Whole && permit.Share < 100 {
		w.t.Fatalf("%s is a nodegroup and may roll to %d %%", m.ID, permit.Share)
	}
	if left <= 0 {
		return
	}
	m.Moving = &Move{ID: "r", Hash: m.Hash, Share: permit.Share, Left: left}
	w.order(m)
}

// order is the promise of waves: who begins has nobody in a wave before it that is not
// done, and all that moves is within the bound.
func (w *world) order(m *machine) {
	flight := int32(0)
	for _, o := range w.pools {
		if o.Moving != nil {
			flight += o.Moving.Left
		}
	}
	for _, r := range w.record.Runs {
		if r.Spec.MaxMachines > 0 && flight > w.max {
			w.t.Fatalf("%d machines are in flight, at most %d may be", flight, w.max)
		}
		i, is := r.member(m.ID)
		if !is {
			w.t.Fatalf("%s begins and is no member of %s", m.ID, r.Name)
		}
		if r.Paused != nil || r.Stopped != nil {
			w.t.Fatalf("%s begins while %s is paused or stopped", m.ID, r.Name)
		}
		for _, o := range w.pools {
			k, is := r.member(o.ID)
			if !is || r.Members[k].Wave >= r.Members[i].Wave || w.silent[o.Target] {
				continue
			}
			if o.Hash == r.Members[k].Hash && o.Failed == "" && (o.Moving != nil || o.old > 0) {
				w.t.Fatalf("%s of wave %d begins while %s of wave %d has %d old machines", m.ID, r.Members[i].Wave, o.ID, r.Members[k].Wave, o.old)
			}
		}
	}
}

// pass is one machine of a pool that is replaced.
func (w *world) pass(m *machine) {
	v := m.Moving
	if v == nil {
		return
	}
	if w.broken[v.Hash] {
		if v.Hash == m.Hash {
			m.Failed = "no machine becomes ready"
		}
		m.Moving = nil
		return
	}
	if v.Hash == m.Hash {
		m.New++
		m.old--
	}
	if v.Left--; v.Left <= 0 || m.old <= 0 {
		m.Moving = nil
	}
}

func (w *world) commit(pools []*machine) {
	w.rev++
	for _, m := range pools {
		m.Hash = fmt.Sprintf("h%d", w.rev)
		m.old, m.New, m.Failed = m.Machines, 0, ""
	}
}

func drawSpec(t *rapid.T, name string) Spec {
	s := Spec{Target: "t0"}
	s.Key = intent.Key{Namespace: "default", Name: name}
	for range rapid.IntRange(0, 3).Draw(t, "waves") {
		w := intent.Wave{}
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			w.Pools = int32(rapid.IntRange(1, 2).Draw(t, "pools"))
		case 1:
			w.Percent = int32(rapid.SampledFrom([]int{1, 5, 25, 50, 100}).Draw(t, "percent"))
		case 2:
			w.Selector = &intent.PoolSelector{Targets: []string{rapid.SampledFrom([]string{"t0", "t1", "t*"}).Draw(t, "targets")}}
		}
		if rapid.Bool().Draw(t, "shares") {
			w.Shares = []int32{int32(rapid.IntRange(1, 60).Draw(t, "first")), 100}
		}
		s.Waves = append(s.Waves, w)
	}
	s.MaxMachines = int32(rapid.SampledFrom([]int{0, 2, 5, 12}).Draw(t, "max"))
	s.FailureBudget = int32(rapid.IntRange(0, 1).Draw(t, "budget"))
	s.BakeTime = time.Duration(rapid.IntRange(0, 2).Draw(t, "bake")) * time.Minute
	if rapid.Bool().Draw(t, "gate") {
		s.Gates = []intent.RolloutGate{{Name: "alarm", CloudWatchAlarms: &intent.AlarmsGate{Alarms: []string{"a"}}}}
	}
	return s
}

func newWorld(t *rapid.T, specs ...Spec) *world {
	w := &world{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), specs: specs, answers: map[string]Answer{}, silent: map[string]bool{}, broken: map[string]bool{}}
	for i := range rapid.IntRange(1, 7).Draw(t, "fleet") {
		m := &machine{Pool: Pool{
			ID: ID{Target: fmt.Sprintf("t%d", i%3), Pool: fmt.Sprintf("default/p%d", i)}, Namespace: "default", Cluster: fmt.Sprintf("c%d", i%2),
			Machines: int32(rapid.IntRange(1, 6).Draw(t, "machines")), Whole: rapid.IntRange(0, 4).Draw(t, "whole") == 0, Hash: "h0",
		}}
		m.New = m.Machines
		for _, s := range specs {
			if m.Whole && s.MaxMachines > 0 && m.Machines > s.MaxMachines {
				m.Whole = false // it would wait for ever
			}
		}
		w.pools = append(w.pools, m)
	}
	w.bound()
	return w
}

func (w *world) bound() {
	w.max = 0
	for _, s := range w.specs {
		if s.MaxMachines > 0 && (w.max == 0 || s.MaxMachines < w.max) {
			w.max = s.MaxMachines
		}
	}
	if w.max == 0 {
		w.max = 1 << 30
	}
}

func (w *world) answer(v Verdict) {
	for _, a := range w.asks {
		w.answers[a.Key()] = Answer{Verdict: v, What: "x", At: w.now}
	}
}

// TestItOnlyEverHolds lets a fleet live through anything: whatever comes, no permit goes
// beyond a wave, a bound, a pause or a bad hash, and who goes on has all in the record.
func TestItOnlyEverHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, drawSpec(t, "one"))
		w.step()
		for range rapid.IntRange(5, 60).Draw(t, "events") {
			w.now = w.now.Add(time.Duration(rapid.IntRange(1, 90).Draw(t, "seconds")) * time.Second)
			some := rapid.SampledFrom(w.pools)
			switch rapid.IntRange(0, 11).Draw(t, "event") {
			case 0:
				w.commit(w.pools)
			case 1:
				w.commit([]*machine{some.Draw(t, "pool")})
			case 2:
				target := some.Draw(t, "pool").Target
				if w.silent[target] {
					delete(w.silent, target)
				} else {
					w.silent[target] = true
				}
			case 3:
				w.broken[some.Draw(t, "pool").Hash] = true
			case 4:
				w.answer(rapid.SampledFrom([]Verdict{Pass, Pass, Pass, Fail, Unknown}).Draw(t, "verdict"))
			case 5:
				if next, err := w.record.Pause("one", Decision{By: "ann", At: w.now}); err == nil {
					w.record = next
				}
			case 6, 7:
				if next, err := w.record.Resume("one"); err == nil {
					w.record = next
				}
			case 8:
				if next, err := w.record.Abort("one", Decision{By: "ann", At: w.now}); err == nil && rapid.Bool().Draw(t, "abort") {
					w.record = next
				}
			case 9:
				w.record, _ = w.record.Retry(some.Draw(t, "pool").Target, nil)
			default:
				w.answer(Pass)
			}
			w.step()
			for _, m := range w.pools {
				if !w.silent[m.Target] && rapid.Bool().Draw(t, "heeds") {
					w.heed(m)
				}
			}
			for _, m := range w.pools {
				if rapid.Bool().Draw(t, "moves") {
					w.pass(m)
				}
			}
		}
	})
}

// TestAGoodChangeReachesAll shows that nothing waits for ever while all goes well.
func TestAGoodChangeReachesAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, drawSpec(t, "one"))
		w.step()
		w.commit(w.pools)
		for range 600 {
			w.now = w.now.Add(30 * time.Second)
			w.answer(Pass)
			w.step()
			for _, m := range w.pools {
				w.heed(m)
				w.pass(m)
			}
			if !slices.ContainsFunc(w.pools, func(m *machine) bool { return m.old > 0 }) && !w.record.Runs[0].Active() {
				return
			}
		}
		data, _ := json.MarshalIndent(w.record, "", " ")
		t.Fatalf("it has not ended: %s", data)
	})
}

// TestOfSeveralTheStrictestHolds holds the permits of two FleetRollouts against those of
// each alone.
func TestOfSeveralTheStrictestHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one, two := drawSpec(t, "one"), drawSpec(t, "two")
		w := newWorld(t, one, two)
		w.step()
		w.commit(w.pools)
		w.step()
		w.answer(Pass)
		w.step()
		for _, s := range []Spec{one, two} {
			alone := Record{}
			for _, r := range w.record.Runs {
				if r.Name == s.Key.String() {
					alone.Runs = []Run{r}
				}
			}
			in := w.input()
			in.Specs = []Spec{s}
			out := Next(alone, in)
			for _, p := range w.record.Permits {
				if own, _ := out.Record.PermitOf(p.ID); p.Share > own.Share {
					t.Fatalf("%s may roll to %d %%, %s alone allows %d %%", p.ID, p.Share, s.Key, own.Share)
				}
			}
		}
	})
}
