package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// converge applies until the plan is empty and returns how many passes wrote.
func converge(t testing.TB, m *model, in basis.Input) int {
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

func TestWhatIsNotOursIsAConflictAndStaysUntouched(t *testing.T) {
	foreign := map[string]map[string]string{
		"untagged":      {},
		"other owner":   {observed.TagOwner: "other", observed.TagTarget: "blue", observed.TagSource: "0123456789ab"},
		"other source":  {observed.TagOwner: "prod", observed.TagTarget: "blue", observed.TagSource: "ffffffffffff"},
		"capa":          {observed.TagClusterPrefix + "c": "owned"},
		"eks nodegroup": {observed.TagOwner: "prod", observed.TagTarget: "blue", observed.TagSource: "0123456789ab", observed.TagNodegroup: "ng"},
	}
	for name, tags := range foreign {
		t.Run("group "+name, func(t *testing.T) {
			m, in := newModel(), testInput(groupPool("web", "m5.large", 2), groupPool("api", "m5.large", 1))
			g := observed.Group{Name: "web", MinSize: 1, MaxSize: 1, Tags: map[string]observed.GroupTag{}}
			for k, v := range tags {
				g.Tags[k] = observed.GroupTag{Value: v}
			}
			m.state.Groups["web"] = g
			p, _ := m.pass(t, in)
			m.apply(p)
			if d := cmp.Diff(g, m.state.Groups["web"]); d != "" {
				t.Errorf("the foreign group changed (-before +after):\n%s", d)
			}
			if _, ok := m.state.Templates["web"]; ok {
				t.Error("a template was made for a pool in conflict")
			}
			if _, ok := m.state.Groups["api"]; !ok {
				t.Error("the other pool was not made")
			}
			if !strings.Contains(fmt.Sprint(verbs(p)), "held:conflict") {
				t.Errorf("steps: got %v, want a held conflict", verbs(p))
			}
		})
	}
	t.Run("template", func(t *testing.T) {
		m, in := newModel(), testInput(groupPool("web", "m5.large", 2))
		m.state.Templates["web"] = observed.Template{ID: "lt-x", Name: "web", LatestVersion: 1, DefaultVersion: 1, Versions: map[int64]observed.TemplateVersion{1: {Number: 1}}}
		p, _ := m.pass(t, in)
		m.apply(p)
		if len(m.writes) != 0 {
			t.Errorf("writes: got %v, want none", m.writes)
		}
	})
}

func TestOrphansAreDeletedOnlyUnderTheRules(t *testing.T) {
	pools := func(n int) []intent.Pool {
		var out []intent.Pool
		for i := range n {
			out = append(out, groupPool(fmt.Sprintf("p%02d", i), "m5.large", 1))
		}
		return out
	}
	tests := map[string]struct {
		had, want int
		cluster   string // what the pools' tags name
		mutate    func(*basis.Input)
		deletes   int // groups deleted in the first pass
		code      string
	}{
		"one of ten":             {had: 10, want: 9, deletes: 1},
		"two of ten":             {had: 10, want: 8, deletes: 2},
		"three of ten":           {had: 10, want: 7, code: "prune-refused"},
		"one of one by emptying": {had: 1, want: 0, code: "prune-refused"},
		"pruning off":            {had: 10, want: 9, mutate: func(in *basis.Input) { in.Policy.Prune.Enabled = false }, code: "orphan"},
		"another render broken":  {had: 10, want: 9, mutate: func(in *basis.Input) { in.Fleet.Whole = false }, code: "orphan-kept"},
		"its cluster has a topology": {had: 10, want: 9, mutate: func(in *basis.Input) {
			in.Set.Clusters = []intent.Cluster{{Key: intent.Key{Namespace: "default", Name: "demo"}, TagName: "demo", Topology: true}}
		}, code: "orphan-kept"},
		// With a ClusterClass the name of the EKS cluster, and so the tag, is not in Git.
		"an unknown cluster beside a topology": {had: 10, want: 9, mutate: func(in *basis.Input) {
			in.Set.Clusters = []intent.Cluster{{Key: intent.Key{Namespace: "default", Name: "other"}, TagName: "other", Topology: true}}
		}, code: "orphan-kept"},
		"another cluster has the topology": {had: 10, want: 9, cluster: "c", mutate: func(in *basis.Input) {
			in.Set.Clusters = []intent.Cluster{
				{Key: intent.Key{Namespace: "default", Name: "c"}, TagName: "c"},
				{Key: intent.Key{Namespace: "default", Name: "zz"}, TagName: "zz", Topology: true},
			}
		}, deletes: 1},
		"suspended":              {had: 10, want: 9, mutate: func(in *basis.Input) { in.Policy.Suspended = true }},
		"a count as limit":       {had: 10, want: 7, mutate: func(in *basis.Input) { in.Policy.Prune.Count = 3 }, deletes: 3},
		"all but one at 100 %":   {had: 3, want: 1, mutate: func(in *basis.Input) { in.Policy.Prune.Percent = 100 }, deletes: 2},
		"the last ones at 100 %": {had: 3, want: 0, mutate: func(in *basis.Input) { in.Policy.Prune.Percent = 100 }, code: "prune-refused"},
		"allowed by the trailer": {had: 2, want: 0, mutate: func(in *basis.Input) {
			in.Policy.Prune.Allowed = map[string]bool{"default/p00": true, "default/p01": true}
		}, deletes: 2},
		"only one of two allowed": {had: 4, want: 0, mutate: func(in *basis.Input) { in.Policy.Prune.Allowed = map[string]bool{"default/p00": true} }, deletes: 1, code: "prune-refused"},
		"wanted by another target": {had: 2, want: 1, mutate: func(in *basis.Input) {
			in.Fleet.Wanted[basis.Claim{Resource: step.AutoScalingGroup, Name: "p01"}] = "green"
			in.Fleet.Wanted[basis.Claim{Resource: step.LaunchTemplate, Name: "p01"}] = "green"
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := newModel()
			pools := func(n int) []intent.Pool {
				out := pools(n)
				for i := range out {
					if tc.cluster != "" {
						out[i].Group.Tags[observed.TagClusterPrefix+tc.cluster] = "owned"
						out[i].LaunchTemplate.Tags[observed.TagClusterPrefix+tc.cluster] = "owned"
					}
				}
				return out
			}
			converge(t, m, testInput(pools(tc.had)...))
			m.writes = nil
			in := testInput(pools(tc.want)...)
			if tc.mutate != nil {
				tc.mutate(&in)
			}
			p, _ := m.pass(t, in)
			m.apply(p)
			if got := len(m.writes); got != tc.deletes {
				t.Errorf("deletes: got %v, want %d", m.writes, tc.deletes)
			}
			if tc.code != "" && !strings.Contains(fmt.Sprint(codes(p)), tc.code) {
				t.Errorf("diagnostics: got %v, want %s", codes(p), tc.code)
			}
			if tc.deletes > 0 && tc.code == "" {
				converge(t, m, in)
				if len(m.state.Templates) != tc.want || len(m.state.Groups) != tc.want {
					t.Errorf("left: %d templates, %d groups, want %d of each", len(m.state.Templates), len(m.state.Groups), tc.want)
				}
			}
		})
	}
}

// The limit is a share of the pools that have groups: those of which a template alone is
// left, or whose group is going, would let more go than it says.
func TestWhatIsGoneRaisesNoLimit(t *testing.T) {
	for name, gone := range map[string]func(m *model, pool string){
		"a template alone is left": func(m *model, pool string) { delete(m.state.Groups, pool) },
		"the group is going": func(m *model, pool string) {
			g := m.state.Groups[pool]
			g.Deleting = true
			m.state.Groups[pool] = g
		},
		"the group is drained": func(m *model, pool string) {
			g := m.state.Groups[pool]
			g.MinSize, g.MaxSize, g.DesiredCapacity = 0, 0, 0
			g.Tags[observed.TagDelete] = observed.GroupTag{Value: basis.DeleteDrain}
			m.state.Groups[pool] = g
		},
		"it is spared": func(m *model, pool string) {
			m.state.Groups[pool].Tags[observed.TagPrune] = observed.GroupTag{Value: "disabled"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var pools []intent.Pool
			for i := range 20 {
				pools = append(pools, groupPool(fmt.Sprintf("p%02d", i), "m5.large", 1))
			}
			m := newModel()
			converge(t, m, testInput(pools...))
			for _, p := range pools[10:] {
				gone(m, p.Group.Name)
			}
			p, _ := m.pass(t, testInput(pools[:7]...)) // three of ten, and 20 % is the limit
			for _, s := range p.Steps {
				if s.Resource == step.AutoScalingGroup && s.Verb == step.Delete && slices.ContainsFunc(pools[7:10], func(p intent.Pool) bool { return p.Group.Name == s.Name }) && s.Held != step.HeldPruneLimit {
					t.Errorf("%s is deleted", s.Name)
				}
			}
			if !strings.Contains(fmt.Sprint(p.Diagnostics), "3 of 10 pools would be deleted, more than the limit of 2") {
				t.Errorf("got %v, want prune-refused", p.Diagnostics)
			}
		})
	}
}

// TestGroupsWithoutTheirPoolCountEach: without the tag that names its pool, each group
// counts against the limit by itself.
func TestGroupsWithoutTheirPoolCountEach(t *testing.T) {
	var pools []intent.Pool
	for i := range 10 {
		pools = append(pools, groupPool(fmt.Sprintf("p%02d", i), "m5.large", 1))
	}
	m := newModel()
	converge(t, m, testInput(pools...))
	for _, p := range pools[7:] {
		delete(m.state.Groups[p.Group.Name].Tags, observed.TagPool)
	}
	p, _ := m.pass(t, testInput(pools[:7]...))
	if n := p.Runnable(); n != 0 || !slices.Contains(codes(p), "prune-refused") {
		t.Errorf("%d steps are run of %v, and it says %v", n, p.Steps, p.Diagnostics)
	}
}

func TestAPoolThatMovesToAnotherTargetIsRetagged(t *testing.T) {
	m := newModel()
	converge(t, m, testInput(groupPool("web", "m5.large", 2)))
	in := testInput(groupPool("web", "m5.large", 2))
	in.Policy.Target = "green"
	in.Fleet = basis.NewFleet(map[string][]basis.Claim{"green": basis.Claims(in.Set)}, true)
	p, _ := m.pass(t, in)
	for _, s := range p.Steps {
		if s.Reason != "tags differ" {
			t.Errorf("step: got %s %s, want tags only", s.Verb, s.Reason)
		}
	}
	converge(t, m, in)
	if got := m.state.Groups["web"].Tags[observed.TagTarget].Value; got != "green" {
		t.Errorf("target tag: got %s", got)
	}
	in.Policy.OwnTargetOnly, in.Policy.Target = true, "blue"
	if p, _ = m.pass(t, in); !strings.Contains(fmt.Sprint(codes(p)), "conflict") {
		t.Errorf("path mode: got %v, want a conflict", codes(p))
	}
}

func TestTwoTargetsThatWantOneNameAreBothBlocked(t *testing.T) {
	m, in := newModel(), testInput(groupPool("web", "m5.large", 2))
	in.Fleet = basis.NewFleet(map[string][]basis.Claim{"blue": basis.Claims(in.Set), "green": basis.Claims(in.Set)}, true)
	p, _ := m.pass(t, in)
	if !p.Empty() || codes(p)[0] != "contested-name" {
		t.Errorf("got %v %v", verbs(p), codes(p))
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
	in.Memory.Started = map[observed.NodegroupName]basis.StartedUpdate{name: {UpdateID: "u-1", Fingerprint: p.Steps[0].Fingerprint}}
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

func TestTheDigestIgnoresRevisionAndOrigins(t *testing.T) {
	m, in := newModel(), testInput(groupPool("web", "m5.large", 2))
	a, _ := m.pass(t, in)
	in.Commit = content.Commit{Revision: "999", Subject: "other words"}
	b, _ := m.pass(t, in)
	if a.Digest() != b.Digest() || a.Digest() == "" {
		t.Errorf("digests differ: %s %s", a.Digest(), b.Digest())
	}
	other, _ := m.pass(t, testInput(groupPool("web", "m5.xlarge", 2)))
	if a.Digest() == other.Digest() {
		t.Error("different work has one digest")
	}
	if CombinedDigest([]*Plan{a, other}) != CombinedDigest([]*Plan{other, a}) {
		t.Error("the combined digest depends on the order of targets")
	}
}

func TestThePlanAsJSONHasTheStableSchema(t *testing.T) {
	m := newModel()
	p, _ := m.pass(t, testInput(groupPool("web", "m5.large", 2)))
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if got["schema"] != "weir.dev/plan/v1" || got["target"] != "blue" {
		t.Errorf("got %v", got)
	}
	step, ok := got["steps"].([]any)[0].(map[string]any)
	if !ok {
		t.Fatal("no steps")
	}
	for _, key := range []string{"verb", "resource", "pool", "name", "reason", "disruptive", "instances", "held", "changes"} {
		if _, ok := step[key]; !ok {
			t.Errorf("a step lacks %q: %v", key, step)
		}
	}
}

func TestUserDataNeverAppearsInAPlan(t *testing.T) {
	pool := groupPool("web", "m5.large", 2)
	pool.LaunchTemplate.UserData = intent.UserData{Text: "#cloud-config\ntoken: abcdef.0123456789abcdef\n", Secret: true}
	m, in := newModel(), testInput(pool)
	p, _ := m.pass(t, in)
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "0123456789abcdef") && strings.Contains(string(raw), "token") {
		t.Error("the plan holds user data")
	}
	if !strings.Contains(string(raw), `"hmac:`) {
		t.Error("the plan does not say that user data is set")
	}
}

func TestDescriptionsFitAndReadBack(t *testing.T) {
	d := content.Describe("0123456789abcdef:fedcba9876543210", content.Commit{Revision: "abcdef0123", Subject: strings.Repeat("ü\n", 400)})
	if n := len([]rune(d)); n > 255 {
		t.Errorf("length: got %d", n)
	}
	if odd := content.Describe("0123456789abcdef:fedcba9876543210", content.Commit{Subject: "say\u202eesaercni\x1b\u200b more"}); !strings.HasSuffix(odd, " say esaercni more") {
		t.Errorf("the console is given %q", odd)
	}
	rockets := content.Describe("0123456789abcdef:fedcba9876543210", content.Commit{Revision: "abcdef0123", Subject: strings.Repeat("🚀", 255)})
	if n := len(utf16.Encode([]rune(rockets))); n < 254 || n > 255 || !utf8.ValidString(rockets) {
		t.Errorf("UTF-16 units: got %d of %q", n, rockets)
	}
	got, ok := content.DescriptionHashes(d)
	if !ok || got != (content.Said{Body: "0123456789abcdef", Source: "fedcba9876543210"}) {
		t.Errorf("read back: got %+v %v", got, ok)
	}
	if _, ok := content.DescriptionHashes("made by hand"); ok {
		t.Error("a foreign description was read as weir's")
	}
}

// Hashing on the steady path relies on the order in which the structs declare
// their members.
func TestTemplateDataEncodesCanonically(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.Make[intent.TemplateData]().Draw(t, "data")
		if d := cmp.Diff(string(content.Canonical(data)), string(content.BodyJSON(&data))); d != "" {
			t.Fatalf("members out of order (-canonical +encoded):\n%s", d)
		}
	})
}

func TestBeingReplacedIsNotBeingPruned(t *testing.T) {
	m := newModel()
	renamed := func(suffix string) basis.Input {
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
