package reconciler_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/step"
)

// counting is a cloud that knows how many calls are under way at most, and lets none end
// before it is open.
type counting struct {
	reconciler.Cloud
	open      <-chan struct{}
	now, most *atomic.Int64
}

func (c counting) Execute(ctx context.Context, a step.Action) (step.Result, error) {
	n := c.now.Add(1)
	defer c.now.Add(-1)
	for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
	}
	<-c.open
	return c.Cloud.Execute(ctx, a)
}

// An account whose calls hang takes its own lanes and those that all share, and no other
// account waits for it: that one goes on in its own.
func TestAnAccountThatHangsHoldsUpNoOther(t *testing.T) {
	lanes := make(reconciler.Lanes, 3)
	open, closed := make(chan struct{}), make(chan struct{})
	close(open)
	hangs, goes := newWorld(t), newWorld(t)
	var hanging, going counting
	for _, w := range []struct {
		*world
		cloud *counting
		open  chan struct{}
	}{{hangs, &hanging, closed}, {goes, &going, open}} {
		*w.cloud = counting{w.scope.Cloud, w.open, new(atomic.Int64), new(atomic.Int64)}
		w.scope.Cloud, w.scope.Lanes = *w.cloud, lanes
	}
	const n = 12
	var passes sync.WaitGroup
	passes.Go(func() {
		if _, err := hangs.scope.Pass(context.Background(), []reconciler.Desired{fleet(n)}, reconciler.Apply); err != nil {
			t.Error(err)
		}
	})
	for deadline := time.Now().Add(time.Minute); hanging.now.Load() < 2+3; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d calls of the first account are under way, want 5", hanging.now.Load())
		}
	}
	if r := goes.must(reconciler.Apply, fleet(n))[0]; r.Plan.Runnable() != 2*n {
		t.Errorf("%d steps, want %d", r.Plan.Runnable(), 2*n)
	}
	if got := goes.srv.CallCounts()["autoscaling:CreateAutoScalingGroup"]; got != n {
		t.Errorf("%d groups of the other account were made, want %d", got, n)
	}
	if got := going.most.Load(); got > 2 {
		t.Errorf("%d calls of the other account were under way, want 2: the rest are taken", got)
	}
	close(closed)
	passes.Wait()
	if got := hangs.srv.CallCounts()["autoscaling:CreateAutoScalingGroup"]; got != n {
		t.Errorf("%d groups of the first account were made in the end, want %d", got, n)
	}
	if got := hanging.most.Load(); got != 2+3 {
		t.Errorf("%d calls were under way at once, want its own 2 and the 3 that are shared", got)
	}
	if len(lanes) != 0 {
		t.Errorf("%d lanes are taken still", len(lanes))
	}
}
