package plan

import (
	"slices"
	"testing"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// theirs has the group web launch from what somebody else made, which holds what Git wants
// but for what change does, and takes every mark of weir's away.
func theirs(m *fakeAWS, configuration bool, change func(*intent.TemplateData)) {
	t, g := m.state.Templates["web"], m.state.Groups["web"]
	v := t.Versions[1]
	v.Description, v.Body = "", ""
	v.Data.TagSpecifications = nil
	change(&v.Data)
	delete(m.state.Templates, "web")
	g.Tags, g.Template, g.LaunchConfiguration = map[string]observed.GroupTag{}, observed.TemplateRef{}, "Theirs"
	if configuration {
		m.state.LaunchConfigurations = map[string]observed.TemplateVersion{"Theirs": {Data: v.Data}}
	} else {
		t.Name, t.Tags, t.Versions = "Theirs", map[string]string{}, map[int64]observed.TemplateVersion{1: v}
		m.state.Templates[t.Name] = t
		g.Template, g.LaunchConfiguration = observed.TemplateRef{ID: t.ID, Name: t.Name, Version: "1"}, ""
	}
	g.Instances = slices.Clone(g.Instances)
	for i := range g.Instances {
		g.Instances[i].Template, g.Instances[i].LaunchConfiguration = g.Template, g.LaunchConfiguration
	}
	m.state.Groups["web"] = g
}

// A group that is taken over goes on from a template of weir's own, and machines that a
// launch configuration or another template started stay where these hold what Git wants:
// whatever tags they gave. Git decides about them from then on.
func TestMachinesOfAnotherTemplateStay(t *testing.T) {
	same := func(*intent.TemplateData) {}
	for name, c := range map[string]struct {
		configuration bool
		change        func(*intent.TemplateData)
		stay          bool
	}{
		"a launch configuration":                 {true, same, true},
		"a launch template":                      {false, same, true},
		"a launch configuration of another kind": {true, func(d *intent.TemplateData) { d.KeyName = "other" }, false},
		"a launch template of another kind":      {false, func(d *intent.TemplateData) { d.KeyName = "other" }, false},
		"a launch template with other user data": {false, func(d *intent.TemplateData) { d.UserData = "b3RoZXI=" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel()
			in := testInput(groupPool("web", "m5.large", 2))
			m.converge(t, in)
			theirs(m, c.configuration, c.change)
			before := m.state.Groups["web"].Instances

			asked := in
			asked.Policy.Adoption = model.Adoption{Asked: true}
			p, _ := m.pass(t, asked)
			m.apply(p)
			p, _ = m.pass(t, in)
			rolls := slices.ContainsFunc(p.Steps, func(s step.Step) bool { return s.Disrupts() })
			if rolls == c.stay || slices.ContainsFunc(p.Steps, func(s step.Step) bool { return s.Disrupts() && !s.First }) {
				t.Fatalf("after the adoption: %v", verbs(p))
			}
			if !c.stay {
				return
			}
			want := []string{"create launch-template web", "update auto-scaling-group web"}
			if got := verbs(p); !slices.Equal(got, want) {
				t.Fatalf("after the adoption: %v, want %v", got, want)
			}
			m.apply(p)
			if g := m.state.Groups["web"]; g.Template.Name != "web" || !slices.Equal(g.Instances, before) {
				t.Errorf("the group launches from %v, its machines are %v", g.Template, g.Instances)
			}
			if p, _ = m.pass(t, in); !p.Empty() {
				t.Errorf("afterwards: %v %v", verbs(p), p.Diagnostics)
			}
			// Without what started them nobody can tell, so they are not replaced by weir alone.
			gone := *m
			gone.state.LaunchConfigurations = nil
			gone.state.Templates = map[string]observed.Template{"web": m.state.Templates["web"]}
			if p, _ = gone.pass(t, in); slices.ContainsFunc(p.Steps, func(s step.Step) bool { return s.Disrupts() && !s.First }) {
				t.Errorf("once that is deleted: %v", verbs(p))
			}
			changed := testInput(groupPool("web", "m5.xlarge", 2))
			if p, _ = m.pass(t, changed); !slices.ContainsFunc(p.Steps, func(s step.Step) bool { return s.Verb == step.Rollout && !s.First }) {
				t.Errorf("when Git changes: %v", verbs(p))
			}
		})
	}
}
