package reconciler_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/rollout"
)

// TestWhatIsWatchedIsLookedAtThoughNothingMoves: the interval may be long, and a look costs
// one pass, whoever asks how often.
func TestWhatIsWatchedIsLookedAtThoughNothingMoves(t *testing.T) {
	for name, c := range map[string]struct {
		within      time.Duration
		least, most int
	}{"watched": {20 * time.Second, 30, 31}, "at rest": {0, 1, 2}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				passes := 0
				l := &reconciler.Loop{Interval: 10 * time.Minute, Desired: func(context.Context) (reconciler.Batch, error) {
					passes++
					return reconciler.Batch{Within: c.within}, nil
				}}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				if err := l.Run(ctx); err != nil || passes < c.least || passes > c.most {
					t.Errorf("%d passes, %v", passes, err)
				}
			})
		})
	}
}

// TestFailedLaunchesReachTheGate: all of them, not the newest alone, as read a short while
// ago, with few calls.
func TestFailedLaunchesReachTheGate(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", groupPool("web", "m5.large", 4)))
	web := target("blue", groupPool("web", "m5.xlarge", 4))
	p := w.governed(permitted(web, permitOf("web", "", 0)))
	if !p.Facts.ActivitiesRead.IsZero() {
		t.Errorf("nobody asks, and they were read: %+v", p.Facts)
	}
	defer w.srv.Faults().Launches.Add(ec2.LaunchFault{InstanceType: "m5.xlarge", Code: "InsufficientInstanceCapacity"})()
	permit := permitOf("web", p.Hash, 50)
	permit.Watched = true
	d := permitted(web, permit)
	d.Policy.Gates.Activities = true
	began := w.clock.Now()
	w.srv.ResetCalls()
	r := w.passesOver(d, 90)
	f := r.Governed[0].Facts
	if len(f.Activities) < 2 || f.Activities[0].Cause == "" || f.Activities[0].At.Before(began) {
		t.Errorf("failed launches: %+v", f.Activities)
	}
	if age := w.clock.Now().Sub(f.ActivitiesRead); age > 35*time.Second {
		t.Errorf("read %s ago", age)
	}
	if n := w.srv.CallCounts()["autoscaling:DescribeScalingActivities"]; n < 5 || n > 8 {
		t.Errorf("%d calls in %s", n, w.clock.Now().Sub(began))
	}
	w.restart()
	if f := w.passesOver(d, 3).Governed[0].Facts; len(f.Activities) < 2 {
		t.Errorf("another process knows of %+v", f.Activities)
	}
	if f := w.passesOver(permitted(web, permitOf("web", p.Hash, 50)), 1).Governed[0]; f.Facts.NodesFrom != rollout.FromInService {
		t.Errorf("%+v", f)
	}
}

// TestSinceWhenAMachineIsOnItsWay outlives the process, at one call for a machine.
func TestSinceWhenAMachineIsOnItsWay(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", groupPool("web", "m5.large", 4)))
	web := target("blue", groupPool("web", "m5.xlarge", 4))
	p := w.governed(permitted(web, permitOf("web", "", 0)))
	permit := permitOf("web", p.Hash, 50)
	permit.Watched = true
	d := permitted(web, permit)
	began := w.clock.Now()
	var seen []rollout.Machine
	w.srv.ResetCalls()
	for range 60 {
		r := w.must(reconciler.Apply, d)[0]
		if seen = r.Governed[0].Facts.Waiting; len(seen) > 0 && !seen[0].Since.IsZero() {
			break
		}
		w.clock.Advance(200 * time.Millisecond)
	}
	if len(seen) == 0 || seen[0].Since.Before(began.Add(-time.Second)) || seen[0].Since.After(w.clock.Now()) {
		t.Fatalf("waiting since %s: %+v", began, seen)
	}
	before := w.srv.CallCounts()["ec2:DescribeInstances"]
	w.must(reconciler.PlanOnly, d)
	if n := w.srv.CallCounts()["ec2:DescribeInstances"]; n != before {
		t.Errorf("asked again: %d calls, then %d", before, n)
	}
	w.restart()
	if again := w.must(reconciler.PlanOnly, d)[0].Governed[0].Facts.Waiting; len(again) == 0 || !again[0].Since.Equal(seen[0].Since) {
		t.Errorf("after a restart: %+v, before: %+v", again, seen)
	}
}
