package reconciler_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/workload"
	"github.com/weir-gitops/weir/reconciler/workload/workloadtest"
)

// Available are machines that have been in service for minReadySeconds since weir
// first saw them there; one that has just started asks once when they were
// launched.
func TestAvailableReplicasWaitForMinReadySeconds(t *testing.T) {
	w := newWorld(t)
	pool := groupPool("web", "m5.large", 2)
	w.settle(target("blue", pool))
	pool.MinReadySeconds = 300
	blue := target("blue", pool)
	available := func(want int32) {
		t.Helper()
		s := w.must(reconciler.Apply, blue)[0].Pools[0]
		if s.ReadyReplicas != 2 || s.AvailableReplicas != want || s.UnavailableReplicas != 2-want || s.Phase != plan.PhaseRunning || s.Converged != (want == 2) {
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

// Somebody takes a machine out of service to look at it, with a place less for it or
// with another one in its place: the pool is as Git wants it, and says which it is.
func TestAMachineOnStandby(t *testing.T) {
	for name, shrinks := range map[string]bool{"its place goes with it": true, "another takes its place": false} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			w := newWorld(t)
			pool := groupPool("web", "m5.large", 2)
			pool.Replicas.Written = false
			blue := target("blue", pool)
			w.settle(blue)
			id := *w.group("web").Instances[0].InstanceId
			w.check(w.groups().EnterStandby(ctx, &autoscaling.EnterStandbyInput{AutoScalingGroupName: aws.String("web"), InstanceIds: []string{id}, ShouldDecrementDesiredCapacity: &shrinks}))
			w.settle(blue)
			r := w.must(reconciler.Apply, blue)[0]
			want := int32(2)
			if shrinks {
				want = 1
			}
			if s := r.Pools[0]; !s.Converged || s.Replicas != want || s.DesiredReplicas != want || slices.ContainsFunc(s.ProviderIDList, func(p string) bool { return strings.HasSuffix(p, id) }) {
				t.Errorf("got %+v", s)
			}
			if d := fmt.Sprint(r.Diagnostics); !hasCode(r, "machines-on-standby") || !strings.Contains(d, id) {
				t.Errorf("nobody is told: %s", d)
			}
			w.check(w.groups().ExitStandby(ctx, &autoscaling.ExitStandbyInput{AutoScalingGroupName: aws.String("web"), InstanceIds: []string{id}}))
			w.settle(blue)
			if r := w.must(reconciler.Apply, blue)[0]; !r.Pools[0].Converged || hasCode(r, "machines-on-standby") || r.Pools[0].Replicas != want+1 {
				t.Errorf("it is back: got %+v, %v", r.Pools[0], r.Diagnostics)
			}
		})
	}
}

func TestNodesOfTheWorkloadClusterDecideWhatIsReady(t *testing.T) {
	cluster := workloadtest.New(t)
	nodes, err := workload.Open(cluster.Kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nodes.Close)
	w := newWorld(t)
	blue := target("blue", groupPool("web", "m5.large", 2))
	w.settle(blue)
	blue.Workload = nodes
	status := func() plan.PoolStatus { t.Helper(); return w.must(reconciler.Apply, blue)[0].Pools[0] }

	s := status()
	if s.ReadyFrom != "nodes" || s.ReadyReplicas != 0 || s.Phase != plan.PhaseScalingUp || s.Converged {
		t.Errorf("no node has joined: got %+v", s)
	}
	cluster.AddNode("ip-1", s.ProviderIDList[0], "True")
	cluster.AddNode("ip-2", s.ProviderIDList[1], "Unknown")
	cluster.AddNode("elsewhere", "gce://project/zone/i-1", "True")
	if s = status(); s.ReadyReplicas != 1 || len(s.NodeRefs) != 2 || s.NodeRefs[1].Name != "ip-2" {
		t.Errorf("one of two nodes is ready: got %+v", s)
	}
	cluster.RemoveNode("ip-2")
	cluster.AddNode("ip-2", s.ProviderIDList[1], "True")
	if s = status(); s.ReadyReplicas != 2 || s.Phase != plan.PhaseRunning || !s.Converged {
		t.Errorf("both nodes are ready: got %+v", s)
	}
	cluster.Fail(workloadtest.Fault{Status: 403, Times: -1})
	r := w.must(reconciler.Apply, blue)[0]
	if s = r.Pools[0]; s.ReadyFrom != "InService" || s.ReadyReplicas != 2 || !hasCode(r, "nodes-unread") {
		t.Errorf("nodes may not be read: got %+v, %v", s, r.Diagnostics)
	}
}

// AWS calls a refresh a success once machines are in service: without Ready nodes it
// is none, and the default version of the launch template stays.
func TestARefreshIsProvenByItsNodes(t *testing.T) {
	cluster := workloadtest.New(t)
	nodes, err := workload.Open(cluster.Kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nodes.Close)
	w := newWorld(t)
	w.settle(target("blue", groupPool("web", "m5.large", 1)))
	blue := target("blue", groupPool("web", "m5.xlarge", 1))
	blue.Workload = nodes
	isDefault := func(s plan.PoolStatus, version int64) bool {
		return slices.ContainsFunc(s.TemplateVersions, func(v plan.VersionNote) bool { return v.Number == version && v.Default })
	}
	var r *plan.Report
	for range 60 {
		r = w.must(reconciler.Apply, blue)[0]
		w.clock.Advance(2 * time.Second)
	}
	s := r.Pools[0]
	if !hasCode(r, "rollout-not-ready") || !isDefault(s, 1) || r.Converged() || s.LaunchTemplateVersion != "2" || !strings.Contains(s.Ready().Message, "has not joined the cluster") {
		t.Fatalf("no node has joined: %v %+v", r.Diagnostics, s)
	}
	w.clock.Advance(10 * time.Minute)
	if s = w.must(reconciler.Apply, blue)[0].Pools[0]; s.FailureReason != "nodes-not-ready" {
		t.Errorf("after ten minutes: %+v", s)
	}
	cluster.AddNode("ip-1", s.ProviderIDList[0], "True")
	w.settle(blue)
	if s = w.must(reconciler.Apply, blue)[0].Pools[0]; !isDefault(s, 2) || s.FailureReason != "" {
		t.Errorf("with its node: %+v", s)
	}
}

func TestAPoolThatIsBeingDeletedSaysSo(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", groupPool("web", "m5.large", 1), groupPool("old", "m5.large", 1)))
	gone := target("blue", groupPool("web", "m5.large", 1))
	gone.Policy.Prune.Enabled = true
	for _, when := range []string{"as it is planned", "as AWS does it"} {
		pools := w.must(reconciler.Apply, gone)[0].Pools
		if len(pools) != 2 || pools[1].Name != "old" || pools[1].Phase != plan.PhaseDeleting || pools[1].Converged || pools[1].Replicas != 1 {
			t.Fatalf("%s: got %+v", when, pools)
		}
	}
	w.settle(gone)
	if pools := w.must(reconciler.Apply, gone)[0].Pools; len(pools) != 1 {
		t.Errorf("afterwards: got %+v", pools)
	}
}
