package rollout

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/render/intent"
)

// values makes fields of texts: "key=value", a key of a list with [], a tag with #.
func values(texts ...string) (out []Field) {
	for _, t := range texts {
		key, value, _ := strings.Cut(t, "=")
		out = append(out, Field{Key: key, Name: strings.TrimSuffix(key, List), Mark: value, Tag: strings.HasPrefix(key, "#")})
	}
	return out
}

// TestWhatLiftsAStop tries to have what was stopped start again by a commit that leaves it as it is.
func TestWhatLiftsAStop(t *testing.T) {
	before := []string{"type=m5", "ami=1", "#release=1", "run[]=old"}
	for name, c := range map[string]struct {
		stopped, later []string
		holds          bool
	}{
		"the same":                             {[]string{"type=m6i", "ami=1", "#release=1", "run[]=old"}, []string{"type=m6i", "ami=1", "#release=1", "run[]=old"}, true},
		"a tag":                                {[]string{"type=m6i", "ami=1", "#release=1", "run[]=old"}, []string{"type=m6i", "ami=1", "#release=2", "run[]=old"}, true},
		"a tag that the change set too":        {[]string{"type=m6i", "ami=1", "#release=2", "run[]=old"}, []string{"type=m6i", "ami=1", "#release=3", "run[]=old"}, true},
		"the tag that alone was changed":       {[]string{"type=m5", "ami=1", "#release=2", "run[]=old"}, []string{"type=m5", "ami=1", "#release=3", "run[]=old"}, false},
		"another field":                        {[]string{"type=m6i", "ami=1", "#release=1", "run[]=old"}, []string{"type=m6i", "ami=2", "#release=1", "run[]=old"}, true},
		"a field beside":                       {[]string{"type=m6i", "ami=1", "#release=1", "run[]=old"}, []string{"type=m6i", "ami=1", "key=a", "#release=1", "run[]=old"}, true},
		"the field":                            {[]string{"type=m6i", "ami=1", "#release=1", "run[]=old"}, []string{"type=m7i", "ami=1", "#release=1", "run[]=old"}, false},
		"the field back":                       {[]string{"type=m6i", "ami=1", "#release=1", "run[]=old"}, before, false},
		"half of it back":                      {[]string{"type=m6i", "ami=2", "#release=1", "run[]=old"}, []string{"type=m5", "ami=2", "#release=1", "run[]=old"}, false},
		"a command that was added":             {[]string{"type=m5", "ami=1", "#release=1", "run[]=old", "run[]=bad"}, []string{"type=m5", "ami=1", "#release=1", "run[]=new", "run[]=old", "run[]=bad"}, true},
		"a command that was replaced":          {[]string{"type=m5", "ami=1", "#release=1", "run[]=bad"}, []string{"type=m5", "ami=1", "#release=1", "run[]=x", "run[]=bad"}, true},
		"a command that was taken away":        {[]string{"type=m5", "ami=1", "#release=1"}, []string{"type=m5", "ami=1", "#release=2", "run[]=x"}, true},
		"a command that was taken away, again": {[]string{"type=m5", "ami=1", "#release=1"}, []string{"type=m5", "ami=1", "#release=2", "run[]=old"}, false},
	} {
		b := Bad{Hash: "bad", Fields: Difference(values(before...), values(c.stopped...))}
		got := Still([]Bad{b}, "later", func() []Field { return values(c.later...) })
		if (got != nil) != c.holds {
			t.Errorf("%s: holds %v, want %v: %+v", name, got != nil, c.holds, b.Fields)
		}
		if got != nil && !strings.HasSuffix(got.StillText(), "; still in it: "+b.Names()) {
			t.Errorf("%s: %s", name, got.StillText())
		}
	}
	old := Bad{Hash: "bad"}
	if Still([]Bad{old}, "later", func() []Field { return values(before...) }) != nil {
		t.Error("a record of an earlier release goes by the hash")
	}
}

// TestChangesOneAfterTheOther count from what was there before the first.
func TestChangesOneAfterTheOther(t *testing.T) {
	for name, c := range map[string]struct{ at, first, second []string }{
		"a tag after a type":      {[]string{"type=m5", "#tag=1"}, []string{"type=m6i", "#tag=1"}, []string{"type=m6i", "#tag=2"}},
		"half of it back":         {[]string{"type=m5", "ami=1"}, []string{"type=m6i", "ami=2"}, []string{"type=m6i", "ami=1"}},
		"the same field":          {[]string{"type=m5"}, []string{"type=m6i"}, []string{"type=m7i"}},
		"a command, then another": {[]string{"run[]=a"}, []string{"run[]=a", "run[]=b"}, []string{"run[]=b", "run[]=c"}},
		"a command back":          {[]string{"run[]=a"}, []string{"run[]=b"}, []string{"run[]=a", "run[]=b"}},
	} {
		got := after(Difference(values(c.at...), values(c.first...)), Difference(values(c.first...), values(c.second...)))
		b := Bad{Fields: got}
		if !b.In(values(c.second...)) || b.In(values(c.at...)) {
			t.Errorf("%s: %+v", name, got)
		}
		want := Difference(values(c.at...), values(c.second...))
		for _, f := range want {
			if !slices.ContainsFunc(got, func(g Field) bool { return g.is(f) && g.Gone == f.Gone }) {
				t.Errorf("%s: %+v is missing in %+v", name, f, got)
			}
		}
	}
}

