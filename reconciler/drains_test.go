package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/drain"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/workload"
	"github.com/weir-gitops/weir/reconciler/workload/workloadtest"
	"github.com/weir-gitops/weir/render/intent"
)

// drainWorld is a world with a cluster whose pods run on the machines.
type drainWorld struct {
	*world
	server  *workloadtest.Server
	cluster *workload.Cluster
	told    []string
}

func newDrainWorld(t *testing.T) *drainWorld {
	t.Helper()
	w := &drainWorld{world: newWorld(t), server: workloadtest.New(t)}
	w.server.SetClock(w.clock.Now)
	c, err := workload.Open(w.server.Kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	w.cluster = c
	return w
}

// draining is a target of one pool whose machines are drained.
func (w *drainWorld) draining(replicas int32, d intent.Drainer) reconciler.Desired {
	pool := groupPool("web", "m5.large", replicas)
	pool.Options = object("PoolOptions", "web")
	pool.Group.Drainer, pool.Group.LifecycleHooks = &d, []intent.LifecycleHook{d.Hook()}
	if d.Abandon {
		pool.Group.Options.InstanceLifecyclePolicy = &intent.LifecyclePolicy{RetentionTriggers: &intent.RetentionTriggers{TerminateHookAbandon: "retain"}}
	}
	t := target("blue", pool)
	t.Workload, t.Drains, t.Policy.JoinTokens = w.cluster, w.cluster, model.JoinTokens{Prefix: "/weir"}
	return t
}

// machines are the ids and states of the machines of the group web.
func (w *drainWorld) machines() map[string]string {
	w.t.Helper()
	out, err := w.groups().DescribeAutoScalingGroups(context.Background(), &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{"web"}})
	if err != nil {
		w.t.Fatal(err)
	}
	all := map[string]string{}
	for _, g := range out.AutoScalingGroups {
		for _, i := range g.Instances {
			all[aws.ToString(i.InstanceId)] = string(i.LifecycleState)
		}
	}
	return all
}

// joinAll gives each machine a node, which is named as the machine, and pods: one of a
// Deployment, and three that stay.
func (w *drainWorld) joinAll() {
	for id := range w.machines() {
		w.server.AddNode("n-"+id, "aws:///eu-west-1a/"+id, "True")
		w.server.AddPod(workloadtest.Pod{Namespace: "shop", Name: "cart-" + id, Node: "n-" + id, Owner: "ReplicaSet", Labels: map[string]string{"app": "cart"}})
		w.server.AddPod(workloadtest.Pod{Namespace: "kube-system", Name: "agent-" + id, Node: "n-" + id, Owner: "DaemonSet"})
		w.server.AddPod(workloadtest.Pod{Namespace: "kube-system", Name: "static-" + id, Node: "n-" + id, Mirror: true})
		w.server.AddPod(workloadtest.Pod{Namespace: "shop", Name: "done-" + id, Node: "n-" + id, Owner: "Job", Phase: "Succeeded"})
	}
}

// pass makes a pass and keeps what it told.
func (w *drainWorld) look(t reconciler.Desired) *plan.Report {
	w.t.Helper()
	r := w.must(reconciler.Apply, t)[0]
	for _, m := range r.Milestones {
		w.told = append(w.told, m.Kind+": "+m.Text)
	}
	w.server.Log()
	return r
}

// shrink ends one machine of two, and returns it as it waits.
func (w *drainWorld) shrink() string {
	w.t.Helper()
	w.check(w.groups().SetDesiredCapacity(context.Background(), &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: aws.String("web"), DesiredCapacity: aws.Int32(1)}))
	return w.waiting()
}

func (w *drainWorld) waiting() string {
	w.t.Helper()
	for range 30 {
		for id, state := range w.machines() {
			if state == "Terminating:Wait" {
				return id
			}
		}
		w.clock.Advance(time.Second)
	}
	w.t.Fatalf("no machine waits: %v", w.machines())
	return ""
}

