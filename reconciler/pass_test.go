package reconciler_test

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	_ "github.com/weir-gitops/weir/reconciler/cloudtest/checked"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(emulatorProcess) != "" {
		serveEmulator()
		return
	}
	// Each of some thousand worlds would read all authorities of a machine that sets it.
	if err := os.Unsetenv("AWS_CA_BUNDLE"); err != nil {
		panic(err)
	}
	debug.SetGCPercent(400) // little is held, and much is made
	goleak.VerifyTestMain(m)
}

func TestPoolsOfBothKindsConvergeAndThenStayQuiet(t *testing.T) {
	w := newWorld(t)
	blue := target("blue", groupPool("web", "m5.large", 3), nodegroupPool("ng", 2))
	w.settle(blue)
	w.srv.ResetCalls()
	r := w.must(reconciler.Apply, blue)[0]
	if !r.Converged() {
		t.Errorf("second apply: not converged: %v", r.Diagnostics)
	}
	// One page each of groups, templates and the cluster's nodegroups, and one
	// description of the nodegroup: the formula for N=2, M=2, K=1.
	if reads, writes := w.calls(); reads != 4 || writes != 0 {
		t.Errorf("steady pass: %d reads and %d writes, want 4 and 0: %v", reads, writes, w.srv.CallCounts())
	}
	for _, p := range r.Pools {
		if p.Phase != plan.PhaseRunning || p.ReadyReplicas != p.DesiredReplicas {
			t.Errorf("pool %s: got %s with %d of %d", p.Name, p.Phase, p.ReadyReplicas, p.DesiredReplicas)
		}
	}
}

func TestANewGroupPoolCostsTwoWritesAndNoReadOfItsOwn(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", groupPool("first", "m5.large", 1)))
	var pools []intent.Pool
	for i := range 30 {
		pools = append(pools, groupPool(fmt.Sprintf("p%02d", i), "m5.large", 1))
	}
	w.srv.ResetCalls()
	w.must(reconciler.Apply, target("blue", append(pools, groupPool("first", "m5.large", 1))...))
	reads, writes := w.calls()
	// Groups and templates by owner, then the new names once each in one batch.
	if reads != 4 || writes != 60 {
		t.Errorf("creating 30 pools: %d reads and %d writes, want 4 and 60: %v", reads, writes, w.srv.CallCounts())
	}
}

func TestATemplateChangeIsOneRollout(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", groupPool("web", "m5.large", 4)))
	w.srv.ResetCalls()
	blue := target("blue", groupPool("web", "m5.xlarge", 4))
	w.settle(blue)
	counts := w.srv.CallCounts()
	for op, want := range map[string]int{"ec2:CreateLaunchTemplateVersion": 1, "autoscaling:StartInstanceRefresh": 1, "ec2:ModifyLaunchTemplate": 1, "autoscaling:UpdateAutoScalingGroup": 0} {
		if counts[op] != want {
			t.Errorf("%s: got %d, want %d", op, counts[op], want)
		}
	}
}

func TestNothingWaitsInsideAPass(t *testing.T) {
	w := newWorld(t)
	// The clock stands still, so nothing ever becomes ready: a pass that waited
	// for AWS would not return.
	blue := target("blue", groupPool("web", "m5.large", 3), nodegroupPool("ng", 2))
	for range 4 {
		if r := w.must(reconciler.Apply, blue)[0]; r.Converged() {
			t.Fatal("converged although nothing moved")
		}
	}
}

func TestAForeignGroupIsNeverTouched(t *testing.T) {
	w := newWorld(t)
	other := target("blue", groupPool("web", "m5.large", 1))
	other.Policy.Instance = "somebody-else"
	w.settle(other)
	w.srv.ResetCalls()
	r := w.must(reconciler.Apply, target("blue", groupPool("web", "m5.xlarge", 5)))[0]
	if _, writes := w.calls(); writes != 0 {
		t.Errorf("writes: got %d, want 0: %v", writes, w.srv.CallCounts())
	}
	if !r.Diagnostics.HasErrors() || !strings.Contains(fmt.Sprint(r.Diagnostics), "conflict") {
		t.Errorf("diagnostics: got %v", r.Diagnostics)
	}
}