// stopped is a fleet of which a change of the instance type was stopped in its canary.
func stopped(t *testing.T) *fleet {
	f := newFleet(t, Spec{FleetRollout: intent.FleetRollout{Waves: []intent.Wave{{Pools: 1}}}}, 3)
	f.commit("c1", "bad")
	for i := range f.in.Pools {
		f.in.Pools[i].Change = values("type=m6i")
	}
	f.next(time.Minute)
	f.next(time.Second)
	f.roll()
	f.in.Pools[0].Failed = "no machine came"
	f.next(time.Second)
	if r := f.record.Runs[0]; r.Stopped == nil || len(f.record.Bad) != 3 || len(f.record.Bad[0].Fields) != 1 {
		t.Fatalf("not stopped: %+v", f.record)
	}
	return f
}

// still has the owners of pools see that what was stopped is still in what they want.
func (f *fleet) still(hash string) {
	for i := range f.in.Pools {
		f.in.Pools[i].Still = hash
	}
}

// TestAStopOutlivesACommitThatLeavesItIn is what the conductor makes of it.
func TestAStopOutlivesACommitThatLeavesItIn(t *testing.T) {
	f := stopped(t)
	f.commit("c2", "tagged")
	f.still("bad")
	if got := f.story(); got != "" {
		t.Fatalf("moved: %s", got)
	}
	if r := f.record.Runs[0]; r.Stopped == nil || r.Revision != "c1" {
		t.Errorf("the run is another one: %+v", r)
	}
	for _, pool := range []string{"p0", "p1", "p2"} {
		p := f.permit(pool)
		if !p.Stopped || p.Hash != "tagged" || !strings.HasSuffix(p.Wait, "; released by: a commit that changes what was stopped (type), or weir reconcile "+p.Target+" --retry; still in it: type") {
			t.Errorf("%s: %+v", pool, p)
		}
	}
	f.commit("c3", "mended")
	f.still("")
	if got := f.story(); got != "p0:10, then p1:10 p2:10" {
		t.Errorf("a commit that changes it: %s", got)
	}
}

// TestARetryLiftsAStopForLaterCommitsToo: it is asked for by a person.
func TestARetryLiftsAStopForLaterCommitsToo(t *testing.T) {
	f := stopped(t)
	f.commit("c2", "tagged")
	f.still("bad")
	f.next(time.Second)
	for _, target := range []string{"t0", "t1"} {
		f.record, _ = f.record.Retry(target, nil)
	}
	if got := f.story(); got != "p0:10, then p1:10 p2:10" {
		t.Errorf("moved: %s", got)
	}
}

// TestAStopThatAnOwnerSeesLate: it planned the later commit before it read of the stop. The run that began
// allows nothing, and is no run that has ended well.
func TestAStopThatAnOwnerSeesLate(t *testing.T) {
	f := stopped(t)
	f.commit("c2", "tagged")
	f.next(time.Second)
	f.next(time.Second)
	if r := f.record.Runs[0]; r.Revision != "c2" {
		t.Fatalf("no run began: %+v", r)
	}
	for i := range f.record.Runs[0].Members { // as if nothing were granted yet
		f.record.Runs[0].Members[i].Granted = 0
	}
	f.still("bad")
	f.events = nil
	if got := f.story(); got != "" {
		t.Errorf("moved: %s", got)
	}
	for _, e := range f.events {
		if e.Kind == Finished {
			t.Errorf("it says that it ended: %s", e.Text)
		}
	}
}

// TestAChangeInTwoCommitsIsStoppedAsOne: the second comes while the canary runs the first. What is stopped then
// is both, so that the second alone, changed once more, does not free the first.
func TestAChangeInTwoCommitsIsStoppedAsOne(t *testing.T) {
	f := newFleet(t, Spec{FleetRollout: intent.FleetRollout{Waves: []intent.Wave{{Pools: 1}}}}, 3)
	f.commit("c1", "one")
	for i := range f.in.Pools {
		f.in.Pools[i].Change = values("type=m6i")
	}
	f.next(time.Minute)
	f.next(time.Second)
	f.roll() // the canary alone
	f.in.Pools[0].Facts = Facts{NodesFrom: FromNodes}
	f.commit("c2", "two")
	for i := range f.in.Pools {
		p := &f.in.Pools[i]
		if p.Change = values("type=m6i", "ami=2"); i == 0 {
			p.Change = values("ami=2") // its machines are of the first commit
		} else {
			p.Earlier = &Version{Template: "lt", Hash: "old"}
		}
	}
	f.next(time.Minute)
	f.next(time.Second)
	f.next(time.Second)
	f.in.Pools[0].Failed = "no machine came"
	f.next(time.Second)
	if len(f.record.Bad) != 3 {
		t.Fatalf("not stopped: %+v", f.record.Runs[0])
	}
	for _, b := range f.record.Bad {
		if !b.In(values("type=m6i", "ami=2")) || b.In(values("ami=2", "type=m5")) || len(b.Fields) != 2 {
			t.Errorf("%s: %+v", b.ID, b.Fields)
		}
	}
}
