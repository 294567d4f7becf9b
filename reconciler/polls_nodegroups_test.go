package reconciler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/render/intent"
)

// A process that has just started asks once about each refresh, and goes on where
// the one before it was.
func TestARestartWhilePoolsRoll(t *testing.T) {
	t.Parallel()
	const n = 20
	w := realWorld(t, true)
	next := w.roll(n, 2)
	w.paced(3*time.Minute, next)
	before := w.must(reconciler.Apply, next)[0].Pools
	w.scope = within(w, sdk.NewLimits(sdk.LimitOptions{Now: w.clock.Now}))
	w.srv.ResetCalls()
	for i, p := range w.must(reconciler.Apply, next)[0].Pools {
		if p.Rollout == nil || p.Rollout.ID != before[i].Rollout.ID || p.Rollout.Percentage != before[i].Rollout.Percentage {
			t.Errorf("%s: got %+v, want %+v", p.Name, p.Rollout, before[i].Rollout)
		}
	}
	w.paced(30*time.Second, next)
	if got := w.srv.CallCounts(); got[polls] != n {
		t.Errorf("%d questions about %d refreshes after a restart", got[polls], n)
	}
	w.paced(30*time.Minute, next)
	if n := w.writes(); n[started] != 0 || !converged(w.must(reconciler.Apply, next)) {
		t.Errorf("not converged after %v", n)
	}
}

// Questions that fail are asked again later and hold up nobody; if they go on to
// fail, the pass says so.
func TestQuestionsThatFail(t *testing.T) {
	w := realWorld(t, false)
	next := w.roll(3, 4)
	remove := w.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: "DescribeInstanceRefreshes", Code: "InternalFailure", Status: 500, Times: -1})
	for range 24 {
		w.must(reconciler.Apply, next)
		w.clock.Advance(reconciler.DefaultMovingDelay)
	}
	w.clock.Advance(4 * time.Minute)
	if _, err := w.pass(reconciler.Apply, next); err == nil {
		t.Error("nobody is told that AWS cannot be asked for minutes")
	}
	remove()
	w.paced(30*time.Minute, next)
	if !converged(w.must(reconciler.Apply, next)) {
		t.Error("not converged")
	}
}

// Of many nodegroups that are updated, and more that rest, EKS is asked about one at a
// time: a commit does not wait behind that either.
func TestAPushWhileManyNodegroupsUpdate(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short is set, as make race does: hundreds of passes take minutes under the race detector")
	}
	const n, updated = 150, 100
	w := realWorld(t, true)
	wish := func(kind string) reconciler.Desired {
		var pools []intent.Pool
		for i := range n {
			p := nodegroupPool(fmt.Sprintf("ng%03d", i), 1)
			if i < updated {
				p.LaunchTemplate.Data.InstanceType = kind
			}
			pools = append(pools, p)
		}
		return target("blue", pools...)
	}
	w.paced(40*time.Minute, wish("m5.large"))
	if r := w.must(reconciler.Apply, wish("m5.large")); !converged(r) {
		t.Fatalf("not converged: %v", r[0].Diagnostics)
	}
	next := wish("m5.xlarge")
	w.srv.ResetCalls()
	for range 200 {
		w.paced(reconciler.DefaultMovingDelay, next)
		if w.srv.CallCounts()["eks:UpdateNodegroupVersion"] == updated {
			break
		}
	}
	w.srv.ResetCalls()
	began, longest := w.clock.Now(), time.Duration(0)
	for i := 0; w.clock.Now().Sub(began) < 3*time.Minute; i++ {
		if i%6 == 5 {
			next = target("blue", append(next.Set.Pools, groupPool(fmt.Sprintf("new%03d", i), "m5.large", 1))...)
		}
		at := w.clock.Now()
		w.must(reconciler.Apply, next)
		longest = max(longest, w.clock.Now().Sub(at))
		w.clock.Advance(reconciler.DefaultMovingDelay)
	}
	got := w.srv.CallCounts()
	each := float64(got["eks:DescribeNodegroup"]) / w.clock.Now().Sub(began).Minutes()
	t.Logf("the longest pass took %v; %.0f descriptions a minute of %d nodegroups", longest, each, n)
	if longest >= time.Second {
		t.Errorf("a pass took %v", longest)
	}
	if most := updated + n/5 + 40; each > float64(most) {
		t.Errorf("%.0f descriptions a minute, want %d at most: %v", each, most, got)
	}
	if got["autoscaling:CreateAutoScalingGroup"] < 4 {
		t.Errorf("pushes did not reach AWS: %v", got)
	}
	w.paced(40*time.Minute, next)
	if r := w.must(reconciler.Apply, next); !converged(r) {
		t.Errorf("not converged: %v", r[0].Diagnostics)
	}
}
