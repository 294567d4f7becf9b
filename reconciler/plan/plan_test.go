package plan

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// converge applies until the plan is empty and returns how many passes wrote.
func converge(t testing.TB, m *fakeAWS, in model.Input) int {
	t.Helper()
	for n := range 8 {
		p, _ := m.pass(t, in)
		if p.Runnable() == 0 {
			return n
		}
		m.apply(p)
	}
	t.Fatal("no convergence in 8 passes")
	return 0
}

func verbs(p *Plan) []string {
	out := []string{}
	for _, s := range p.Steps {
		line := string(s.Verb) + " " + string(s.Resource) + " " + s.Name
		if s.Held != "" {
			line += " held:" + string(s.Held)
		}
		if s.Later {
			line += " later"
		}
		out = append(out, line)
	}
	return out
}

func codes(p *Plan) []string {
	out := []string{}
	for _, d := range p.Diagnostics {
		out = append(out, d.Code)
	}
	return out
}

func TestANewGroupPoolTakesTwoWritesAndThenNone(t *testing.T) {
	m, in := newModel(), testInput(groupPool("web", "m5.large", 2))
	if n := converge(t, m, in); n != 1 {
		t.Errorf("passes that wrote: got %d, want 1", n)
	}
	want := []string{"step.CreateLaunchTemplate web", "step.CreateGroup web"}
	if d := cmp.Diff(want, m.writes); d != "" {
		t.Errorf("writes (-want +got):\n%s", d)
	}
	p, full := m.pass(t, in)
	if !p.Empty() || p.Summary.Unchanged != 1 {
		t.Errorf("second plan: got %v, want none", verbs(p))
	}
	s := Statuses(full, p)[0]
	if s.Phase != PhaseRunning || !s.Converged || s.ReadyReplicas != 2 || s.LaunchTemplateVersion != "1" {
		t.Errorf("status: got %+v", s)
	}
}

func TestAChangedTemplateRollsByRefreshAndThenMovesTheDefault(t *testing.T) {
	m := newModel()
	converge(t, m, testInput(groupPool("web", "m5.large", 3)))
	in := testInput(groupPool("web", "m5.xlarge", 3))
	p, _ := m.pass(t, in)
	if d := cmp.Diff([]string{"update launch-template web", "rollout auto-scaling-group web"}, verbs(p)); d != "" {
		t.Fatalf("steps (-want +got):\n%s", d)
	}
	if p.Steps[1].Instances != 3 || !p.Steps[1].Disruptive {
		t.Errorf("rollout: got %d instances, disruptive %v", p.Steps[1].Instances, p.Steps[1].Disruptive)
	}
	ch := p.Steps[0].Changes[0]
	if ch.Field != "awsLaunchTemplate.instanceType" || ch.From != "m5.large" || ch.To != "m5.xlarge" {
		t.Errorf("change: got %+v", ch)
	}
	m.apply(p)
	p, _ = m.pass(t, in)
	if d := cmp.Diff([]string{"update launch-template web"}, verbs(p)); d != "" {
		t.Fatalf("after the rollout (-want +got):\n%s", d)
	}
	converge(t, m, in)
	if got := m.state.Templates["web"].DefaultVersion; got != 2 {
		t.Errorf("default version: got %d, want 2", got)
	}
}

func TestACrashBetweenVersionAndRefreshLosesNothing(t *testing.T) {
	m := newModel()
	converge(t, m, testInput(groupPool("web", "m5.large", 3)))
	in := testInput(groupPool("web", "m5.xlarge", 3))
	p, _ := m.pass(t, in)
	m.do(p.Steps[0].Do, step.Made{}) // the version is made, then the process dies
	p, _ = m.pass(t, in)
	if d := cmp.Diff([]string{"rollout auto-scaling-group web"}, verbs(p)); d != "" {
		t.Errorf("after the restart (-want +got):\n%s", d)
	}
}

func TestARevertUsesTheVersionThatStillRuns(t *testing.T) {
	m := newModel()
	converge(t, m, testInput(groupPool("web", "m5.large", 3)))
	p, _ := m.pass(t, testInput(groupPool("web", "m5.xlarge", 3)))
	m.do(p.Steps[0].Do, step.Made{})
	p, _ = m.pass(t, testInput(groupPool("web", "m5.large", 3)))
	if !p.Empty() {
		t.Errorf("revert to what runs: got %v, want nothing", verbs(p))
	}
}

