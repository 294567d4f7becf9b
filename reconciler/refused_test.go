package reconciler_test

import (
	"testing"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/intent"
)

// A group that AWS refuses for one of its hooks is made as soon as Git has mended
// the hook.
func TestAMendedPoolIsNotParked(t *testing.T) {
	w := newWorld(t)
	pool := groupPool("web", "m5.large", 1)
	pool.Group.LifecycleHooks = []intent.LifecycleHook{{Name: "drain", LifecycleTransition: "autoscaling:EC2_INSTANCE_TERMINATING", HeartbeatTimeout: 1}}
	refused := func() (failed bool) {
		t.Helper()
		for _, o := range w.must(reconciler.Apply, target("blue", pool))[0].Outcomes {
			failed = failed || o.Status == plan.Failed
		}
		return failed
	}
	refused()
	if !refused() {
		t.Fatal("a hook's timeout of one second was taken")
	}
	pool.Group.LifecycleHooks = []intent.LifecycleHook{{Name: "drain", LifecycleTransition: "autoscaling:EC2_INSTANCE_TERMINATING", HeartbeatTimeout: 60}}
	if refused() {
		t.Error("the mended group is still refused")
	}
	w.settle(target("blue", pool))
}
