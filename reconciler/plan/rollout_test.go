package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// mixed is a pool whose machines may be of several instance types.
func mixed(types ...string) intent.Pool {
	pool := groupPool("web", "m5.large", 3)
	pool.Group.MixedInstancesPolicy = &intent.MixedInstances{
		OnDemandAllocationStrategy: "prioritized", OnDemandPercentageAboveBaseCapacity: 100, SpotAllocationStrategy: "lowest-price",
	}
	for _, t := range types {
		pool.Group.MixedInstancesPolicy.Overrides = append(pool.Group.MixedInstancesPolicy.Overrides, intent.Override{InstanceType: t})
	}
	return pool
}

// A machine whose instance type is no longer wanted is replaced by the refresh that
// skips what matches, so the plan counts it, and a refresh is due while there is one.
func TestMachinesOfTypesThatAreNoLongerWantedAreStale(t *testing.T) {
	types := func(m *fakeAWS, types ...string) {
		g := m.state.Groups["web"]
		g.Instances = slices.Clone(g.Instances)
		for i, kind := range types {
			g.Instances[i].Type = kind
		}
		m.state.Groups["web"] = g
	}
	m := newModel()
	converge(t, m, testInput(mixed("m5.large", "m5.xlarge", "c5.large")))
	types(m, "m5.large", "m5.xlarge", "c5.large")
	if p, _ := m.pass(t, testInput(mixed("m5.large", "m5.xlarge", "c5.large"))); !p.Empty() {
		t.Fatalf("all types are wanted: got %v", verbs(p))
	}
	p, _ := m.pass(t, testInput(mixed("c5.large", "r5.large")))
	if d := cmp.Diff([]string{"rollout auto-scaling-group web"}, verbs(p)); d != "" {
		t.Fatalf("steps (-want +got):\n%s", d)
	}
	if s := p.Steps[0]; s.Instances != 2 || !strings.Contains(s.Reason, "2 of 3 instances have an instance type that is no longer wanted") {
		t.Errorf("two are of types that the policy lost: %d, %s", s.Instances, s.Reason)
	}
	// Without the policy only the template's own type is wanted.
	if p, _ = m.pass(t, testInput(groupPool("web", "m5.large", 3))); len(p.Steps) != 1 || p.Steps[0].Instances != 2 {
		t.Errorf("without a policy: got %v", p.Steps)
	}
	// The group is set to it already and one of its machines is not: a refresh is due.
	in := testInput(mixed("c5.large", "r5.large"))
	converge(t, m, in)
	types(m, "c5.large", "m5.large", "r5.large")
	delete(m.state.Refreshes, "web")
	p, _ = m.pass(t, in)
	if d := cmp.Diff([]string{"rollout auto-scaling-group web"}, verbs(p)); d != "" || p.Steps[0].Instances != 1 {
		t.Errorf("one of a lost type (-want +got):\n%s", d)
	}
	// weir does not know which types AWS picks by attributes.
	byAttributes := mixed()
	byAttributes.Group.MixedInstancesPolicy.Overrides = []intent.Override{{InstanceRequirements: &intent.InstanceRequirements{}}}
	in = testInput(byAttributes)
	converge(t, m, in)
	types(m, "c5.large", "m5.large", "r5.large")
	delete(m.state.Refreshes, "web")
	if p, _ = m.pass(t, in); !p.Empty() {
		t.Errorf("by attributes: got %v", verbs(p))
	}
}

// A rollback under way is cancelled for what is wanted by then, and left alone where
// it leads to that or where nothing else is wanted.
func TestARollbackIsSupersededByWhatElseIsWanted(t *testing.T) {
	m := newModel()
	converge(t, m, testInput(groupPool("web", "m5.large", 3)))
	p, _ := m.pass(t, testInput(groupPool("web", "m5.xlarge", 3)))
	m.do(p.Steps[0].Do, step.Made{})
	g, tmpl := m.state.Groups["web"], m.state.Templates["web"]
	g.Instances = slices.Clone(g.Instances)
	g.Instances[0].Template.Version = "2"
	m.state.Groups["web"] = g
	m.state.Refreshes["web"] = observed.Refresh{ID: "r-1", Status: "RollbackInProgress", Template: observed.TemplateRef{ID: tmpl.ID, Version: "2"}}
	for kind, cancels := range map[string]bool{"m5.xlarge": false, "m5.large": false, "m5.2xlarge": true} {
		p, _ := m.pass(t, testInput(groupPool("web", kind, 3)))
		var cancelled bool
		for _, s := range p.Steps {
			_, is := s.Do.(step.CancelRefresh)
			cancelled = cancelled || is
		}
		if cancelled != cancels || slices.Contains(codes(p), "refresh-ending") == cancels {
			t.Errorf("%s: got %v and %v", kind, verbs(p), codes(p))
		}
	}
}

