package app

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/drain"
	"github.com/weir-gitops/weir/reconciler/workload/workloadtest"
)

// drainage is a workload cluster whose machines weir drains: those of the pool web in prod.
type drainage struct {
	*world
	cluster *workloadtest.Server
	mu      sync.Mutex
	joined  map[string]bool
}

// newDrainage has the next daemons of a world drain, and each machine join as it comes.
func newDrainage(t *testing.T, w *world) *drainage {
	t.Helper()
	d := &drainage{world: w, cluster: workloadtest.New(t), joined: map[string]bool{}}
	w.extra += "  kubeconfigFile: " + d.cluster.Kubeconfig(t) + "\n"
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3) +
		"---\napiVersion: weir.dev/v1alpha1\nkind: PoolOptions\nmetadata: {name: web}\nspec:\n  poolRef: {kind: AWSMachinePool, name: web}\n  drainer: {}\n"}))
	ctx, stop := context.WithCancel(context.Background())
	var joins sync.WaitGroup
	joins.Go(func() {
		for ctx.Err() == nil {
			for id := range d.machines() {
				d.join(id)
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	t.Cleanup(func() { stop(); joins.Wait() })
	return d
}

// machines are those of the group, each with its lifecycle state.
func (d *drainage) machines() map[string]string {
	var answer struct {
		Instances []struct {
			ID    string `xml:"InstanceId"`
			State string `xml:"LifecycleState"`
		} `xml:"DescribeAutoScalingGroupsResult>AutoScalingGroups>member>Instances>member"`
	}
	if err := xml.Unmarshal([]byte(d.query("autoscaling", "DescribeAutoScalingGroups")), &answer); err != nil {
		d.t.Error(err)
	}
	all := map[string]string{}
	for _, i := range answer.Instances {
		all[i.ID] = i.State
	}
	return all
}

// join gives a machine a node of its id, with a pod that a budget keeps, one that goes at once, and one of a DaemonSet.
func (d *drainage) join(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.joined[id] {
		return
	}
	if len(d.joined) == 0 {
		d.cluster.AddBudget("shop", "cart", "app", "cart", 0)
	}
	d.joined[id] = true
	d.cluster.AddNode(id, "aws:///eu-west-1a/"+id, "True")
	for _, p := range []workloadtest.Pod{
		{Namespace: "shop", Name: "cart-" + id, Owner: "ReplicaSet", Labels: map[string]string{"app": "cart"}},
		{Namespace: "shop", Name: "front-" + id, Owner: "ReplicaSet"},
		{Namespace: "kube-system", Name: "agent-" + id, Owner: "DaemonSet"},
	} {
		p.Node, p.Grace = id, 1
		d.cluster.AddPod(p)
	}
}

// end has Auto Scaling end the one machine, and returns it.
func (d *drainage) end() string {
	d.t.Helper()
	for id := range d.machines() {
		d.query("autoscaling", "TerminateInstanceInAutoScalingGroup&ShouldDecrementDesiredCapacity=false&InstanceId="+id)
		return id
	}
	d.t.Fatal("there is no machine")
	return ""
}

// gone waits until a machine has left the group.
func (d *drainage) gone(id string) {
	d.t.Helper()
	eventually(d.t, "the end of "+id, func() string { return d.machines()[id] })
}

// TestTheNextOwnerGoesOnWithADrain that a member leaves by weir drain, or by its end, whatever call of the drain is under way: it moves each pod
// once, answers the hook once, and tells it once.
func TestTheNextOwnerGoesOnWithADrain(t *testing.T) {
	t.Parallel()
	for _, under := range []string{"nothing", "RecordLifecycleActionHeartbeat", "cordon", "eviction", "CompleteLifecycleAction"} {
		for _, ends := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s under way, ends %t", under, ends), func(t *testing.T) {
				t.Parallel()
				leavesADrain(t, under, ends)
			})
		}
	}
}

func leavesADrain(t *testing.T, under string, ends bool) {
	s := newSeveral(t)
	var calls holds
	s.before = calls.see
	held := calls.on(under, "")
	defer held.release()
	d := newDrainage(t, s.world)
	d.cluster.Before(func(method, path string) {
		if under == "cordon" && method == http.MethodPatch || under == "eviction" && method == http.MethodPost && strings.Contains(path, "/cart-") {
			held.once.Do(func() { close(held.came); <-held.goes })
		}
	})
	first := s.repo.Commit("first")
	a, b := s.member("a"), s.member("b")
	defer a.stop()
	defer b.stop()
	for _, m := range []*member{a, b} {
		converged(t, m.App, first, 1)
	}
	id := d.end()
	if under == "CompleteLifecycleAction" {
		d.cluster.AddBudget("shop", "cart", "app", "cart", 1)
	}
	if under == "nothing" {
		eventually(t, "a machine that waits for a pod", func() string {
			r, _ := b.current.Targets.Find("prod")
			if r.Last == nil || len(r.Last.Pools) != 1 || len(r.Last.Pools[0].Draining) != 1 || r.Last.Pools[0].Draining[0].PodsLeft != 1 {
				return fmt.Sprintf("%+v", r.Last)
			}
			return ""
		})
	} else {
		<-held.came
	}
	since, _ := d.cluster.Node(id, drain.Annotation)
	if ends {
		time.AfterFunc(300*time.Millisecond, held.release) // the member ends meanwhile
		b.stop()
	} else {
		s.drain(t, a, b, held)
	}
	s.owned(s.scope(), a)
	d.cluster.AddBudget("shop", "cart", "app", "cart", 1)
	d.gone(id)
	converged(t, a.App, first, 1)
	if got, want := d.cluster.Evicted(), []string{"shop/cart-" + id, "shop/front-" + id}; !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("evicted: %v, want each once of %v", got, want)
	}
	if now, cordoned := d.cluster.Node(id, drain.Annotation); !cordoned || since != "" && now != since {
		t.Errorf("drained since %q, and before the hand-over since %q", now, since)
	}
	answers := 0
	for _, c := range s.aws.Calls() {
		if c.Operation == "CompleteLifecycleAction" {
			answers++
		}
	}
	if answers != 1 {
		t.Errorf("the hook was answered %d times", answers)
	}
	told := map[string]int{}
	for _, m := range []*member{a, b} {
		for _, e := range m.current.Activity.Events() {
			if strings.HasPrefix(e.Kind, "machine-") || strings.HasPrefix(e.Kind, "drain-") {
				told[e.Kind]++
			}
		}
		r, _ := m.current.Targets.Find("prod")
		for _, diagnostic := range r.Last.Diagnostics {
			if diagnostic.Code == "drain-failed" {
				t.Errorf("a hand-over is told as a failure: %s", diagnostic.Summary)
			}
		}
	}
	if told["machine-drained"] == 0 || len(told) != 1 {
		t.Errorf("told: %v", told)
	}
	s.aws.ResetCalls()
	r, _ := a.current.Targets.Find("prod")
	if draining := r.Last.Pools[0].Draining; len(draining) > 0 {
		t.Errorf("still drained: %+v", draining)
	}
	if wrote := s.writes(); len(wrote) > 0 {
		t.Errorf("left to do: %v", wrote)
	}
}
