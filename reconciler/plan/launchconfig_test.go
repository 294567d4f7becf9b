package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// sharing has pools share the launch template of an AWSLaunchConfigTemplate. Those
// of a kind have one AWSLaunchConfig.
func sharing(keep int32, pools ...intent.Pool) []intent.Pool {
	for i := range pools {
		p := &pools[i]
		name := "c-workers-" + map[intent.PoolKind]string{intent.GroupPool: "group", intent.NodegroupPool: "managed"}[p.Kind]
		p.LaunchConfig = &intent.LaunchConfig{Key: intent.Key{Namespace: "default", Name: name}, Source: ref("AWSLaunchConfigTemplate", "workers"), KeepVersions: keep}
		if p.LaunchTemplate == nil {
			p.LaunchTemplate = &intent.LaunchTemplate{}
			p.LaunchTemplate.Data.InstanceType = "m5.large"
		}
		p.LaunchTemplate.Name, p.LaunchTemplate.Tags = name, map[string]string{"Name": name}
	}
	return pools
}

const sharedGroup = "c-workers-group"

// converge makes passes until a plan has nothing to do, and returns all steps.
func (m *fakeAWS) converge(t fataler, in model.Input) []step.Step {
	t.Helper()
	var steps []step.Step
	for range 20 {
		p, _ := m.pass(t, in)
		if p.Runnable() == 0 {
			return steps
		}
		steps = append(steps, p.Steps...)
		m.apply(p)
	}
	t.Fatal("no convergence")
	return nil
}

func TestPoolsShareOneTemplateAndOneVersionForEachChange(t *testing.T) {
	m := newModel()
	m.converge(t, testInput(sharing(0, groupPool("a", "m5.large", 2), groupPool("b", "m5.large", 1), nodegroupPool("n", 1))...))
	if d := cmp.Diff([]string{"c-workers-group", "c-workers-managed"}, slices.Sorted(maps.Keys(m.state.Templates))); d != "" {
		t.Fatalf("templates (-want +got):\n%s", d)
	}
	tags := m.state.Templates[sharedGroup].Tags
	if tags[observed.TagLaunchConfig] != "default/"+sharedGroup || tags[observed.TagPool] != "" || m.state.Groups["a"].Tags[observed.TagPool].Value != "default/a" {
		t.Errorf("tags: %v", tags)
	}
	in := testInput(sharing(0, groupPool("a", "m5.xlarge", 2), groupPool("b", "m5.xlarge", 1), nodegroupPool("n", 1))...)
	p, planned := m.pass(t, in)
	if want := []string{"update launch-template " + sharedGroup, "rollout auto-scaling-group a", "rollout auto-scaling-group b"}; !slices.Equal(verbs(p), want) {
		t.Fatalf("plan: got %v, want %v", verbs(p), want)
	}
	st := p.Steps[0]
	if st.Pool != "" || st.LaunchConfig != "default/"+sharedGroup || !slices.Equal(st.Pools, []string{"default/a", "default/b"}) {
		t.Errorf("the step is of %q %q %v", st.Pool, st.LaunchConfig, st.Pools)
	}
	if ch := st.Changes[0]; ch.Field != "template.spec.instanceType" || ch.Object != ref("AWSLaunchConfigTemplate", "workers") || ch.Path.String() != "spec.template.spec.instanceType" {
		t.Errorf("change: %+v", ch)
	}
	if p.Summary != (Summary{Rollout: 2, Unchanged: 1}) {
		t.Errorf("summary: %+v", p.Summary)
	}
	if s := LaunchConfigStatuses(planned, p); len(s) != 2 || s[0].Ready || len(s[0].Pools) != 2 || s[0].Template != "workers" {
		t.Errorf("status before: %+v", s)
	}
	m.converge(t, in)
	tm := m.state.Templates[sharedGroup]
	if tm.LatestVersion != 2 || tm.DefaultVersion != 2 {
		t.Errorf("versions: latest %d, default %d", tm.LatestVersion, tm.DefaultVersion)
	}
	p, planned = m.pass(t, in)
	if s := LaunchConfigStatuses(planned, p); !s[0].Ready || s[0].LatestVersion != 2 || s[0].Conditions[1].Status != "True" || s[0].LaunchTemplateID == "" {
		t.Errorf("status after: %+v", s)
	}
}

