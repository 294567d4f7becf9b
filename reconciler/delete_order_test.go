package reconciler_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/render/intent"
)

// One that is drained was within its target's limit when that began: it goes on,
// and neither it nor what is left of it stands in the way of the next.
func TestWhatGoesDoesNotCountAgain(t *testing.T) {
	for name, drain := range map[string]bool{"force": false, "drain": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			pools := make([]intent.Pool, 5) // of which one may go at a time
			for i := range pools {
				pools[i] = groupPool(fmt.Sprintf("pool-%d", i), "m5.large", 1)
				pools[i].Drain = drain
			}
			w.settle(target("blue", pools...))
			w.must(reconciler.Apply, target("blue", pools[1:]...))
			// The first is on its way, and stays so: the clock stands still.
			if r := w.must(reconciler.Apply, target("blue", pools[2:]...))[0]; hasCode(r, "prune-refused") {
				t.Errorf("the second is refused: %v", r.Diagnostics)
			}
			if r := w.must(reconciler.PlanOnly, target("blue", pools[4:]...))[0]; !hasCode(r, "prune-refused") {
				t.Errorf("two more at once are not refused: %v", r.Diagnostics)
			}
			w.settle(target("blue", pools[2:]...))
			if d := cmp.Diff([]string{"group pool-2 of 1", "group pool-3 of 1", "group pool-4 of 1", "template pool-2", "template pool-3", "template pool-4"}, w.held()); d != "" {
				t.Errorf("left (-want +got):\n%s", d)
			}
		})
	}
}

// A resource that is marked to stay does so although its manifest is gone, whatever the
// process remembers and whoever allows what.
func TestAPoolThatIsNotPrunedStaysWithoutItsManifest(t *testing.T) {
	w := newWorld(t)
	web, old, ng := groupPool("web", "m5.large", 1), groupPool("old", "m5.large", 1), nodegroupPool("ng", 1)
	old.PruneDisabled, ng.PruneDisabled = true, true
	w.settle(target("blue", web, old, ng))
	blue := target("blue", web)
	blue.Policy.Prune.Count = 10
	blue.Policy.Prune.Allowed = map[string]bool{"default/old": true, "default/ng": true}
	w.restart()
	w.srv.ResetCalls()
	for range 3 {
		if r := w.must(reconciler.Apply, blue)[0]; !hasCode(r, "orphan-kept") || r.Plan.Runnable() > 0 {
			t.Errorf("steps %v, diagnostics %v", r.Plan.Steps, r.Diagnostics)
		}
		w.clock.Advance(time.Minute)
	}
	if wrote := w.wrote(); len(wrote) > 0 {
		t.Errorf("weir wrote %v", wrote)
	}
	// Without the mark they go.
	old.PruneDisabled, ng.PruneDisabled = false, false
	w.settle(target("blue", web, old, ng))
	blue.Policy.Prune.Allowed = nil
	w.settle(blue)
	if d := cmp.Diff([]string{"group web of 1", "template web"}, w.held()); d != "" {
		t.Errorf("left (-want +got):\n%s", d)
	}
}

// Pools, their nodegroups and a shared declaration go in any order, one by one or
// all at once, and the end is the same.
func TestTheOrderInWhichThingsLeaveGitDoesNotMatter(t *testing.T) {
	t.Parallel()
	stays := groupPool("web", "m5.large", 1)
	all := map[string]intent.Pool{"force": groupPool("force", "m5.large", 1), "drain": drained("drain", 1), "ng": nodegroupPool("ng", 1)}
	orders := [][]string{{"force", "drain", "ng"}, {"ng", "force", "drain"}, {"drain", "ng", "force"}, {"force,drain", "ng"}, {"ng,drain", "force"}, {"force,drain,ng"}}
	for _, order := range orders {
		for _, wait := range []bool{true, false} {
			t.Run(strings.Join(order, " ")+fmt.Sprintf(" wait=%v", wait), func(t *testing.T) {
				w := newWorld(t)
				left := maps.Clone(all)
				wish := func() reconciler.Desired {
					d := target("blue", append(slices.Collect(maps.Values(left)), stays)...)
					d.Policy.Prune.Count = 10
					return d
				}
				w.settle(wish())
				for _, step := range order {
					for _, name := range strings.Split(step, ",") {
						delete(left, name)
					}
					if wait {
						w.settle(wish())
					} else {
						w.must(reconciler.Apply, wish())
						w.restart()
					}
				}
				w.settle(wish())
				if d := cmp.Diff([]string{"group web of 1", "template web"}, w.held()); d != "" {
					t.Errorf("left (-want +got):\n%s", d)
				}
			})
		}
	}
}

// Any call of a deletion fails in any way: the next passes, by a process that remembers nothing, delete the rest and touch nothing else.
func TestADeletionStoppedAtAnyCallGoesOn(t *testing.T) {
	t.Parallel()
	web := groupPool("web", "m5.large", 1)
	before := target("blue", web, groupPool("force", "m5.large", 1), drained("drain", 2), nodegroupPool("ng", 1))
	after := target("blue", web)
	after.Policy.Prune.Count = 10
	calm := newWorld(t)
	calm.settle(before)
	calm.srv.ResetCalls()
	calm.settle(after)
	calls := calm.srv.Calls()
	writes := 0
	seen := map[string]int{}
	for _, c := range calls {
		key := c.Service + ":" + c.Operation
		n := seen[key]
		seen[key]++
		if !c.Write {
			continue
		}
		writes++
		for i, name := range slices.Sorted(maps.Keys(faultKinds)) {
			f := faultKinds[name]
			if !sampled(2, n, i) {
				continue
			}
			w := newWorld(t)
			w.settle(before)
			f.Service, f.Operation, f.After = c.Service, c.Operation, n
			w.srv.Faults().Add(f)
			for range 12 {
				_, _ = w.pass(reconciler.Apply, after) // may fail: that is the point
				w.restart()
				w.clock.Advance(2 * time.Second)
			}
			if _, trouble := w.settled(after); trouble != "" {
				t.Fatalf("%s %d of %s: %s", name, n, key, trouble)
			}
			if w.srv.Faults().Pending() > 0 {
				t.Errorf("%s %d of %s never struck", name, n, key)
			}
			if d := cmp.Diff([]string{"group web of 1", "template web"}, w.held()); d != "" {
				t.Errorf("%s %d of %s: left (-want +got):\n%s", name, n, key, d)
			}
			if n := w.srv.CallCounts()["autoscaling:UpdateAutoScalingGroup"]; n > 2 {
				t.Errorf("%s %d of %s: %d updates of groups", name, n, key, n)
			}
		}
	}
	// Two groups and a nodegroup, their three templates, and one group drained.
	if writes != 7 {
		t.Errorf("%d writes, want 7: %v", writes, seen)
	}
}
