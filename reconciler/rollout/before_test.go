package rollout

import (
	"strings"
	"testing"

	"github.com/weir-gitops/weir/render/intent"
)

// What was found bad is nothing to go back to, whatever machines run.
func TestNothingGoesBackToWhatWasFoundBad(t *testing.T) {
	a, b, c := Version{Hash: "a", Pin: "ami-a"}, Version{Hash: "b", Pin: "ami-b"}, Version{Hash: "c", Pin: "ami-c"}
	plain := func(v Version) *Version { v.Pin = ""; return &v }
	for name, tt := range map[string]struct {
		wants string
		ran   []Version
		bad   map[string]*Version // what there was before what was found bad
		want  string
	}{
		"nothing is known":               {"d", nil, nil, "none"},
		"most run it":                    {"d", []Version{b, a}, nil, "b ami-b"},
		"the first is bad":               {"d", []Version{b, a}, map[string]*Version{"b": &a}, "a ami-a"},
		"two are bad":                    {"d", []Version{c, b, a}, map[string]*Version{"b": &a, "c": &b}, "a ami-a"},
		"all are bad":                    {"d", []Version{b}, map[string]*Version{"b": &a}, "a ami-a"},
		"and what was before is as well": {"d", []Version{c}, map[string]*Version{"c": &b, "b": &a}, "a ami-a"},
		"nobody knows what was before":   {"d", []Version{b}, map[string]*Version{"b": nil}, "none"},
		"what was before is wanted":      {"a", []Version{b}, map[string]*Version{"b": &a}, "none"},
		"a commit lies between":          {"d", []Version{*plain(b)}, map[string]*Version{"b": &a}, "a "},
		"a commit lay between":           {"d", []Version{b}, map[string]*Version{"b": plain(a)}, "a "},
		"each leads to the other":        {"d", []Version{b}, map[string]*Version{"b": &c, "c": &b}, "none"},
		"of which weir knows no content": {"d", []Version{{Number: 9}, a}, map[string]*Version{"b": &a}, " "},
	} {
		t.Run(name, func(t *testing.T) {
			p := Pool{ID: ID{"t0", "default/p0"}, Hash: tt.wants}
			if len(tt.ran) > 0 {
				p.Earlier, p.Others = &tt.ran[0], tt.ran[1:]
			}
			n := &next{}
			for hash, before := range tt.bad {
				n.out.Record.Bad = append(n.out.Record.Bad, Bad{ID: p.ID, Hash: hash, Earlier: before}, Bad{ID: ID{"t1", "default/p0"}, Hash: "a"})
			}
			got := "none"
			if v := n.before(p); v != nil {
				got = v.Hash + " " + v.Pin
			}
			if got != tt.want {
				t.Errorf("it goes back to %q and not %q", got, tt.want)
			}
		})
	}
}

// What an earlier change still moved when a run began counts for pools that were allowed
// nothing yet; later it is what they go back from.
func TestWhatAPoolGoesBackToIsKnownOnceItMoves(t *testing.T) {
	f := newFleet(t, Spec{FleetRollout: intent.FleetRollout{Rollback: true, Waves: []intent.Wave{{Name: "one", Pools: 1, Shares: []int32{50, 100}}, {Name: "rest"}}}}, 2)
	f.commit("c1", "bad")
	says := func(hash string) {
		for i := range f.in.Pools {
			f.in.Pools[i].Earlier = &Version{Template: "lt", Hash: hash}
		}
	}
	members := func() string {
		var out []string
		for _, m := range f.record.Runs[0].Members {
			out = append(out, m.Earlier.Hash)
		}
		return strings.Join(out, " ")
	}
	for i := range f.in.Pools { // the one before is not over: EKS, or AWS, has a word to say
		f.in.Pools[i].Moving = &Move{ID: "r", Hash: "good", Share: 100, Left: 1}
	}
	f.next(0)
	if got := members(); got != "old old" {
		t.Fatalf("it begins with %s", got)
	}
	says("good")
	f.next(0)
	if got := members(); got != "good good" {
		t.Errorf("before anything moves: %s", got)
	}
	for i := range f.in.Pools {
		f.in.Pools[i].Moving = nil
	}
	f.next(0)
	f.roll()
	says("another")
	f.next(0)
	if got := members(); got != "good another" && got != "another good" {
		t.Errorf("once one moves: %s", got)
	}
	record, err := f.record.Abort("default/nodes", Decision{By: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	f.record = record
	says("later")
	f.next(0)
	backs := map[string]bool{}
	for _, p := range f.record.Permits {
		backs[p.Back.Hash] = true
	}
	if !backs["good"] || !backs["another"] || len(backs) != 2 {
		t.Errorf("it goes back to %v", backs)
	}
}

// What an earlier change still moved when a run began takes a place as long as it moves, and
// no longer.
func TestWhatMovedWhenARunBeganMayBeRolled(t *testing.T) {
	for name, whole := range map[string]bool{"group": false, "nodegroup": true} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, Spec{FleetRollout: intent.FleetRollout{MaxMachines: 10, Waves: []intent.Wave{{Name: "all", Percent: 100}}}}, 2)
			f.commit("c1", "new")
			for i := range f.in.Pools {
				f.in.Pools[i].Whole = whole
			}
			f.in.Pools[0].Moving = &Move{ID: "r", Hash: "between", Share: 100, Left: 10}
			if got := f.story(); got != "" {
				t.Fatalf("beyond maxMachines: %s", got)
			}
			f.in.Missing["t0"] = "is silent" // and may still move
			f.in.Pools[0].Moving = nil
			if got := f.story(); got != "" {
				t.Fatalf("while nobody knows: %s", got)
			}
			delete(f.in.Missing, "t0")
			if got := f.story(); got != "p0:10, then p1:10" {
				t.Errorf("once it has ended: %q", got)
			}
		})
	}
}