func TestANewImageAloneRollsNothing(t *testing.T) {
	m, in := newModel(), testInput(groupPool("web", "m5.large", 3))
	converge(t, m, in)
	in.Answers = maps.Clone(in.Answers)
	in.Answers[imageLookup] = observed.Answer{Image: &observed.Image{ID: "ami-2", RootDevice: "/dev/sda1", RootSize: 8}}
	if p, _ := m.pass(t, in); !p.Empty() {
		t.Errorf("a newer image: got %v, want nothing", verbs(p))
	}
	changed := testInput(groupPool("web", "m5.2xlarge", 3))
	changed.Answers = in.Answers
	p, _ := m.pass(t, changed)
	v, ok := p.Steps[0].Do.(step.CreateLaunchTemplateVersion)
	if !ok || v.Data.ImageID != "ami-2" {
		t.Errorf("a change of the manifest takes the newer image along: got %+v", p.Steps[0].Do)
	}
}

func TestAFailedRefreshIsParkedUntilTheIntentChanges(t *testing.T) {
	for status, code := range map[string]string{"Failed": "rollout-failed", "RollbackSuccessful": "rollout-failed", "Cancelled": "rollout-cancelled"} {
		t.Run(status, func(t *testing.T) {
			m := newModel()
			converge(t, m, testInput(groupPool("web", "m5.large", 3)))
			in := testInput(groupPool("web", "m5.xlarge", 3))
			p, _ := m.pass(t, in)
			m.do(p.Steps[0].Do, step.Made{})
			tmpl := m.state.Templates["web"]
			m.state.Refreshes["web"] = observed.Refresh{ID: "r-1", Status: status, Reason: "no capacity", Template: observed.TemplateRef{ID: tmpl.ID, Version: "2"}}
			p, full := m.pass(t, in)
			if !p.Empty() || len(codes(p)) != 1 || codes(p)[0] != code {
				t.Errorf("parked: got %v %v, want no step and %s", verbs(p), codes(p), code)
			}
			if d := p.Diagnostics[0].Detail; !strings.HasSuffix(d, "in Git tries again, and so does weir reconcile blue --retry") {
				t.Errorf("the way out: got %q", d)
			}
			if s := Statuses(full, p)[0]; s.Phase != PhaseFailed || s.FailureReason != code {
				t.Errorf("status: got %s %s", s.Phase, s.FailureReason)
			}
			in.Memory.Refusals.Retry = map[string]bool{"default/web": true}
			if p, _ = m.pass(t, in); len(p.Steps) != 1 {
				t.Errorf("retry: got %v, want the rollout", verbs(p))
			}
			if p, _ = m.pass(t, testInput(groupPool("web", "m5.2xlarge", 3))); len(p.Steps) != 2 {
				t.Errorf("new intent: got %v, want version and rollout", verbs(p))
			}
		})
	}
}

func TestARunningRefreshIsLeftAloneOrSuperseded(t *testing.T) {
	m := newModel()
	converge(t, m, testInput(groupPool("web", "m5.large", 3)))
	in := testInput(groupPool("web", "m5.xlarge", 3))
	p, _ := m.pass(t, in)
	m.do(p.Steps[0].Do, step.Made{})
	tmpl := m.state.Templates["web"]
	m.state.Refreshes["web"] = observed.Refresh{ID: "r-1", Status: "InProgress", Percentage: 40, Template: observed.TemplateRef{ID: tmpl.ID, Version: "2"}}
	p, full := m.pass(t, in)
	if !p.Empty() {
		t.Errorf("while it runs: got %v, want nothing", verbs(p))
	}
	if s := Statuses(full, p)[0]; s.Rollout == nil || s.Rollout.Percentage != 40 || s.Converged {
		t.Errorf("status: got %+v", s)
	}
	resized := groupPool("web", "m5.xlarge", 3)
	resized.Group.MaxSize = 12
	if p, _ = m.pass(t, testInput(resized)); len(p.Steps) != 1 || p.Steps[0].Verb != step.Update {
		t.Errorf("a commit that leaves the launch configuration alone: got %v", verbs(p))
	}
	p, _ = m.pass(t, testInput(groupPool("web", "m5.2xlarge", 3)))
	if _, ok := p.Steps[len(p.Steps)-1].Do.(step.CancelRefresh); !ok {
		t.Errorf("a newer launch configuration: got %v, want the refresh cancelled", verbs(p))
	}
}

func TestDriftIsShownWithWhatItWasAndPutBack(t *testing.T) {
	m, in := newModel(), testInput(groupPool("web", "m5.large", 2))
	converge(t, m, in)
	g := m.state.Groups["web"]
	g.MaxSize = 7
	m.state.Groups["web"] = g
	p, _ := m.pass(t, in)
	want := []step.Change{{Field: "maxSize", From: int32(7), To: int32(10), Object: ref("AWSMachinePool", "web"), Path: intent.Path{"spec", "maxSize"}}}
	if d := cmp.Diff(want, p.Steps[0].Changes); d != "" {
		t.Errorf("changes (-want +got):\n%s", d)
	}
	converge(t, m, in)
	if m.state.Groups["web"].MaxSize != 10 {
		t.Error("maxSize was not put back")
	}
}