// The default version is what every pool has run: one that has not been rolled
// keeps it back, and nothing that it runs is pruned.
func TestAPoolThatDoesNotFollowKeepsDefaultAndVersionsBack(t *testing.T) {
	m := newModel()
	pools := func(step int, paused bool) []intent.Pool {
		list := sharing(1, groupPool("a", "m5.large", 1), groupPool("b", "m5.large", 1))
		for i := range list {
			list[i].LaunchTemplate.Data.KeyName = fmt.Sprint("key-", step)
		}
		list[1].Paused = paused
		return list
	}
	m.converge(t, testInput(pools(1, false)...))
	for step := 2; step <= 5; step++ {
		m.converge(t, testInput(pools(step, true)...))
	}
	tm := m.state.Templates[sharedGroup]
	if got := slices.Sorted(maps.Keys(tm.Versions)); tm.DefaultVersion != 1 || !slices.Equal(got, []int64{1, 4, 5}) {
		t.Errorf("default %d, versions %v", tm.DefaultVersion, got)
	}
	m.converge(t, testInput(pools(5, false)...))
	if tm = m.state.Templates[sharedGroup]; tm.DefaultVersion != 5 || m.state.Groups["b"].Template.Version != "5" {
		t.Errorf("afterwards: default %d, b runs %v", tm.DefaultVersion, m.state.Groups["b"].Template)
	}
}

func TestASharedTemplateGoesAfterItsLastPoolAndCountsForNone(t *testing.T) {
	m := newModel()
	var others []intent.Pool
	for i := range 9 {
		others = append(others, groupPool(fmt.Sprint("p", i), "m5.large", 0))
	}
	m.converge(t, testInput(append(sharing(0, groupPool("a", "m5.large", 1)), others...)...))
	in := testInput(others...)
	p, _ := m.pass(t, in)
	for _, s := range p.Steps {
		if s.Held != "" || s.Later != (s.Resource == step.LaunchTemplate) {
			t.Errorf("%s %s: held %q, later %v", s.Verb, s.Name, s.Held, s.Later)
		}
	}
	m.converge(t, in)
	if _, there := m.state.Templates[sharedGroup]; there || len(m.state.Templates) != 9 {
		t.Errorf("templates left: %v", slices.Sorted(maps.Keys(m.state.Templates)))
	}
	// A render without any pool takes no template along, not even a lone one.
	m = newModel()
	m.converge(t, testInput(sharing(0, groupPool("a", "m5.large", 1))...))
	delete(m.state.Groups, "a")
	p, _ = m.pass(t, testInput())
	if len(p.Steps) != 1 || p.Steps[0].Held != step.HeldPruneLimit {
		t.Errorf("an empty render: %+v", p.Steps)
	}
}

func TestPoolsWaitForATemplateThatIsSomebodyElses(t *testing.T) {
	m := newModel()
	foreign := observed.Template{ID: "lt-foreign", Name: sharedGroup, LatestVersion: 1, DefaultVersion: 1, Tags: map[string]string{observed.TagOwner: "other"}}
	m.state.Templates[sharedGroup] = foreign
	in := testInput(append(sharing(0, groupPool("a", "m5.large", 1)), groupPool("own", "m5.large", 1))...)
	p, in := m.pass(t, in)
	if text := fmt.Sprint(p.Diagnostics); strings.Count(text, "launch-config-not-ready") != 1 || strings.Count(text, "[conflict]") != 1 {
		t.Errorf("diagnostics: %v", text)
	}
	if s := LaunchConfigStatuses(in, p)[0]; s.Ready || s.Conditions[0].Reason != "launch-config-not-ready" || s.LaunchTemplateID != "" {
		t.Errorf("status: %+v", s)
	}
	m.apply(p)
	if _, made := m.state.Groups["a"]; made || len(m.state.Groups) != 1 {
		t.Errorf("groups: %v", slices.Sorted(maps.Keys(m.state.Groups)))
	}
	if d := cmp.Diff(foreign, m.state.Templates[sharedGroup]); d != "" {
		t.Errorf("the foreign template changed:\n%s", d)
	}
}

func TestATemplateChangesHandsBetweenPoolAndLaunchConfig(t *testing.T) {
	m := newModel()
	own := groupPool("a", "m5.large", 1)
	own.LaunchTemplate.Name = sharedGroup
	m.converge(t, testInput(own))
	m.converge(t, testInput(sharing(0, groupPool("a", "m5.large", 1))...))
	if tags := m.state.Templates[sharedGroup].Tags; tags[observed.TagPool] != "" || tags[observed.TagLaunchConfig] == "" {
		t.Errorf("shared: %v", tags)
	}
	m.converge(t, testInput(own))
	if tags := m.state.Templates[sharedGroup].Tags; tags[observed.TagPool] == "" || tags[observed.TagLaunchConfig] != "" {
		t.Errorf("its own again: %v", tags)
	}
}

