package plan

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// at gives an input's EKS cluster a Kubernetes version and a status.
func at(in model.Input, version, status string) model.Input {
	in.Answers = maps.Clone(in.Answers)
	in.Answers[eksLookup] = observed.Answer{Cluster: &observed.EKSCluster{Name: "c", Version: version, Status: status}}
	return in
}

// selfManaged is a group whose machines join the EKS cluster.
func selfManaged(version string, replicas int32) intent.Pool {
	p := groupPool("web", "m5.large", replicas)
	p.ControlPlane, p.Version = eksLookup, version
	p.LaunchTemplate.Data.KeyName = "key-" + version // what the version decides
	return p
}

func ownImage(version string) intent.Pool {
	p := nodegroupPool("ng", 2)
	p.Version, p.Nodegroup.Version, p.Nodegroup.AMIType = version, strings.TrimPrefix(version, "v"), ""
	p.LaunchTemplate = &intent.LaunchTemplate{Name: "ng", Image: imageLookup, Data: intent.TemplateData{KeyName: "key-" + version}}
	return p
}

func eksImage(version string) intent.Pool {
	p := nodegroupPool("ng", 2)
	p.Version, p.Nodegroup.Version = version, strings.TrimPrefix(version, "v")
	return p
}

// behind gives each nodegroup its group with as many machines as it wants.
func (m *fakeAWS) behind() {
	for name, n := range m.state.Nodegroups {
		n.GroupNames = []string{"eks-" + name.Name}
		m.state.Nodegroups[name] = n
		g := m.state.Groups["eks-"+name.Name]
		if g.Tags == nil {
			g.Tags = map[string]observed.GroupTag{observed.TagNodegroup: {Value: name.Name}}
		}
		g.Name, g.DesiredCapacity, g.Instances = "eks-"+name.Name, n.DesiredSize, nil
		for i := range n.DesiredSize {
			g.Instances = append(g.Instances, observed.Instance{ID: "i-" + name.Name + strconv.Itoa(int(i)), Zone: "us-east-1a", LifecycleState: "InService", Health: "Healthy"})
		}
		m.state.Groups[g.Name] = g
	}
}

// A step that waits for the control plane is held, is no fault and no drift, keeps the
// target from having converged, and runs once the control plane is there.
func TestNoKubeletIsNewerThanItsAPIServer(t *testing.T) {
	bigger := func(p intent.Pool) intent.Pool {
		p.Replicas.Value = 3
		if p.Nodegroup != nil {
			p.Nodegroup.MaxSize.Value = 3
		}
		return p
	}
	for name, tc := range map[string]struct {
		before, after intent.Pool
		made          bool
		want          []string
	}{
		"a new group":     {after: selfManaged("v1.34.1", 2), want: []string{"create launch-template web held:control-plane", "create auto-scaling-group web held:control-plane"}},
		"a new nodegroup": {after: eksImage("v1.34"), want: []string{"create nodegroup ng held:control-plane"}},
		"a group": {made: true, before: selfManaged("v1.33.0", 2), after: bigger(selfManaged("v1.34.1", 2)), want: []string{
			"update launch-template web held:control-plane", "update auto-scaling-group web", "rollout auto-scaling-group web held:control-plane"}},
		"an empty group": {made: true, before: selfManaged("v1.33.0", 0), after: selfManaged("v1.34.1", 0), want: []string{
			"update launch-template web held:control-plane", "update auto-scaling-group web held:control-plane"}},
		"a nodegroup": {made: true, before: eksImage("v1.33"), after: bigger(eksImage("v1.34")), want: []string{"update nodegroup ng", "rollout nodegroup ng held:control-plane"}},
		"a nodegroup with its own image": {made: true, before: ownImage("v1.33"), after: ownImage("v1.34"), want: []string{
			"update launch-template ng held:control-plane", "rollout nodegroup ng held:control-plane"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel()
			in := at(testInput(tc.before), "1.33", "ACTIVE")
			if tc.made {
				converge(t, m, in)
				m.behind()
				converge(t, m, in)
				p, full := m.pass(t, in)
				in.Memory.Converged = map[string]model.LastConverged{}
				RememberConverged(in.Memory.Converged, nil, full, p, Statuses(full, p))
			}
			behind := at(testInput(tc.after), "1.33", "ACTIVE")
			behind.Memory, behind.Policy.ReportOnly = in.Memory, false
			p, _ := m.pass(t, behind)
			if d := cmp.Diff(tc.want, verbs(p)); d != "" {
				t.Fatalf("(-want +got):\n%s", d)
			}
			if p.Diagnostics.HasErrors() {
				t.Errorf("waiting is a fault: %v", p.Diagnostics)
			}
			for _, s := range p.Steps {
				if s.Drift != nil || s.Held != "" && s.HeldReason == "" {
					t.Errorf("%+v", s)
				}
			}
			m.apply(p)
			m.behind()
			p, full := m.pass(t, behind)
			s := Statuses(full, p)[0]
			if s.Converged || s.FailureReason != "" || s.Ready().Reason != "WaitingForControlPlane" || s.Ready().Severity != "Info" {
				t.Errorf("while it waits: %+v", s)
			}
			if want := map[bool]Phase{true: PhaseRunning, false: PhasePending}[tc.made]; s.Phase != want {
				t.Errorf("phase: got %s, want %s", s.Phase, want)
			}
			r := &Report{Source: "fleet", Revision: "abc", Plan: p, Pools: []PoolStatus{s}, Diagnostics: p.Diagnostics}
			stands := Standing{}.After(r)
			if why := WaitFor("fleet", "abc", "first", "", 0, stands); !strings.Contains(why, "is held (control-plane)") {
				t.Errorf("the next wave: %q", why)
			}

			there := at(testInput(tc.after), "1.34", "ACTIVE")
			converge(t, m, there)
			m.behind()
			converge(t, m, there)
			p, full = m.pass(t, there)
			if s := Statuses(full, p)[0]; !p.Empty() || !s.Converged {
				t.Errorf("with the control plane there: %v %+v", verbs(p), s)
			}
		})
	}
}