func TestAnUnwrittenOrExternallyManagedSizeIsLeftAlone(t *testing.T) {
	for name, mutate := range map[string]func(*intent.Pool){
		"unwritten": func(p *intent.Pool) { p.Replicas.Written = false },
		"external":  func(p *intent.Pool) { p.ReplicasManagedExternally = true },
	} {
		t.Run(name, func(t *testing.T) {
			pool := groupPool("web", "m5.large", 2)
			mutate(&pool)
			m, in := newModel(), testInput(pool)
			converge(t, m, in)
			g := m.state.Groups["web"]
			g.DesiredCapacity = 5
			g.Instances = m.launch(g, g.Instances)
			m.state.Groups["web"] = g
			if p, _ := m.pass(t, in); !p.Empty() {
				t.Errorf("got %v, want nothing", verbs(p))
			}
		})
	}
}

func TestAnUnansweredLookupBlocksItsPoolOnly(t *testing.T) {
	m, in := newModel(), testInput(groupPool("api", "m5.large", 1), nodegroupPool("ng", 1))
	delete(in.Answers, roleLookup)
	p, _ := m.pass(t, in)
	if d := cmp.Diff([]string{"lookup-unanswered"}, codes(p)); d != "" {
		t.Errorf("codes (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"create launch-template api", "create auto-scaling-group api"}, verbs(p)); d != "" {
		t.Errorf("steps (-want +got):\n%s", d)
	}
	// It is not known whether the other one is as wanted.
	if p.Summary != (Summary{Create: 1}) {
		t.Errorf("summary: got %+v", p.Summary)
	}
}

// A question is blamed on the field that asks it, also where that is one of the
// MachinePool.
func TestAProblemIsShownWhereItsQuestionIsWritten(t *testing.T) {
	pool := groupPool("web", "m5.large", 1)
	pool.MachinePool = intent.ObjectRef{APIVersion: "cluster.x-k8s.io/v1beta1", Kind: "MachinePool", Namespace: "default", Name: "web"}
	named := pool.Group.Subnets
	inZones := intent.Lookup{Kind: intent.Subnets, Zones: "eu-west-1z"}
	for name, tt := range map[string]struct {
		lookup intent.Lookup
		domain bool
		want   string
	}{
		"subnets":           {named, false, "AWSMachinePool default/web spec.subnets"},
		"availabilityZones": {inZones, false, "AWSMachinePool default/web spec.availabilityZones"},
		"failureDomains":    {inZones, true, "MachinePool default/web spec.failureDomains"},
	} {
		t.Run(name, func(t *testing.T) {
			pool := pool
			group := *pool.Group
			group.Subnets, pool.Group, pool.FailureDomains = tt.lookup, &group, tt.domain
			m, in := newModel(), testInput(pool)
			in.Answers[tt.lookup] = observed.Answer{Code: "subnets-not-found", Problem: "there is none"}
			p, state := m.pass(t, in)
			if d := p.Diagnostics[0]; d.Object+" "+d.Field != tt.want {
				t.Errorf("got %s %s, want %s", d.Object, d.Field, tt.want)
			}
			if s := Statuses(state, p)[0]; s.FailureReason != "subnets-not-found" {
				t.Errorf("the pool's status: got %q", s.FailureReason)
			}
		})
	}
}

func TestPausedAndSuspendedPoolsArePlannedAndNotWritten(t *testing.T) {
	pool := groupPool("web", "m5.large", 2)
	pool.Paused = true
	m, in := newModel(), testInput(pool)
	p, _ := m.pass(t, in)
	m.apply(p)
	if len(p.Steps) != 2 || p.Steps[0].Held != step.HeldPaused || len(m.writes) != 0 {
		t.Errorf("paused: got %v, writes %v", verbs(p), m.writes)
	}
}

func TestBeingReplacedIsNotBeingPruned(t *testing.T) {
	m := newModel()
	renamed := func(suffix string) model.Input {
		var pools []intent.Pool
		for i := range 5 {
			name := fmt.Sprintf("p%d", i)
			p := groupPool(name, "m5.large", 1)
			p.Group.Name, p.LaunchTemplate.Name, p.AllowReplace = name+suffix, name+suffix, true
			pools = append(pools, p)
		}
		return testInput(pools...)
	}
	converge(t, m, renamed(""))
	converge(t, m, renamed("-new"))
	if len(m.state.Groups) != 5 || len(m.state.Templates) != 5 {
		t.Errorf("left: %d groups and %d templates, want 5 of each", len(m.state.Groups), len(m.state.Templates))
	}
}