// drainable is a world with two machines that have joined, and a target that leaves its size
// to others.
func drainable(t *testing.T, d intent.Drainer) (*drainWorld, reconciler.Desired) {
	t.Helper()
	w := newDrainWorld(t)
	target := w.draining(2, d)
	bare := target
	bare.Workload = nil // whose machines have no nodes yet
	w.settle(bare)
	w.joinAll()
	target.Set.Pools[0].Replicas.Written = false
	target.Set.Pools[0].ReplicasManagedExternally = true
	w.settle(target)
	return w, target
}

// answers are how often lifecycle actions were held and answered since the last reset.
func (w *drainWorld) answers() (held int, results []string) {
	for _, c := range w.srv.Calls() {
		switch c.Operation {
		case "RecordLifecycleActionHeartbeat":
			held++
		case "CompleteLifecycleAction":
			results = append(results, c.ErrorCode)
		}
	}
	return held, results
}

var fifteen = intent.Drainer{Timeout: 900}

func TestMachinesAreDrained(t *testing.T) {
	w, target := drainable(t, fifteen)
	if got := w.hooks("web"); !slices.Equal(got, []string{"weir-drain 300 CONTINUE"}) {
		t.Fatalf("hooks: %v", got)
	}
	id := w.shrink()
	r := w.look(target)
	if p := r.Pools[0]; len(p.Draining) != 1 || p.Draining[0].Instance != id || p.Draining[0].PodsLeft != 1 || p.Draining[0].Node != "n-"+id || p.Converged || !reconciler.Moving(r) {
		t.Fatalf("status: %+v", p)
	}
	if value, cordoned := w.server.Node("n-"+id, drain.Annotation); !cordoned || !strings.HasPrefix(value, id+" 2026-01-02T") {
		t.Errorf("the node is cordoned: %v, annotated %q", cordoned, value)
	}
	if got := w.server.Pods("n-" + id); !slices.Equal(got, []string{"kube-system/agent-" + id, "kube-system/static-" + id, "shop/done-" + id}) {
		t.Errorf("left to run: %v", got)
	}
	w.clock.Advance(20 * time.Second)
	w.look(target)
	if w.machines()[id] != "Terminating:Wait" {
		t.Error("the machine goes while a pod still ends")
	}
	w.clock.Advance(11 * time.Second)
	w.look(target)
	w.clock.Advance(time.Minute)
	if state, there := w.machines()[id]; there {
		t.Errorf("the machine is still %s", state)
	}
	if len(w.told) != 1 || w.told[0] != "machine-drained: the machine "+id+" was drained and is terminated" {
		t.Errorf("told: %v", w.told)
	}
	w.server.RemoveNode("n-" + id)
	w.settle(target)
	w.srv.ResetCalls()
	w.look(target)
	if held, results := w.answers(); held+len(results) > 0 {
		t.Errorf("at rest AWS is asked %d and %v", held, results)
	}
}

// A budget keeps a pod, and so a machine, until it lets it go, or until the deadline.
func TestBudgetsAreHeeded(t *testing.T) {
	w, target := drainable(t, fifteen)
	w.server.AddBudget("shop", "cart", "app", "cart", 0)
	id := w.shrink()
	for range 30 { // five minutes, longer than AWS waits without a heartbeat
		r := w.look(target)
		d := r.Pools[0].Draining
		if len(d) != 1 || len(d[0].Pods) != 1 || d[0].Pods[0].Name != "shop/cart-"+id || !strings.Contains(d[0].Pods[0].Why, "disruption budget cart") {
			t.Fatalf("status: %+v", d)
		}
		w.clock.Advance(11 * time.Second)
	}
	if held, _ := w.answers(); held < 3 || held > 6 {
		t.Errorf("%d heartbeats in five minutes", held)
	}
	w.server.AddBudget("shop", "cart", "app", "cart", 1)
	w.look(target)
	w.clock.Advance(31 * time.Second)
	w.look(target)
	w.clock.Advance(time.Minute)
	if _, there := w.machines()[id]; there || len(w.told) != 1 {
		t.Errorf("%v, told %v", w.machines(), w.told)
	}
}

