package reconciler_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/step"
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
			failed = failed || o.Status == step.Failed
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

// A refused cancellation of a refresh is no refusal of the refresh that follows,
// though people approve the two as one.
func TestARefusedCancellationDoesNotParkTheNextRefresh(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", groupPool("web", "m5.large", 3)))
	w.must(reconciler.Apply, target("blue", groupPool("web", "m5.xlarge", 3))) // starts a refresh
	next := target("blue", groupPool("web", "m5.2xlarge", 3))
	remove := w.deny("autoscaling", "CancelInstanceRefresh", "")
	for range 3 {
		w.must(reconciler.Apply, next)
	}
	remove()
	w.check(w.groups().CancelInstanceRefresh(t.Context(), &autoscaling.CancelInstanceRefreshInput{AutoScalingGroupName: aws.String("web")}))
	w.clock.Advance(2 * time.Minute)
	w.srv.ResetCalls()
	r := w.must(reconciler.Apply, next)[0]
	if w.writes()["autoscaling:StartInstanceRefresh"] != 1 {
		t.Errorf("the next refresh is not tried: %+v", r.Outcomes)
	}
}
