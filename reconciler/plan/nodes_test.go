package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
)

// A rollout is proven by nodes, where they are read: until they are Ready the default
// version stays, and that is said; machines that stay so are a failure of their pool.
func TestARolloutWhoseNodesAreNotReadyIsNoSuccess(t *testing.T) {
	m, in := newModel(), testInput(groupPool("web", "m5.large", 2))
	converge(t, m, in)
	in = testInput(groupPool("web", "m5.xlarge", 2))
	in.Now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	p, _ := m.pass(t, in)
	m.apply(p) // the version, and a refresh that AWS calls Successful
	ids := []string{m.state.Groups["web"].Instances[0].ID, m.state.Groups["web"].Instances[1].ID}
	in.Nodes = &model.Nodes{ByInstance: map[string]model.Node{ids[0]: {Name: "ip-1", Why: "KubeletNotReady: cni plugin not initialized"}}}
	in.Memory.InService = map[string]time.Time{ids[0]: in.Now, ids[1]: in.Now}
	look := func() (*Plan, PoolStatus) {
		t.Helper()
		p, full := m.pass(t, in)
		return p, Statuses(full, p)[0]
	}

	p, s := look()
	if !p.Empty() || codes(p)[0] != "rollout-not-ready" || m.state.Templates["web"].DefaultVersion != 1 {
		t.Errorf("the default version moves: %v %v", verbs(p), p.Diagnostics)
	}
	c := s.Ready()
	if s.Converged || s.FailureReason != "" || c.Reason != ReasonNodesNotReady || c.Severity != "Info" ||
		c.Message != "2 of 2 machines in service have no Ready node: the node ip-1 is not Ready (KubeletNotReady: cni plugin not initialized); "+ids[1]+" has not joined the cluster" {
		t.Errorf("at once: %+v", s)
	}
	in.Now = in.Now.Add(10 * time.Minute)
	if _, s = look(); s.FailureReason != "nodes-not-ready" || !strings.Contains(s.FailureMessage, "ip-1") || !s.Rests() || s.Phase == PhaseFailed {
		t.Errorf("after ten minutes: %+v", s)
	}
	in.Nodes.ByInstance = map[string]model.Node{ids[0]: {Ready: true}, ids[1]: {Ready: true}}
	if p, _ = look(); len(p.Steps) != 1 || len(p.Diagnostics) != 0 {
		t.Errorf("once they are Ready: %v %v", verbs(p), p.Diagnostics)
	}
	converge(t, m, in)
	if _, s = look(); !s.Converged || m.state.Templates["web"].DefaultVersion != 2 {
		t.Errorf("in the end: %+v", s)
	}
	in.Nodes.ByInstance[ids[1]] = model.Node{Name: "ip-2", Since: in.Now}
	if p, s = look(); !p.Empty() || s.Converged || s.Ready().Reason != ReasonNodesNotReady || s.FailureReason != "" {
		t.Errorf("a node that is lost later: %v %+v", verbs(p), s)
	}
}

// Where nobody reads nodes, what is in service counts.
func TestWithoutNodesARolloutIsProvenByMachinesInService(t *testing.T) {
	for _, nodes := range []*model.Nodes{nil, {Err: errNodes}} {
		m, in := newModel(), testInput(groupPool("web", "m5.large", 2))
		converge(t, m, in)
		in = testInput(groupPool("web", "m5.xlarge", 2))
		in.Nodes = nodes
		converge(t, m, in)
		if got := m.state.Templates["web"].DefaultVersion; got != 2 {
			t.Errorf("the default version is %d", got)
		}
	}
}

func TestADegradedNodegroupHasNotConverged(t *testing.T) {
	m, in := newModel(), testInput(nodegroupPool("ng", 2))
	converge(t, m, in)
	m.behind()
	converge(t, m, in)
	name := observed.NodegroupName{Cluster: "c", Name: "ng"}
	n := m.state.Nodegroups[name]
	n.Status, n.HealthIssues = "DEGRADED", []observed.HealthIssue{{Code: "AccessDenied", Message: "nodes cannot authenticate"}}
	m.state.Nodegroups[name] = n
	p, full := m.pass(t, in)
	if s := Statuses(full, p)[0]; s.Converged || !s.Rests() || !strings.Contains(s.Ready().Message, "nodes cannot authenticate") || s.FailureReason != "nodegroup-degraded" {
		t.Errorf("%+v", s)
	}
}