// A machine that Auto Scaling retains or that somebody put on standby counts no more:
// it neither keeps a pool from converging nor is it waited for, and it is told.
func TestMachinesBesideTheirGroupCountNoMore(t *testing.T) {
	for state, code := range map[string]string{
		"Terminating:Retained": "machines-retained", "Warmed:Terminating:Retained": "machines-retained", "Warmed:Pending:Retained": "machines-retained",
		"Standby": "machines-on-standby", "EnteringStandby": "machines-on-standby",
	} {
		m, in := newModel(), testInput(groupPool("web", "m5.large", 2))
		converge(t, m, in)
		g := m.state.Groups["web"]
		beside := observed.Instance{ID: "i-beside", Type: "m5.large", Zone: "eu-west-1a", LifecycleState: state, Health: "Healthy", Template: g.Instances[0].Template}
		if code == "machines-retained" {
			beside.Health, beside.Template.Version = "Unhealthy", "77"
		}
		g.Instances = append(slices.Clone(g.Instances), beside)
		m.state.Groups["web"] = g
		p, full := m.pass(t, in)
		if !p.Empty() {
			t.Errorf("%s: got %v", state, verbs(p))
		}
		if s := Statuses(full, p)[0]; !s.Converged || s.Replicas != 2 || s.ReadyReplicas != 2 || len(s.ProviderIDList) != 2 {
			t.Errorf("%s: got %+v", state, s)
		}
		if !slices.ContainsFunc(p.Diagnostics, func(d diag.Diagnostic) bool { return d.Code == code && strings.Contains(d.Summary, "i-beside") }) {
			t.Errorf("%s: nobody is told: %v", state, p.Diagnostics)
		}
		// Nor does it fill a place that is empty, also where places are counted by weight.
		g.Instances = g.Instances[1:]
		m.state.Groups["web"] = g
		if p, full = m.pass(t, in); Statuses(full, p)[0].Converged || !g.BelowDesired() || !g.Short() {
			t.Errorf("%s: a machine too few makes the group complete", state)
		}
		g.DesiredCapacity, g.MixedInstancesPolicy = 4, &intent.MixedInstances{Overrides: []intent.Override{{InstanceType: "m5.large", WeightedCapacity: "2"}}}
		if n := g.DesiredInstances(); n != 2 || !g.BelowDesired() {
			t.Errorf("%s: a group of 4 with a machine of weight 2 wants %d machines", state, n)
		}
	}
}

// A group that was set to another version, which nothing runs yet, is set back before it grows:
// what it launched until then would have to be replaced, which nobody approved.
func TestAGroupIsSetBackBeforeItGrows(t *testing.T) {
	m := newModel()
	converge(t, m, testInput(groupPool("web", "m5.large", 1)))
	other := groupPool("web", "m5.xlarge", 1)
	other.Group.Refresh.Disable = true
	converge(t, m, testInput(other))
	in := testInput(groupPool("web", "m5.large", 2))
	p, _ := m.pass(t, in)
	var set []string
	for _, s := range p.Steps {
		if u, ok := s.Do.(step.UpdateGroup); ok {
			for _, c := range s.Changes {
				set = append(set, c.Field)
			}
			if slices.Contains(set, "replicas") && u.Template != nil {
				t.Errorf("it grows with %v", u)
			}
		}
	}
	if diff := cmp.Diff([]string{"launchTemplate.version", "replicas"}, set); diff != "" {
		t.Errorf("what is set (-want +got):\n%s", diff)
	}
	converge(t, m, in)
	if r := m.state.Refreshes["web"]; r.ID != "" {
		t.Errorf("a machine was replaced: %+v", r)
	}
}

// A refresh for another policy replaces no machine if all of them match it, and the plan says
// so; without skip matching it replaces all of them.
func TestARefreshSaysHowManyMachinesItReplaces(t *testing.T) {
	policy := func(change func(*intent.Pool)) intent.Pool {
		pool := mixed("m5.large", "m5.xlarge")
		if change != nil {
			change(&pool)
		}
		return pool
	}
	spot := func(p *intent.Pool) { p.Group.MixedInstancesPolicy.SpotAllocationStrategy = "price-capacity-optimized" }
	for name, tt := range map[string]struct {
		change    func(*intent.Pool)
		instances int
		disrupts  bool
		reason    string
	}{
		"another strategy":      {spot, 0, false, "the mixed instances policy differs; no instance is replaced, as all of them match it"},
		"without skip matching": {func(p *intent.Pool) { spot(p); p.Group.Refresh.SkipMatching = new(false) }, 3, true, "the mixed instances policy differs; skipMatching is false, so all 3 instances are replaced"},
		"types by requirements": {func(p *intent.Pool) {
			p.Group.MixedInstancesPolicy.Overrides = []intent.Override{{InstanceRequirements: &intent.InstanceRequirements{}}}
		}, 0, true, "the mixed instances policy differs; AWS replaces the instances that do not match it"},
		"a type less": {func(p *intent.Pool) {
			p.Group.MixedInstancesPolicy.Overrides = p.Group.MixedInstancesPolicy.Overrides[1:]
		}, 3, true, "3 of 3 instances have an instance type that is no longer wanted"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel()
			converge(t, m, testInput(policy(nil)))
			p, _ := m.pass(t, testInput(policy(tt.change)))
			i := slices.IndexFunc(p.Steps, func(s step.Step) bool { return s.Verb == step.Rollout })
			if i < 0 {
				t.Fatalf("no rollout: %v", verbs(p))
			}
			if s := p.Steps[i]; s.Instances != tt.instances || s.Disruptive != tt.disrupts || s.Reason != tt.reason || !s.Disrupts() {
				t.Errorf("%d instances, disruptive %t: %s", s.Instances, s.Disruptive, s.Reason)
			}
		})
	}
}