func TestADeadlineEndsADrain(t *testing.T) {
	for name, tt := range map[string]struct {
		d           intent.Drainer
		state, told string
	}{
		"proceed": {intent.Drainer{Timeout: 600}, "", "is terminated anyway: remaining pods: shop/cart-"},
		"abandon": {intent.Drainer{Timeout: 600, Abandon: true}, "Terminating:Retained", "is retained: remaining pods: shop/cart-"},
	} {
		t.Run(name, func(t *testing.T) {
			w, target := drainable(t, tt.d)
			w.server.AddBudget("shop", "cart", "app", "cart", 0)
			id := w.shrink()
			began := w.clock.Now()
			for w.clock.Now().Sub(began) < 599*time.Second {
				w.look(target)
				if w.machines()[id] != "Terminating:Wait" {
					t.Fatalf("it went after %s", w.clock.Now().Sub(began))
				}
				w.clock.Advance(30 * time.Second)
				w.restart() // who comes after goes on, and does not begin anew
			}
			w.look(target)
			w.clock.Advance(time.Minute)
			if got := w.machines()[id]; got != tt.state {
				t.Errorf("the machine is %q", got)
			}
			if len(w.told) != 1 || !strings.HasPrefix(w.told[0], "drain-deadline: ") || !strings.Contains(w.told[0], tt.told) || !strings.Contains(w.told[0], "disruption budget") {
				t.Errorf("told: %v", w.told)
			}
		})
	}
}

// TestADrainSurvivesEveryFault loses or refuses each call of a drain, to AWS and to the
// cluster, before and after its effect, with a new process after it.
func TestADrainSurvivesEveryFault(t *testing.T) {
	faults := map[string]func(*drainWorld){}
	for _, op := range []string{"RecordLifecycleActionHeartbeat", "CompleteLifecycleAction"} {
		for _, kind := range []awsemu.FaultKind{awsemu.FailBefore, awsemu.CutBefore, awsemu.LoseAnswer, awsemu.Throttled} {
			faults[fmt.Sprint(op, " ", kind)] = func(w *drainWorld) {
				w.srv.Faults().Add(awsemu.Fault{Operation: op, Kind: kind, Code: "InternalFailure"})
			}
		}
	}
	for _, call := range [][2]string{{http.MethodPatch, "/api/v1/nodes/"}, {http.MethodGet, "/api/v1/pods"}, {http.MethodPost, "/api/v1/namespaces/shop/pods/"}, {http.MethodGet, "/api/v1/nodes"}} {
		for _, after := range []bool{false, true} {
			for _, status := range []int{0, 503} {
				faults[fmt.Sprint(call, " ", status, " after ", after)] = func(w *drainWorld) {
					w.server.Fail(workloadtest.Fault{Method: call[0], Path: call[1], Times: 1, Status: status, After: after})
				}
			}
		}
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, target := drainable(t, fifteen)
			id := w.shrink()
			fault(w)
			for range 12 {
				for _, d := range w.look(target).Diagnostics {
					if d.Code == "drain-failed" {
						t.Errorf("what passes by itself is to be mended: %s", d.Summary)
					}
				}
				if state := w.machines()[id]; state == "" {
					break
				} else if state != "Terminating:Wait" && slices.Contains(w.server.Pods("n-"+id), "shop/cart-"+id) {
					t.Fatalf("the machine is %s with its pod", state)
				}
				w.restart()
				w.clock.Advance(10 * time.Second)
			}
			if state, there := w.machines()[id]; there {
				t.Errorf("after two minutes the machine is %s; told %v", state, w.told)
			}
			if len(w.told) > 1 {
				t.Errorf("told %v", w.told)
			}
		})
	}
}