// Of other clusters a kubeconfig tells the version, where there is one.
func TestTheAPIServerOfOtherClusters(t *testing.T) {
	pool := groupPool("web", "m5.large", 2)
	pool.Version = "v1.34.0"
	for version, want := range map[string][]string{
		"v1.33.9-eks-1": {"create launch-template web held:control-plane", "create auto-scaling-group web held:control-plane"},
		"v1.34.0":       {"create launch-template web", "create auto-scaling-group web"},
		"":              {"create launch-template web", "create auto-scaling-group web"},
	} {
		in := testInput(pool)
		in.Nodes = &model.Nodes{APIServer: version}
		p, _ := newModel().pass(t, in)
		if d := cmp.Diff(want, verbs(p)); d != "" {
			t.Errorf("%q (-want +got):\n%s", version, d)
		}
	}
}

func TestAKubeletThatIsTooOldIsAWarning(t *testing.T) {
	for version, want := range map[string]bool{"1.37": false, "1.38": true} {
		p, _ := newModel().pass(t, at(testInput(selfManaged("v1.34.0", 2)), version, "ACTIVE"))
		if got := len(codes(p)) == 1 && codes(p)[0] == "kubelet-too-old"; got != want || p.Runnable() != 2 {
			t.Errorf("API servers on %s: %v %v", version, codes(p), verbs(p))
		}
	}
}