func TestAMissingSetIsNeverAnEmptyWish(t *testing.T) {
	w := newWorld(t)
	blue := target("blue", groupPool("web", "m5.large", 1))
	green := target("green", groupPool("api", "m5.large", 1))
	w.settle(blue, green)
	for name, broken := range map[string]func(*reconciler.Desired){
		"source failed": func(d *reconciler.Desired) {
			d.Set, d.Whole, d.Err = nil, false, fmt.Errorf("remote unreachable")
		},
		"render broken": func(d *reconciler.Desired) {
			d.Set, d.Whole = nil, false
			d.Diagnostics = diag.List{{Severity: diag.Error, Code: "yaml-syntax", Summary: "broken"}}
		},
		"render partly broken": func(d *reconciler.Desired) { d.Set, d.Whole = &intent.Set{}, false },
		"render empty":         func(d *reconciler.Desired) { d.Set = &intent.Set{} },
	} {
		t.Run(name, func(t *testing.T) {
			bad := blue
			broken(&bad)
			w.srv.ResetCalls()
			w.must(reconciler.Apply, bad, green)
			if _, writes := w.calls(); writes != 0 {
				t.Errorf("writes: got %d, want 0: %v", writes, w.srv.CallCounts())
			}
		})
	}
}

func TestAnOrphanGoesGroupFirstThenTemplate(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", groupPool("web", "m5.large", 2), groupPool("old", "m5.large", 2)))
	blue := target("blue", groupPool("web", "m5.large", 2))
	w.must(reconciler.Apply, blue)
	counts := w.srv.CallCounts()
	if counts["autoscaling:DeleteAutoScalingGroup"] != 1 || counts["ec2:DeleteLaunchTemplate"] != 0 {
		t.Errorf("first pass: got %v", counts)
	}
	w.settle(blue)
	if counts = w.srv.CallCounts(); counts["ec2:DeleteLaunchTemplate"] != 1 {
		t.Errorf("afterwards: got %v", counts)
	}
}

func TestACancelledContextStartsNoNewStep(t *testing.T) {
	w := newWorld(t)
	blue := target("blue", groupPool("web", "m5.large", 1))
	ctx, cancel := context.WithCancel(context.Background())
	stop := &cancelAfterFirst{Cloud: w.scope.Cloud, cancel: cancel}
	w.scope.Cloud = stop
	reports, err := w.scope.Pass(ctx, []reconciler.Desired{blue}, reconciler.Apply)
	if err != nil {
		t.Fatal(err)
	}
	if got := reports[0].Outcomes; got[0].Status != step.Done || got[1].Status != step.Skipped {
		t.Errorf("outcomes: got %s, %s, want done, skipped", got[0].Status, got[1].Status)
	}
	w.restart()
	w.settle(blue)
}

type cancelAfterFirst struct {
	reconciler.Cloud
	cancel context.CancelFunc
}

func (c *cancelAfterFirst) Execute(ctx context.Context, a step.Action) (step.Result, error) {
	res, err := c.Cloud.Execute(ctx, a)
	c.cancel()
	return res, err
}

func TestARefusedStepIsNotAskedAgainAtOnce(t *testing.T) {
	w := newWorld(t)
	blue := target("blue", groupPool("web", "m5.large", 1))
	w.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: "CreateLaunchTemplate", Code: "UnauthorizedOperation", Status: 403, Times: -1})
	first := w.must(reconciler.Apply, blue)[0]
	if f := first.Failures(); len(f) != 1 || f[0].Err.Kind != observed.Denied || !strings.Contains(f[0].Err.Error(), "ec2:CreateLaunchTemplate") {
		t.Fatalf("failures: got %+v", f)
	}
	w.srv.ResetCalls()
	again := w.must(reconciler.Apply, blue)[0]
	if _, writes := w.calls(); writes != 0 || len(again.Failures()) != 1 {
		t.Errorf("the next pass: %d writes and %d failures, want 0 and 1", writes, len(again.Failures()))
	}
	w.srv.Faults().Clear()
	w.clock.Advance(11 * 60e9)
	w.settle(blue)
}

// Any single call fails in any way: the next passes, by a process that remembers nothing, end in the same state as an undisturbed run.
func TestStoppedAtAnyCallTheNextRunConverges(t *testing.T) {
	t.Parallel()
	before := target("blue", groupPool("web", "m5.large", 2), nodegroupPool("ng", 2), groupPool("old", "m5.large", 1))
	after := target("blue", groupPool("web", "m5.xlarge", 3), nodegroupPool("ng", 3))
	sameWhateverFails(t, func(t testing.TB) *world {
		w := newWorld(t)
		w.settle(before)
		return w
	}, after, func(w *world) string { return w.inventory(after) })
}

// made says how often something was made, refused attempts aside.
func (w *world) made() string {
	n := map[string]int{}
	for _, c := range w.srv.Calls() {
		if c.ErrorCode == "" && (!c.Lost || !w.cut) {
			n[c.Operation]++
		}
	}
	return fmt.Sprintf("versions=%d refreshes=%d groups deleted=%d templates deleted=%d",
		n["CreateLaunchTemplateVersion"], n["StartInstanceRefresh"], n["DeleteAutoScalingGroup"], n["DeleteLaunchTemplate"])
}