// What weir cannot be sure of, it does not touch.
func TestDrainsThatAreNone(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(w *drainWorld, d *reconciler.Desired, id string)
		// asked is whether pods are asked to go, and goes whether the machine does.
		asked, goes bool
	}{
		"suspended":             {change: func(_ *drainWorld, d *reconciler.Desired, _ string) { d.Policy.Suspended = true }},
		"paused":                {change: func(_ *drainWorld, d *reconciler.Desired, _ string) { d.Set.Pools[0].Paused = true }},
		"reported":              {change: func(_ *drainWorld, d *reconciler.Desired, _ string) { d.Policy.ReportOnly = true }},
		"without the cluster":   {change: func(_ *drainWorld, d *reconciler.Desired, _ string) { d.Drains = nil }},
		"another hook holds it": {change: func(w *drainWorld, _ *reconciler.Desired, _ string) { w.deleteHook("web", "weir-drain") }},
		"no node":               {goes: true, change: func(w *drainWorld, _ *reconciler.Desired, id string) { w.server.RemoveNode("n-" + id) }},
		"a node without its id": {change: func(w *drainWorld, _ *reconciler.Desired, id string) { w.server.AddNode("n-"+id, "", "True") }},
		"the pool was dropped": {asked: true, change: func(_ *drainWorld, d *reconciler.Desired, _ string) {
			d.Set = &intent.Set{}
			d.Policy.Prune.Enabled = false
		}},
		"an older node's mark": {asked: true, change: func(w *drainWorld, _ *reconciler.Desired, id string) {
			w.server.Annotate("n-"+id, drain.Annotation, "i-0fffffffffffffff0 2020-01-01T00:00:00Z")
		}},
		"another owner": {change: func(w *drainWorld, _ *reconciler.Desired, _ string) {
			w.check(w.groups().CreateOrUpdateTags(context.Background(), &autoscaling.CreateOrUpdateTagsInput{Tags: []astypes.Tag{{ResourceId: aws.String("web"), ResourceType: aws.String("auto-scaling-group"),
				Key: aws.String("weir.dev/owner"), Value: aws.String("someone"), PropagateAtLaunch: aws.Bool(false)}}}))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w, target := drainable(t, fifteen)
			if name == "another hook holds it" {
				w.check(w.groups().PutLifecycleHook(context.Background(), &autoscaling.PutLifecycleHookInput{AutoScalingGroupName: aws.String("web"),
					LifecycleHookName: aws.String("other"), LifecycleTransition: aws.String(terminating), HeartbeatTimeout: aws.Int32(3600)}))
			}
			id := w.shrink()
			set := *target.Set
			set.Pools = slices.Clone(set.Pools)
			target.Set = &set
			tt.change(w, &target, id)
			for range 3 {
				w.look(target)
				w.clock.Advance(10 * time.Second)
			}
			if asked := !slices.Contains(w.server.Pods("n-"+id), "shop/cart-"+id); asked != tt.asked {
				t.Errorf("asked to go: %v", asked)
			}
			if goes := w.machines()[id] != "Terminating:Wait"; goes != tt.goes {
				t.Errorf("it is %s", w.machines()[id])
			}
		})
	}
}

// TestALostLeaseMovesNoPod: who may not write to AWS does not write to the cluster, and
// goes on once it may.
func TestALostLeaseMovesNoPod(t *testing.T) {
	w, target := drainable(t, fifteen)
	f := &open{}
	w.inASharedScope(f)
	id := w.shrink()
	f.shut = errors.New("another weir owns it now")
	for range 3 {
		w.look(target)
		w.clock.Advance(10 * time.Second)
	}
	_, cordoned := w.server.Node("n-"+id, drain.Annotation)
	if held, results := w.answers(); cordoned || held+len(results) > 0 || !slices.Contains(w.server.Pods("n-"+id), "shop/cart-"+id) {
		t.Errorf("cordoned %v, held %d times, answered %v, pods %v", cordoned, held, results, w.server.Pods("n-"+id))
	}
	f.shut = nil
	w.look(target)
	if slices.Contains(w.server.Pods("n-"+id), "shop/cart-"+id) {
		t.Error("the pod is not asked to go")
	}
}