// If AWS denies weir access, nothing is held back, and a diagnostic names the missing
// action. It is not needed with a kubeconfig, or if there is nothing to hold.
func TestAControlPlaneThatCannotBeReadIsSaid(t *testing.T) {
	denied := observed.Answer{Code: "access-denied", Problem: "AWS denies weir access: not authorized to perform: eks:DescribeCluster"}
	for name, tc := range map[string]struct {
		version string
		answer  observed.Answer
		nodes   *model.Nodes
		want    bool
	}{
		"denied":         {"v1.34.0", denied, nil, true},
		"a kubeconfig":   {"v1.34.0", denied, &model.Nodes{APIServer: "v1.34.0"}, false},
		"no answer yet":  {"v1.34.0", denied, &model.Nodes{}, true},
		"no version":     {"", denied, nil, false},
		"read":           {"v1.34.0", observed.Answer{Cluster: &observed.EKSCluster{Name: "prod", Version: "1.34", Status: "ACTIVE"}}, nil, false},
		"not there":      {"v1.34.0", observed.Answer{Code: "cluster-not-found", Problem: "there is no EKS cluster"}, nil, false},
		"another reason": {"v1.34.0", observed.Answer{Code: "lookup-refused", Problem: "AWS refuses the call: x"}, nil, true},
	} {
		pool := selfManaged(tc.version, 2)
		in := testInput(pool)
		in.Answers[pool.ControlPlane], in.Nodes = tc.answer, tc.nodes
		p, _ := newModel().pass(t, in)
		said := slices.Contains(codes(p), "control-plane-unread")
		if said != tc.want || p.Runnable() != 2 || p.Diagnostics.HasErrors() {
			t.Errorf("%s: %v %v", name, p.Diagnostics, verbs(p))
		}
		if said && (!strings.Contains(p.Diagnostics[0].Summary, tc.answer.Problem) || !strings.Contains(p.Diagnostics[0].Summary, "v1.34.0") || !strings.Contains(p.Diagnostics[0].Detail, "eks:DescribeCluster")) {
			t.Errorf("%s: %s %s", name, p.Diagnostics[0].Summary, p.Diagnostics[0].Detail)
		}
	}
}

// A cluster that is being made is waited for, though nothing of the pool can be
// planned that needs its endpoint; one that will never be there is a fault.
func TestAClusterThatIsBeingMade(t *testing.T) {
	needsEndpoint := groupPool("web", "m5.large", 2)
	needsEndpoint.ControlPlane = eksLookup
	needsEndpoint.LaunchTemplate.UserData = intent.UserData{Text: intent.PlaceholderEndpoint, Cluster: eksLookup}
	for name, pool := range map[string]intent.Pool{"group": needsEndpoint, "nodegroup": nodegroupPool("ng", 2)} {
		for _, status := range []string{"CREATING", "PENDING"} {
			p, full := newModel().pass(t, at(testInput(pool), "1.33", status))
			s := Statuses(full, p)[0]
			if len(p.Steps) != 1 || p.Steps[0].Held != step.HeldControlPlane || p.Diagnostics.HasErrors() || s.Phase != PhasePending || s.Converged || s.FailureReason != "" {
				t.Errorf("%s, %s: %v %v %+v", name, status, verbs(p), p.Diagnostics, s)
			}
		}
		p, full := newModel().pass(t, at(testInput(pool), "1.33", "FAILED"))
		if s := Statuses(full, p)[0]; !p.Empty() || s.FailureReason != "cluster-not-ready" || s.Phase != PhaseFailed {
			t.Errorf("%s, FAILED: %v %+v", name, verbs(p), s)
		}
	}
}

func TestMachinesHaveToBeAvailable(t *testing.T) {
	pool := groupPool("web", "m5.large", 2)
	pool.MinReadySeconds = 60
	m, in := newModel(), testInput(pool)
	in.Now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	in.Memory.InService = map[string]time.Time{}
	converge(t, m, in)
	p, full := m.pass(t, in)
	s := Statuses(full, p)[0]
	if s.Converged || s.Ready().Reason != ReasonMinReady || s.Rests() {
		t.Errorf("at once: %+v", s)
	}
	full.Memory.InService, full.Now = model.InService(full), in.Now.Add(time.Minute)
	if s := Statuses(full, p)[0]; !s.Converged {
		t.Errorf("after a minute: %+v", s)
	}
}

// Machines that a refresh leaves alone run on as they were: that is not what Git says.
func TestMachinesThatARefreshLeftAlone(t *testing.T) {
	m, in := newModel(), testInput(groupPool("web", "m5.large", 2))
	converge(t, m, in)
	in = testInput(groupPool("web", "m5.xlarge", 2))
	converge(t, m, in)
	g := m.state.Groups["web"]
	g.Instances[0].Template.Version, g.Instances[0].Protected = "1", true
	m.state.Groups["web"] = g
	p, full := m.pass(t, in)
	s := Statuses(full, p)[0]
	if !p.Empty() || s.Converged || !s.Rests() || s.Ready().Reason != "RolloutIncomplete" {
		t.Fatalf("%v %+v", verbs(p), s)
	}
	stands := Standing{}.After(&Report{Revision: "abc", Plan: p, Pools: []PoolStatus{s}})
	if stands.Converged || !strings.Contains(stands.Why, "default/web: 1 instances do not have the wanted version") {
		t.Errorf("%+v", stands)
	}
}

