package simulate_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/simulate"
	"github.com/weir-gitops/weir/reconciler/simulate/timeline"
	"github.com/weir-gitops/weir/render/intent"
)

// fleets are changes of fleets: as it is before, and as it is wanted.
var fleets = map[string]func(instanceType, revision string) []reconciler.Desired{
	"groups": func(instanceType, revision string) []reconciler.Desired {
		var pools []intent.Pool
		for i := range 6 {
			refresh := intent.Refresh{}
			if i%2 == 0 {
				refresh = intent.Refresh{MinHealthyPercentage: new(int32(100)), MaxHealthyPercentage: new(int32(125))}
			}
			pools = append(pools, group(fmt.Sprintf("web-%d", i), instanceType, int32(4+3*i), refresh))
		}
		return []reconciler.Desired{target("prod", revision, pools...)}
	},
	"a fleet rollout": func(instanceType, revision string) []reconciler.Desired {
		var pools []intent.Pool
		for i := range 7 {
			pools = append(pools, group(fmt.Sprintf("web-%d", i), instanceType, 10, intent.Refresh{MinHealthyPercentage: new(int32(90)), MaxHealthyPercentage: new(int32(120))}))
		}
		d := target("prod", revision, pools...)
		d.Set.Rollouts = []intent.FleetRollout{{
			Key: intent.Key{Namespace: "default", Name: "all"}, BakeTime: 5 * time.Minute,
			Waves: []intent.Wave{{Name: "first", Pools: 1, Shares: []int32{20, 100}}, {Name: "rest", Percent: 100}},
		}}
		return []reconciler.Desired{d}
	},
	"limited": func(instanceType, revision string) []reconciler.Desired {
		d := target("prod", revision, group("one", instanceType, 5, intent.Refresh{}), group("two", instanceType, 5, intent.Refresh{}), group("three", instanceType, 5, intent.Refresh{}))
		d.Policy.MaxRollouts = 1
		return []reconciler.Desired{d}
	},
	"nodegroups": func(instanceType, revision string) []reconciler.Desired {
		return []reconciler.Desired{target("prod", revision, nodegroup("one", instanceType, 3), nodegroup("two", instanceType, 5), group("web", instanceType, 4, intent.Refresh{}))}
	},
}

// TestASimulationIsWhatHappens simulates changes from fleets as they are observed, and then
// makes them. How long it takes may differ by a tenth where AWS takes a little more or less
// than is assumed.
func TestASimulationIsWhatHappens(t *testing.T) {
	for name, want := range fleets {
		for _, seed := range []int{0, 3} {
			t.Run(fmt.Sprintf("%s, seed %d", name, seed), func(t *testing.T) {
				f := newFleet(t, seed)
				f.apply(want("m5.large", "a")...)
				f.clock.Advance(time.Hour)
				after := want("m6i.large", "b")
				scene := f.plan(after...)
				f.srv.ResetCalls()
				got, err := simulate.Run(t.Context(), scene, simulate.Assumptions{}, nil)
				if err != nil {
					t.Fatal(err)
				}
				if n := len(f.srv.Calls()); n > 0 {
					t.Errorf("the simulation has asked AWS %d times", n)
				}
				f.apply(after...)
				defer func() {
					if t.Failed() {
						t.Logf("milestones: %+v\npools: %+v", got.Milestones, got.Pools)
					}
				}()
				t.Logf("simulated %.0f s, %d above desired, %d waves in %d passes; took %.0f s, %d, %d", got.End, got.MostAbove, len(got.Waves), got.Passes, f.took().Seconds(), f.most, f.waves)
				if off := math.Abs(got.End-f.took().Seconds()) / f.took().Seconds(); off > 0.1 {
					t.Errorf("it was said to take %.0f s, and took %s: %.0f %% off", got.End, f.took(), 100*off)
				}
				if got.Outcome != timeline.Converged || len(got.Doubts) > 0 || len(got.Waiting) > 0 && got.Waiting[0].Until == 0 {
					t.Errorf("outcome %s %s, doubts %q, waits %+v", got.Outcome, got.Why, got.Doubts, got.Waiting)
				}
				if seed == 0 && got.MostAbove != f.most || math.Abs(float64(got.MostAbove-f.most)) > 0.1*float64(f.most)+1 {
					t.Errorf("%d machines above desired were foreseen, and there were %d", got.MostAbove, f.most)
				}
				if len(got.Waves) != f.waves {
					t.Errorf("%d waves were foreseen, and there were %d: %+v", len(got.Waves), f.waves, got.Waves)
				}
			})
		}
	}
}

