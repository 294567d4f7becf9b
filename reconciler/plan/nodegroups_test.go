package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
)

func TestNodegroupUpdatesGoOneAtATime(t *testing.T) {
	m, in := newModel(), testInput(nodegroupPool("ng", 2))
	converge(t, m, in)
	n := m.state.Nodegroups[observed.NodegroupName{Cluster: "c", Name: "ng"}]
	n.Version = "1.31"
	m.state.Nodegroups[n.NodegroupName] = n
	pool := nodegroupPool("ng", 3)
	pool.Nodegroup.Version = "1.33"
	pool.Nodegroup.Labels = map[string]string{"tier": "web"}
	in = testInput(pool)
	p, _ := m.pass(t, in)
	if d := cmp.Diff([]string{"update nodegroup ng", "rollout nodegroup ng later"}, verbs(p)); d != "" {
		t.Errorf("steps (-want +got):\n%s", d)
	}
	if n := converge(t, m, in); n != 3 {
		t.Errorf("passes: got %d, want 3: config, 1.32, 1.33", n)
	}
	got := m.state.Nodegroups[n.NodegroupName]
	if got.Version != "1.33" || got.MaxSize != 3 || got.Labels["tier"] != "web" {
		t.Errorf("nodegroup: got %+v", got)
	}
}

func TestANodegroupNeverPassesItsControlPlane(t *testing.T) {
	m, in := newModel(), testInput(nodegroupPool("ng", 2))
	converge(t, m, in)
	n := m.state.Nodegroups[observed.NodegroupName{Cluster: "c", Name: "ng"}]
	n.Version = "1.33"
	m.state.Nodegroups[n.NodegroupName] = n
	pool := nodegroupPool("ng", 2)
	pool.Nodegroup.Version = "1.34"
	p, _ := m.pass(t, testInput(pool))
	if d := cmp.Diff([]string{"rollout nodegroup ng held:control-plane"}, verbs(p)); d != "" || codes(p)[0] != "waits-for-control-plane" {
		t.Errorf("(-want +got):\n%s%v", d, codes(p))
	}
}

func TestAFailedNodegroupUpdateIsNotTriedAgain(t *testing.T) {
	m, in := newModel(), testInput(nodegroupPool("ng", 2))
	converge(t, m, in)
	pool := nodegroupPool("ng", 5)
	in = testInput(pool)
	p, _ := m.pass(t, in)
	name := observed.NodegroupName{Cluster: "c", Name: "ng"}
	in.Memory.Started = map[observed.NodegroupName]model.StartedUpdate{name: {UpdateID: "u-1", Fingerprint: p.Steps[0].Fingerprint}}
	m.state.Updates[name] = observed.NodegroupUpdate{ID: "u-1", Type: "ConfigUpdate", Status: "Failed", Errors: []observed.HealthIssue{{Code: "PodEvictionFailure"}}}
	p, _ = m.pass(t, in)
	if !p.Empty() || codes(p)[0] != "nodegroup-update-failed" {
		t.Errorf("got %v %v", verbs(p), codes(p))
	}
	for path, want := range map[bool]string{false: "; a change of the pool in Git tries again, and so does weir reconcile blue --retry", true: "; a change of the pool tries again, and so does weir apply PATH --retry"} {
		asked := in
		asked.Policy.OwnTargetOnly = path
		if p, _ = m.pass(t, asked); !strings.HasSuffix(p.Diagnostics[0].Detail, want) {
			t.Errorf("the way out, in path mode %t: got %q", path, p.Diagnostics[0].Detail)
		}
	}
	other := testInput(nodegroupPool("ng", 6))
	other.Memory = in.Memory
	if p, _ = m.pass(t, other); p.Empty() {
		t.Error("a new intent must be tried")
	}
}

func TestWhatEKSCannotChangeIsRefused(t *testing.T) {
	m, in := newModel(), testInput(nodegroupPool("ng", 2))
	converge(t, m, in)
	pool := nodegroupPool("ng", 2)
	pool.Nodegroup.CapacityType = "SPOT"
	p, _ := m.pass(t, testInput(pool))
	if !p.Empty() || codes(p)[0] != "nodegroup-immutable" {
		t.Errorf("got %v %v", verbs(p), codes(p))
	}
}
