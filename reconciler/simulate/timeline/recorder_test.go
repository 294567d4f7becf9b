package timeline

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// rolled is a pool of ten machines that goes from version 1 to 2, two at a time.
func rolled(r *Recorder, name string, from time.Duration) {
	at := noon.Add(from)
	see := func(old, is, starting, ending int32, moves, done bool) {
		s := Seen{Name: name, Desired: 10, Versions: map[string]int32{}, Starting: starting, Ending: ending, Moves: moves, Converged: done}
		if old > 0 {
			s.Versions["1"] = old
		}
		if is > 0 {
			s.Versions["2"] = is
		}
		r.Saw(at, "prod", []Seen{s}, done)
	}
	see(10, 0, 0, 0, false, true)
	for n := int32(0); n < 10; n += 2 {
		at = at.Add(time.Minute)
		see(10-n, n, 2, 0, true, false)
		at = at.Add(time.Minute)
		see(8-n, n+2, 0, 2, true, false)
	}
	at = at.Add(time.Minute)
	see(0, 10, 0, 0, false, true)
}

func TestAPoolThatRolls(t *testing.T) {
	r := New(noon)
	r.Target("prod", "123456789012", "eu-west-1")
	rolled(r, "default/web", 0)
	got := r.Finish("")
	if got.Outcome != Converged || got.End != 660 || got.MostAbove != 2 || got.AboveAt != 60 || got.Changed != 1 || got.Targets[0].Ends != 660 || got.Pools[0].Begins != 60 || got.Pools[0].Version != "2" {
		text, _ := json.MarshalIndent(got, "", " ")
		t.Errorf("%s", text)
	}
	if last := got.Points[len(got.Points)-1]; last.New != 10 || last.Old != 0 {
		t.Errorf("%+v", last)
	}
}

func TestHoldsEndAndStay(t *testing.T) {
	r := New(noon)
	r.Target("prod", "", "eu-west-1")
	r.Holds(noon, "prod", []Held{{Hold: "window", Pools: 2}, {Hold: "approval", Pools: 1, Person: true}})
	r.Holds(noon.Add(time.Hour), "prod", []Held{{Hold: "approval", Pools: 3, Person: true}})
	got := r.Finish("")
	if len(got.Waiting) != 2 || got.Waiting[0].Until != 3600 || got.Waiting[1].Until != 0 || got.Waiting[1].Pools != 3 || got.Outcome != Waits {
		t.Errorf("%+v", got.Waiting)
	}
}

// What is kept is bounded, in order, and loses neither the end nor the highest point.
func TestBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := New(noon)
		r.Target("prod", "", "eu-west-1")
		at, most, sum := noon, int32(0), int32(0)
		n := rapid.IntRange(1, 2000).Draw(t, "points")
		for i := range n {
			at = at.Add(time.Duration(rapid.IntRange(1, 5000).Draw(t, "seconds")) * time.Second)
			starting := rapid.Int32Range(0, 50).Draw(t, "starting")
			if i == 0 {
				starting = 0
			}
			sum = starting
			most = max(most, starting)
			r.Saw(at, "prod", []Seen{{Name: "default/web", Desired: 10, Versions: map[string]int32{"1": 10}, Starting: starting, Moves: true}}, false)
		}
		got := r.Finish("")
		if len(got.Points) > mostPoints || len(got.Pools[0].Points) > mostPoolPoints || len(got.Milestones) > mostMilestones {
			t.Fatalf("%d points, %d of the pool", len(got.Points), len(got.Pools[0].Points))
		}
		seen := int32(0)
		for i, p := range got.Points {
			seen = max(seen, p.Starting)
			if i > 0 && p.At < got.Points[i-1].At {
				t.Fatal("points are not in order")
			}
		}
		if last := got.Points[len(got.Points)-1]; last.Starting != sum || seen != most || got.MostAbove != most {
			t.Fatalf("last %d, want %d; most %d, %d, want %d", last.Starting, sum, seen, got.MostAbove, most)
		}
	})
}

// A brief is small however large the fleet is, says as much in sum, and does not depend on
// when it was made.
func TestABriefIsBounded(t *testing.T) {
	of := func(began time.Duration) (whole, brief *Timeline) {
		r := New(noon.Add(began))
		for i := range 300 {
			name := fmt.Sprintf("target-%03d", i)
			r.Target(name, "123456789012", "eu-west-1")
			for minute := range 30 {
				r.Saw(noon.Add(began+time.Duration(minute)*time.Minute), name, []Seen{{Name: "default/" + name, Desired: 10, Versions: map[string]int32{"1": int32(minute)}, Moves: minute > 0}}, false)
			}
			r.Holds(noon.Add(began), name, []Held{{Hold: "approval", Why: "somebody has to", Pools: 1, Person: true}})
			r.Called(Call{Account: name, Region: "eu-west-1", Bucket: "autoscaling:all", Write: i%2 == 0, Throttled: i%3 == 0, Times: 2, Left: 3})
		}
		whole = r.Finish("")
		return whole, whole.Brief()
	}
	whole, brief := of(0)
	_, later := of(17 * time.Hour)
	text, err := json.Marshal(brief)
	if err != nil || len(text) > 40<<10 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if again, _ := json.Marshal(later); string(again) != string(text) {
		t.Errorf("made later it differs: %s", again)
	}
	calls := func(t *Timeline) (sum Bucket) {
		for _, c := range t.Calls {
			sum.Calls, sum.Writes, sum.Throttled = sum.Calls+c.Calls, sum.Writes+c.Writes, sum.Throttled+c.Throttled
		}
		return sum
	}
	if calls(whole) != calls(brief) {
		t.Errorf("calls: %+v, want %+v", calls(brief), calls(whole))
	}
	if all := len(brief.Milestones) + brief.MilestonesLeft; all != len(whole.Milestones)+whole.MilestonesLeft {
		t.Errorf("%d milestones, want %d", all, len(whole.Milestones)+whole.MilestonesLeft)
	}
	if len(whole.Pools) != 300 || len(whole.Pools[0].Points) == 0 {
		t.Error("the whole was changed")
	}
}