// TestNothingToDo: a fleet that matches Git stays so, at once.
func TestNothingToDo(t *testing.T) {
	f := newFleet(t, 0)
	want := fleets["nodegroups"]("m5.large", "a")
	f.apply(want...)
	scene := f.plan(want...)
	if !planEmpty(scene.Stages[0].Reports) {
		t.Fatal("the plan is not empty")
	}
	got, err := simulate.Run(t.Context(), scene, simulate.Assumptions{}, nil)
	if err != nil || got.End != 0 || got.Changed != 0 || got.Outcome != timeline.Converged || len(got.Doubts) > 0 || len(got.Milestones) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestASimulationIsTheSameEachTime, and holds nothing of what machines are given.
func TestASimulationIsTheSameEachTime(t *testing.T) {
	f := newFleet(t, 0)
	f.apply(fleets["groups"]("m5.large", "a")...)
	want := fleets["groups"]("m6i.large", "b")
	for i := range want[0].Set.Pools {
		want[0].Set.Pools[i].LaunchTemplate.UserData = intent.UserData{Text: "top-secret"}
	}
	scene := f.plan(want...)
	var texts []string
	for range 2 {
		got, err := simulate.Run(t.Context(), scene, simulate.Assumptions{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	if texts[0] != texts[1] {
		t.Errorf("%s\n%s", texts[0], texts[1])
	}
	if strings.Contains(texts[0], "dG9w") || strings.Contains(texts[0], "top-secret") {
		t.Error("the timeline holds user data")
	}
}

// TestApprovals: a hold that only a person ends is said, and ends the simulation.
func TestApprovals(t *testing.T) {
	f := newFleet(t, 0)
	f.apply(fleets["limited"]("m5.large", "a")...)
	want := fleets["limited"]("m6i.large", "b")
	want[0].Policy.Gates.AsReviewed = true
	scene := f.plan(want...)
	got, err := simulate.Run(t.Context(), scene, simulate.Assumptions{}, nil)
	if err != nil || got.Outcome != timeline.Waits || len(got.Waiting) != 1 || got.Waiting[0].Hold != "approval" || !got.Waiting[0].Person || got.Waiting[0].Pools != 3 || got.End != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = simulate.Run(t.Context(), scene, simulate.Assumptions{Approved: true}, nil)
	if err != nil || got.Outcome != timeline.Converged || got.Changed != 3 {
		t.Errorf("approved: %+v, %v", got, err)
	}
}

// TestALargeFleet checks that memory and time stay bounded with a large fleet.
func TestALargeFleet(t *testing.T) {
	if os.Getenv("WEIR_SOAK") == "" {
		t.Skip("it simulates 5,000 machines for minutes: make soak sets WEIR_SOAK")
	}
	f := newFleet(t, 0)
	want := func(instanceType, revision string) reconciler.Desired {
		var pools []intent.Pool
		for i := range 50 {
			pools = append(pools, group(fmt.Sprintf("web-%02d", i), instanceType, 100, intent.Refresh{MinHealthyPercentage: new(int32(90)), MaxHealthyPercentage: new(int32(110))}))
		}
		d := target("prod", revision, pools...)
		d.Set.Rollouts = []intent.FleetRollout{{
			Key: intent.Key{Namespace: "default", Name: "all"}, BakeTime: 10 * time.Minute,
			Waves: []intent.Wave{{Pools: 1}, {Percent: 5}, {Percent: 25}, {Percent: 100}},
		}}
		return d
	}
	f.apply(want("m5.large", "a"))
	scene := f.plan(want("m6i.large", "b"))
	began := time.Now()
	got, err := simulate.Run(t.Context(), scene, simulate.Assumptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(got)
	t.Logf("%d machines: %.0f s simulated in %s, %d passes, %d bytes of JSON, outcome %s %s", got.Launched, got.End, time.Since(began), got.Passes, len(text), got.Outcome, got.Why)
	if got.Launched < 5000 || len(got.Points) > 240 || len(text) > 2<<20 {
		t.Errorf("%d machines, %d points, %d bytes", got.Launched, len(got.Points), len(text))
	}
}
