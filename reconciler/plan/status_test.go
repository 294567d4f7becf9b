package plan

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// The phases of Cluster API's MachinePool controller, from what AWS holds.
func TestPhases(t *testing.T) {
	instances := func(ready, pending int) []observed.Instance {
		var out []observed.Instance
		for i := range ready + pending {
			in := observed.Instance{ID: "i-" + strconv.Itoa(i), Zone: "us-east-1a", LifecycleState: "InService", Health: "Healthy"}
			if i >= ready {
				in.LifecycleState = "Pending"
			}
			out = append(out, in)
		}
		return out
	}
	for name, tc := range map[string]struct {
		group    *observed.Group
		external bool
		blocked  bool
		want     Phase
	}{
		"nothing made":                {want: PhaseProvisioning},
		"no bootstrap data":           {blocked: true, want: PhaseFailed},
		"made, none up":               {group: &observed.Group{DesiredCapacity: 2, Instances: instances(0, 2)}, want: PhaseScalingUp},
		"one of two up":               {group: &observed.Group{DesiredCapacity: 2, Instances: instances(1, 1)}, want: PhaseScalingUp},
		"all up":                      {group: &observed.Group{DesiredCapacity: 2, Instances: instances(2, 0)}, want: PhaseRunning},
		"none wanted":                 {group: &observed.Group{}, want: PhaseRunning},
		"too many":                    {group: &observed.Group{DesiredCapacity: 1, Instances: instances(2, 0)}, want: PhaseScalingDown},
		"a third comes for a rollout": {group: &observed.Group{DesiredCapacity: 2, Instances: instances(2, 1)}, want: PhaseRunning},
		"scaled from outside, up":     {external: true, group: &observed.Group{DesiredCapacity: 2, Instances: instances(1, 1)}, want: PhaseScaling},
		"scaled from outside, down":   {external: true, group: &observed.Group{DesiredCapacity: 1, Instances: instances(2, 0)}, want: PhaseScaling},
		"being deleted":               {group: &observed.Group{Deleting: true, Instances: instances(1, 0)}, want: PhaseProvisioning},
	} {
		t.Run(name, func(t *testing.T) {
			pool := groupPool("web", "m5.large", 2)
			pool.ReplicasManagedExternally = tc.external
			in := testInput(pool)
			in.State = observedNothing(in)
			if tc.group != nil {
				tc.group.Name = "web"
				in.State.Groups["web"] = *tc.group
			}
			p := &Plan{}
			if tc.blocked {
				p.Diagnostics = append(p.Diagnostics, errorOn(&pool))
			}
			if got := Statuses(in, p)[0].Phase; got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// With the workload cluster's nodes at hand it is they that are ready or not.
func TestNodesAreCountedInPlaceOfInstances(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	pool := groupPool("web", "m5.large", 3)
	pool.MinReadySeconds = 60
	in := testInput(pool)
	in.State, in.Now = observedNothing(in), now
	g := observed.Group{Name: "web", DesiredCapacity: 3}
	for _, id := range []string{"i-a", "i-b", "i-c"} {
		g.Instances = append(g.Instances, observed.Instance{ID: id, Zone: "us-east-1a", LifecycleState: "InService", Health: "Healthy"})
	}
	in.State.Groups["web"] = g
	in.Nodes = &model.Nodes{ByInstance: map[string]model.Node{
		"i-a": {Name: "ip-1", UID: "1", Ready: true, Since: now.Add(-2 * time.Minute)},
		"i-b": {Name: "ip-2", UID: "2", Ready: true, Since: now.Add(-30 * time.Second)},
		"i-c": {Name: "ip-0", UID: "3"},
		"i-z": {Name: "of another pool", UID: "4", Ready: true},
	}}
	s := Statuses(in, &Plan{})[0]
	if s.ReadyFrom != "nodes" || s.ReadyReplicas != 2 || s.AvailableReplicas != 1 || s.UnavailableReplicas != 2 || s.Converged || s.Phase != PhaseScalingUp {
		t.Errorf("got %+v", s)
	}
	want := []NodeRef{{"v1", "Node", "ip-0", "3"}, {"v1", "Node", "ip-1", "1"}, {"v1", "Node", "ip-2", "2"}}
	if d := cmp.Diff(want, s.NodeRefs); d != "" {
		t.Errorf("nodeRefs (-want +got):\n%s", d)
	}
	in.Nodes = &model.Nodes{Err: errNodes}
	if s := Statuses(in, &Plan{})[0]; s.ReadyFrom != "InService" || s.ReadyReplicas != 3 || len(s.NodeRefs) != 0 {
		t.Errorf("nodes unread: got %+v", s)
	}
}

func TestConditionsOfARollout(t *testing.T) {
	pool := groupPool("web", "m5.large", 1)
	in := testInput(pool)
	in.State = observedNothing(in)
	in.State.Groups["web"] = observed.Group{Name: "web", DesiredCapacity: 1}
	for status, want := range map[string]Condition{
		"InProgress":         {Type: "InstanceRefreshStarted", Status: "True", Reason: "InProgress", Message: "waiting"},
		"Successful":         {Type: "PostLaunchTemplateUpdateOperationSuccess", Status: "True"},
		"RollbackSuccessful": {Type: "PostLaunchTemplateUpdateOperationSuccess", Status: "False", Severity: "Error", Reason: "PostLaunchTemplateUpdateOperationFailed", Message: "RollbackSuccessful: waiting"},
	} {
		in.State.Refreshes["web"] = observed.Refresh{ID: "r", Status: status, Reason: "waiting"}
		if got := Statuses(in, &Plan{})[0].Conditions; !slices.Contains(got, want) {
			t.Errorf("%s: got %+v, want %+v", status, got, want)
		}
	}
}

func TestAGroupWithoutTemplateOrRoleSaysSo(t *testing.T) {
	pool := groupPool("web", "m5.large", 1)
	in := testInput(pool)
	in.State = observedNothing(in)
	want := []Condition{{Type: "ASGReady", Status: "Unknown", Reason: "ASGNotFound"}, {Type: "LaunchTemplateReady", Status: "Unknown", Reason: "LaunchTemplateNotFound"}}
	got := Statuses(in, &Plan{})[0].Conditions
	for _, c := range want {
		if !slices.Contains(got, c) {
			t.Errorf("got %+v, want %+v", got, c)
		}
	}
}

var errNodes = errors.New("connection refused")

func errorOn(pool *intent.Pool) diag.Diagnostic {
	return diag.Diagnostic{Severity: diag.Error, Code: "token-missing", Summary: "no token", Object: pool.Infrastructure.String()}
}

func observedNothing(in model.Input) *observed.State {
	s := newModel().observe(in.Policy.Instance)
	return &s
}