// EKS may describe a nodegroup as it was although it has taken an update.
func TestAnUpdateThatTheNodegroupDoesNotShowYet(t *testing.T) {
	m, in := newModel(), testInput(nodegroupPool("ng", 2))
	converge(t, m, in)
	in = testInput(nodegroupPool("ng", 5))
	p, _ := m.pass(t, in)
	name := observed.NodegroupName{Cluster: "c", Name: "ng"}
	in.Memory.Started = map[observed.NodegroupName]model.StartedUpdate{name: {UpdateID: "u", Fingerprint: p.Steps[0].Fingerprint}}
	m.state.Updates[name] = observed.NodegroupUpdate{ID: "u", Status: "InProgress"}
	p, full := m.pass(t, in)
	if s := Statuses(full, p)[0]; !p.Empty() || s.Converged || s.Rests() {
		t.Errorf("%v %+v", verbs(p), s)
	}
}

func TestWhatWasNeverMadeIsNoDrift(t *testing.T) {
	m := newModel()
	for _, pool := range []intent.Pool{groupPool("web", "m5.large", 2), nodegroupPool("ng", 2)} {
		in := testInput(pool)
		in.Policy.ReportOnly = true
		p, full := m.pass(t, in)
		for _, s := range p.Steps {
			if s.Drift != nil {
				t.Errorf("%s was never made: %+v", pool.Key, s)
			}
		}
		for _, c := range Statuses(full, p)[0].Conditions {
			if c.Type == "Drifted" {
				t.Errorf("%s: %+v", pool.Key, c)
			}
		}
	}
}

// Without a kubeconfig nothing tells which version a self-managed control plane has: an
// upgrade of a running pool says that it does not wait for it, and other changes say nothing.
func TestAnUpgradeThatCannotWaitSaysSo(t *testing.T) {
	pool := func(version, boot string) intent.Pool {
		p := groupPool("web", "m5.large", 2)
		p.Version, p.LaunchTemplate.UserData = version, intent.UserData{Text: boot}
		return p
	}
	for name, tt := range map[string]struct {
		to    intent.Pool
		nodes *model.Nodes
		path  bool
		want  string
	}{
		"no kubeconfig":     {pool("v1.34.0", "boot two"), nil, false, "the target has no kubeconfigFile"},
		"a directory":       {pool("v1.34.0", "boot two"), nil, true, "a plan of a directory reads no cluster"},
		"an old cluster":    {pool("v1.34.0", "boot two"), &model.Nodes{APIServer: "v1.33.0"}, false, ""},
		"no answer":         {pool("v1.34.0", "boot two"), &model.Nodes{}, false, "its cluster did not answer with a version"},
		"an error":          {pool("v1.34.0", "boot two"), &model.Nodes{Err: errors.New("slow")}, false, "its cluster could not be read: slow"},
		"nothing of a node": {pool("v1.33.0", "boot one"), nil, false, ""},
	} {
		m := newModel()
		converge(t, m, testInput(pool("v1.33.0", "boot one")))
		in := testInput(tt.to)
		in.Nodes, in.Policy.OwnTargetOnly = tt.nodes, tt.path
		p, _ := m.pass(t, in)
		i := slices.Index(codes(p), "control-plane-unknown")
		switch {
		case (i >= 0) != (tt.want != ""):
			t.Errorf("%s: %v, %v", name, verbs(p), p.Diagnostics)
		case i >= 0 && (!strings.HasSuffix(p.Diagnostics[i].Summary, tt.want) || !strings.Contains(p.Diagnostics[i].Summary, "v1.34.0") || p.Diagnostics[i].Detail == ""):
			t.Errorf("%s: %s", name, p.Diagnostics[i].Summary)
		}
	}
}
