package reconciler_test

import (
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
)

// Available are machines that have been in service for minReadySeconds since weir
// first saw them there; one that has just started asks once when they were
// launched.
func TestAvailableReplicasWaitForMinReadySeconds(t *testing.T) {
	w := newWorld(t)
	pool := groupPool("web", "m5.large", 2)
	pool.MinReadySeconds = 300
	blue := target("blue", pool)
	w.settle(blue)
	available := func(want int32) {
		t.Helper()
		s := w.must(reconciler.Apply, blue)[0].Pools[0]
		if s.ReadyReplicas != 2 || s.AvailableReplicas != want || s.UnavailableReplicas != 2-want || s.Phase != plan.PhaseRunning {
			t.Errorf("got %s, %d ready, %d available, %d unavailable; want 2 ready, %d available", s.Phase, s.ReadyReplicas, s.AvailableReplicas, s.UnavailableReplicas, want)
		}
	}
	w.srv.ResetCalls()
	available(0)
	w.clock.Advance(4 * time.Minute)
	available(0)
	w.clock.Advance(2 * time.Minute)
	available(2)
	if n := w.srv.CallCounts()["ec2:DescribeInstances"]; n != 0 {
		t.Errorf("a process that saw the instances come asked %d times for their launch", n)
	}
	w.restart()
	available(2)
	available(2)
	if n := w.srv.CallCounts()["ec2:DescribeInstances"]; n != 1 {
		t.Errorf("a process that has just started asked %d times for the launch, want once", n)
	}
}