// After any edits, drift and removals, every pool runs the newest wanted content from one template, as its default version.
func TestRandomEditsOfSharedTemplatesConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel()
		key, size := "k", map[string]int32{"a": 1}
		paused := map[string]bool{}
		input := func() model.Input {
			list := []intent.Pool{groupPool("own", "m5.large", 1)}
			var users []intent.Pool
			for _, n := range slices.Sorted(maps.Keys(size)) {
				p := groupPool(n, "m5.large", size[n])
				p.LaunchTemplate.Data.KeyName, p.Paused = key, paused[n]
				users = append(users, p)
			}
			in := testInput(append(list, sharing(2, users...)...)...)
			in.Policy.Prune.Count = 9
			return in
		}
		name := rapid.SampledFrom([]string{"a", "b", "c"})
		t.Repeat(map[string]func(*rapid.T){
			"edit":  func(t *rapid.T) { key = rapid.SampledFrom([]string{"k", "l", "m", "n"}).Draw(t, "key") },
			"add":   func(t *rapid.T) { size[name.Draw(t, "pool")] = rapid.Int32Range(0, 3).Draw(t, "size") },
			"drop":  func(t *rapid.T) { delete(size, name.Draw(t, "pool")) },
			"pause": func(t *rapid.T) { n := name.Draw(t, "pool"); paused[n] = !paused[n] },
			"move the default": func(*rapid.T) {
				if tm, ok := m.state.Templates[sharedGroup]; ok {
					tm.DefaultVersion = tm.LatestVersion
					m.state.Templates[sharedGroup] = tm
				}
			},
			"delete a group": func(t *rapid.T) { delete(m.state.Groups, name.Draw(t, "pool")) },
			"a pass": func(t *rapid.T) {
				p, _ := m.pass(t, input())
				m.apply(p)
				for n, g := range m.state.Groups {
					if tm := m.state.Templates[g.Template.Name]; tm.ID != g.Template.ID || tm.Versions[model.VersionOf(tm, g.Template)].Number == 0 {
						t.Fatalf("group %s launches from %v, which is gone", n, g.Template)
					}
				}
			},
			"": func(*rapid.T) {},
		})
		clear(paused)
		in := input()
		m.converge(t, in)
		tm, there := m.state.Templates[sharedGroup]
		if there != (len(size) > 0) {
			t.Fatalf("%d pools use it, the template is there: %v", len(size), there)
		}
		for n := range size {
			g := m.state.Groups[n]
			v := model.VersionOf(tm, g.Template)
			if g.Template.ID != tm.ID || tm.Versions[v].Data.KeyName != key || tm.DefaultVersion != v {
				t.Fatalf("pool %s runs %v, the default is %d of %v", n, g.Template, tm.DefaultVersion, slices.Sorted(maps.Keys(tm.Versions)))
			}
		}
	})
}

// A template that pools share and another target wants too is said to be what it
// is, with each target once.
func TestASharedTemplateThatTwoTargetsWant(t *testing.T) {
	in := testInput(sharing(0, groupPool("a", "m5.large", 2), groupPool("b", "m5.large", 1))...)
	other := testInput(sharing(0, groupPool("x", "m5.large", 2), groupPool("y", "m5.large", 1), groupPool("z", "m5.large", 1))...)
	in.Fleet = model.NewFleet(map[string][]model.Claim{"blue": model.Claims(in.Set), "green": model.Claims(other.Set)}, true)
	p, _ := newModel().pass(t, in)
	if !p.Empty() || len(p.Diagnostics) != 2 {
		t.Fatalf("got %v, %v", verbs(p), p.Diagnostics)
	}
	for _, d := range p.Diagnostics {
		if d.Code != "contested-name" || d.Field != "spec.launchConfigRef" || !strings.HasSuffix(d.Summary, "which has its name from AWSLaunchConfigTemplate default/workers, is wanted by more than one target: blue, green") ||
			!strings.Contains(d.Detail, "give the AWSLaunchConfigTemplate another name") {
			t.Errorf("got %s %q %q", d.Field, d.Summary, d.Detail)
		}
	}
}
