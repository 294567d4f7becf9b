package reconciler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/plan/model"
)

// TestARetryOutlastsWhatHoldsIt asks for a failed rollout to be tried again while
// something else holds it, which ends later.
func TestARetryOutlastsWhatHoldsIt(t *testing.T) {
	for name, gates := range map[string]model.Gates{
		"a wave": {Wave: "waits for dev"}, "a window": {Window: "opens on Monday"}, "an approval": {AsReviewed: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.settle(target("blue", groupPool("web", "m5.large", 2)))
			remove := w.srv.Faults().Launches.Add(ec2.LaunchFault{InstanceType: "m5.xlarge", Code: "InsufficientInstanceCapacity"})
			blue := target("blue", groupPool("web", "m5.xlarge", 2))
			for range 60 {
				w.must(reconciler.Apply, blue)
				w.clock.Advance(30 * time.Second)
			}
			if r := w.must(reconciler.Apply, blue)[0]; !hasCode(r, "rollout-failed") {
				t.Fatalf("diagnostics: got %v", r.Diagnostics)
			}
			remove()
			held := blue
			held.Policy.Gates = gates
			w.scope.Retry([]string{"default/web"})
			w.srv.ResetCalls()
			for range 3 {
				r := w.must(reconciler.Apply, held)[0]
				if len(r.Plan.Steps) == 0 || r.Plan.Runnable() > 0 {
					t.Fatalf("held: %+v, %v", r.Plan.Steps, r.Diagnostics)
				}
			}
			if n := w.srv.CallCounts()["autoscaling:StartInstanceRefresh"]; n > 0 {
				t.Fatalf("%d refreshes were started", n)
			}
			w.settle(blue)
			if n := w.srv.CallCounts()["autoscaling:StartInstanceRefresh"]; n != 1 {
				t.Errorf("%d refreshes were started, want 1", n)
			}
		})
	}
}

// TestWhatAScopeWasToldIsKnownSince has the time at which an answer became another one
// outlast passes, and reports tell it.
func TestWhatAScopeWasToldIsKnownSince(t *testing.T) {
	w := newWorld(t)
	now := time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)
	w.scope.Now = func() time.Time { now = now.Add(time.Second); return now }
	blue, green := target("blue", groupPool("web", "m5.large", 1), nodegroupPool("ng", 1)), target("green", groupPool("api", "m5.large", 1))
	first := w.must(reconciler.PlanOnly, blue, green)
	levels := first[0].Levels
	kinds := ""
	for _, l := range levels {
		kinds += l.ID[:min(4, len(l.ID))] + " "
		if l.Since.IsZero() {
			t.Errorf("%+v is known since never", l)
		}
	}
	if !strings.Contains(kinds, "ami-") || !strings.Contains(kinds, "Kube") {
		t.Fatalf("levels: %+v", levels)
	}
	again := w.must(reconciler.PlanOnly, blue, green)
	if a, b := again[0].Levels, again[1].Levels; len(a) != len(levels) || a[0] != levels[0] || len(b) != 1 {
		t.Errorf("in the next pass: %+v and %+v, before %+v", a, b, levels)
	}
}
