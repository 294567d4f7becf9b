package reconciler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/step"
)

// A nodegroup whose name in Git looks like that of a replacement is its own pool's:
// another target's pool of the name before the suffix does not take it for one that
// a renamed pool has left behind, whatever the keys of the two pools are.
func TestANameLikeAReplacementIsNotTaken(t *testing.T) {
	for name, tc := range map[string]struct {
		pool   string // the MachinePool of the nodegroup web-202401
		second bool   // both pools are of one target
	}{
		"of another target":                      {pool: "cards"},
		"of another target's pool with that key": {pool: "web"},
		"of the same target":                     {pool: "cards", second: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			dated := spotPool("web-202401", "SPOT", 1)
			dated.Key.Name = tc.pool
			green := target("green", dated)
			w.settle(green)
			web := spotPool("web", "ON_DEMAND", 1)
			all := []reconciler.Desired{target("blue", web), green}
			if tc.second {
				renamed := dated
				renamed.Key.Name = "cards-2" // in the same commit
				all = []reconciler.Desired{target("green", web, renamed)}
			}
			w.srv.ResetCalls()
			for range 12 {
				w.must(reconciler.Apply, all...)
				w.clock.Advance(2 * time.Second)
			}
			if n := w.srv.CallCounts(); n["eks:DeleteNodegroup"] != 0 || n["eks:CreateNodegroup"] != 1 {
				t.Errorf("calls %v", n)
			}
			if got := strings.Join(w.nodegroups(), ", "); got != "web ON_DEMAND ACTIVE, web-202401 SPOT ACTIVE" {
				t.Errorf("nodegroups are %s", got)
			}
			w.settle(all...)
			w.srv.ResetCalls()
			w.must(reconciler.Apply, all...)
			if _, writes := w.calls(); writes != 0 {
				t.Errorf("%d writes at rest: %v", writes, w.srv.CallCounts())
			}
		})
	}
}

// When Git drops such a nodegroup it goes like any other.
func TestANameLikeAReplacementIsPruned(t *testing.T) {
	w := newWorld(t)
	dated, other := spotPool("web-202401", "SPOT", 1), spotPool("other", "SPOT", 1)
	dated.Key.Name = "cards"
	blue := target("blue", spotPool("web", "ON_DEMAND", 1))
	w.settle(blue, target("green", dated, other))
	w.settle(blue, target("green", other))
	for range 6 {
		w.clock.Advance(2 * time.Second)
		w.must(reconciler.Apply, blue, target("green", other))
	}
	if got := strings.Join(w.nodegroups(), ", "); got != "other SPOT ACTIVE, web ON_DEMAND ACTIVE" {
		t.Errorf("nodegroups are %s", got)
	}
}

// The machines of a replacement are available like any others.
func TestMachinesOfAReplacementBecomeAvailable(t *testing.T) {
	w := newWorld(t)
	old, spot := spotPool("ng", "ON_DEMAND", 2), spotPool("ng", "SPOT", 2)
	w.settle(target("blue", old))
	w.settle(target("blue", spot))
	spot.MinReadySeconds = 300
	blue := target("blue", spot)
	if s := w.must(reconciler.Apply, blue)[0].Pools[0]; s.AvailableReplicas != 0 || s.Converged {
		t.Errorf("at once: %+v", s)
	}
	for _, restarted := range []bool{false, true} {
		w.clock.Advance(10 * time.Minute)
		if restarted {
			w.restart()
		}
		if s := w.must(reconciler.Apply, blue)[0].Pools[0]; s.ReadyReplicas != 2 || s.AvailableReplicas != 2 {
			t.Errorf("restarted %v: %d ready, %d available, want 2 of each", restarted, s.ReadyReplicas, s.AvailableReplicas)
		}
	}
}

// A pool that is paused does not take the turn of those that are not.
func TestAPausedPoolTakesNoTurn(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", spotPool("a", "ON_DEMAND", 1), spotPool("b", "ON_DEMAND", 1)))
	paused := spotPool("a", "SPOT", 1)
	paused.Paused = true
	blue := target("blue", paused, spotPool("b", "SPOT", 1))
	for range 12 {
		r := w.must(reconciler.Apply, blue)[0]
		if s := r.Plan.Steps[0]; s.Held != step.HeldPaused {
			t.Fatalf("the first step is %+v", s)
		}
		w.clock.Advance(2 * time.Second)
	}
	if got := strings.Join(w.nodegroups(), ", "); !strings.HasPrefix(got, "a ON_DEMAND ACTIVE, b-") || !strings.HasSuffix(got, " SPOT ACTIVE") {
		t.Errorf("nodegroups are %s", got)
	}
}

// A version that somebody adds to a launch template which pools share rolls no nodes
// of a replacement, as it rolls none of any other nodegroup.
func TestAReplacementKeepsTheVersionThatItShares(t *testing.T) {
	w := newWorld(t)
	nodes := w.sharing("one", "web", "api", "edge")
	nodes.Set.Pools[0].AllowReplace = true
	w.settle(nodes)
	nodes.Set.Pools[0].Nodegroup.CapacityType = "SPOT"
	w.settle(nodes)
	for name := range w.templates() {
		w.anotherVersion(name)
	}
	w.srv.ResetCalls()
	w.clock.Advance(2 * time.Minute)
	w.settle(nodes)
	if n := w.srv.CallCounts(); n["eks:UpdateNodegroupVersion"] != 0 || n["ec2:CreateLaunchTemplateVersion"] != 0 {
		t.Errorf("calls %v", n)
	}
}
