package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// fakeAWS is the smallest AWS that planning can be tested with: it holds a
// state, answers needs and does actions at once. The emulator and the contract
// suite speak for the real wire; this speaks for the planner alone.
type fakeAWS struct {
	state  observed.State
	nextID int
	writes []string
}

func newModel() *fakeAWS {
	return &fakeAWS{state: observed.State{
		Account: "000000000000", Region: "eu-west-1",
		Templates: map[string]observed.Template{}, Groups: map[string]observed.Group{}, Nodegroups: map[observed.NodegroupName]observed.Nodegroup{},
		Refreshes: map[string]observed.Refresh{}, Updates: map[observed.NodegroupName]observed.NodegroupUpdate{}, Clusters: map[string]bool{}, Hooks: map[string]observed.GroupHooks{},
	}}
}

func (m *fakeAWS) id(prefix string) string {
	m.nextID++
	return fmt.Sprintf("%s-%017x", prefix, m.nextID)
}

// observe returns what the owner read gives: only what carries the owner's tag.
func (m *fakeAWS) observe(owner string) observed.State {
	s := observed.State{
		Account: m.state.Account, Region: m.state.Region,
		Templates: map[string]observed.Template{}, Groups: map[string]observed.Group{}, Nodegroups: map[observed.NodegroupName]observed.Nodegroup{},
		Absent:    observed.Absent{Templates: map[string]bool{}, Groups: map[string]bool{}, Nodegroups: map[observed.NodegroupName]bool{}},
		Refreshes: map[string]observed.Refresh{}, Updates: map[observed.NodegroupName]observed.NodegroupUpdate{},
	}
	for n, t := range m.state.Templates {
		if t.Tags[observed.TagOwner] == owner {
			s.Templates[n] = t
		}
	}
	for n, g := range m.state.Groups {
		if g.Tags[observed.TagOwner].Value == owner {
			s.Groups[n] = g
		}
	}
	maps.Copy(s.Nodegroups, m.state.Nodegroups)
	return s
}

func (m *fakeAWS) fill(s observed.State, n observed.Needs) observed.State {
	for _, q := range n.Activities { // AWS says nothing of them
		if s.Activities == nil {
			s.Activities = map[observed.ActivityQuery]observed.Activities{}
		}
		s.Activities[q] = observed.Activities{}
	}
	for _, name := range n.TemplateNames {
		if t, ok := m.state.Templates[name]; ok {
			s.Templates[name] = t
		} else {
			s.Absent.Templates[name] = true
		}
	}
	for _, name := range n.GroupNames {
		if g, ok := m.state.Groups[name]; ok {
			s.Groups[name] = g
		} else {
			s.Absent.Groups[name] = true
		}
	}
	for _, name := range n.Nodegroups {
		if _, ok := m.state.Nodegroups[name]; !ok {
			s.Absent.Nodegroups[name] = true
		}
	}
	for _, name := range n.Refreshes {
		s.Refreshes[name] = m.state.Refreshes[name]
	}
	if n.TemplateUsers {
		s.TemplateUsers = map[string][]string{}
		for _, g := range m.state.Groups {
			s.TemplateUsers[g.Template.ID] = append(s.TemplateUsers[g.Template.ID], g.Name)
		}
	}
	for _, name := range n.Numbers {
		t := s.Templates[name]
		t.Numbers, t.Contents = slices.Sorted(maps.Keys(m.state.Templates[name].Versions)), map[int64]string{}
		for n, v := range m.state.Templates[name].Versions {
			t.Contents[n] = content.Of(v.Description)
		}
		s.Templates[name] = t
	}
	for _, name := range n.VersionUsers {
		users := []observed.VersionUser{}
		for _, g := range m.state.Groups {
			for _, r := range append([]observed.TemplateRef{g.Template}, templatesOf(g.Instances)...) {
				if r.ID == s.Templates[name].ID {
					users = append(users, observed.VersionUser{User: g.Name, Version: r.Version})
				}
			}
		}
		s.VersionUsers = maps.Clone(s.VersionUsers)
		if s.VersionUsers == nil {
			s.VersionUsers = map[string][]observed.VersionUser{}
		}
		s.VersionUsers[name] = users
	}
	for _, name := range n.Hooks {
		s.Hooks = maps.Clone(s.Hooks)
		if s.Hooks == nil {
			s.Hooks = map[string]observed.GroupHooks{}
		}
		s.Hooks[name] = observed.GroupHooks{Hooks: m.state.Hooks[name].Hooks, ReadAtPass: true}
	}
	for _, name := range n.LaunchConfigurations {
		s.LaunchConfigurations = maps.Clone(s.LaunchConfigurations)
		if s.LaunchConfigurations == nil {
			s.LaunchConfigurations = map[string]observed.TemplateVersion{}
		}
		v, there := m.state.LaunchConfigurations[name]
		v.Unknown = v.Unknown || !there
		s.LaunchConfigurations[name] = v
	}
	for _, id := range n.Launched {
		s.Launched = maps.Clone(s.Launched)
		if s.Launched == nil {
			s.Launched = map[string]time.Time{}
		}
		s.Launched[id] = time.Time{}
	}
	for _, name := range n.Updates {
		s.Updates[name] = m.state.Updates[name]
	}
	return s
}

func templatesOf(instances []observed.Instance) []observed.TemplateRef {
	var out []observed.TemplateRef
	for _, i := range instances {
		out = append(out, i.Template)
	}
	return out
}

// pass plans to the end of its needs.
func (m *fakeAWS) pass(t fataler, in model.Input) (*Plan, model.Input) {
	t.Helper()
	state := m.observe(in.Policy.Instance)
	for range 6 {
		in.State = &state
		p, needs := Compute(in)
		if needs.Empty() {
			return p, in
		}
		state = m.fill(state, needs)
	}
	_, needs := Compute(in)
	t.Fatal(fmt.Sprintf("planning never has enough of the state: %+v", needs))
	return nil, in
}

// apply does the steps that run in this pass.
func (m *fakeAWS) apply(p *Plan) {
	made := step.Made{}
	for _, s := range p.Steps {
		if s.Held != "" || s.Later || step.Unmade(step.WithTemplate(s.Do, made)) {
			continue
		}
		m.writes = append(m.writes, fmt.Sprintf("%T %s", s.Do, s.Name))
		m.do(step.WithTemplate(s.Do, made), made)
	}
}

func (m *fakeAWS) do(a step.Action, made step.Made) {
	switch a := a.(type) {
	case step.CreateLaunchTemplate:
		if _, taken := m.state.Templates[a.Name]; taken {
			panic("create template: name taken: " + a.Name)
		}
		t := observed.Template{ID: m.id("lt"), Name: a.Name, DefaultVersion: 1, LatestVersion: 1, Tags: a.Tags,
			Versions: map[int64]observed.TemplateVersion{1: {Number: 1, Description: a.Description, Data: a.Data, Body: content.BodyHash(a.Data)}}}
		m.state.Templates[a.Name] = t
		made.Add(a, observed.TemplateRef{ID: t.ID, Name: t.Name, Version: "1"})
	case step.CreateLaunchTemplateVersion:
		t := m.state.Templates[a.Template.Name]
		t.LatestVersion++
		t.Versions = maps.Clone(t.Versions)
		t.Versions[t.LatestVersion] = observed.TemplateVersion{Number: t.LatestVersion, Description: a.Description, Data: a.Data, Body: content.BodyHash(a.Data)}
		m.state.Templates[t.Name] = t
		made.Add(a, observed.TemplateRef{ID: t.ID, Name: t.Name, Version: strconv.FormatInt(t.LatestVersion, 10)})
	case step.DeleteLaunchTemplateVersions:
		t := m.state.Templates[a.Template.Name]
		t.Versions = maps.Clone(t.Versions)
		for _, n := range a.Versions {
			if n == t.DefaultVersion {
				panic("delete the default version of " + t.Name)
			}
			delete(t.Versions, n)
		}
		m.state.Templates[t.Name] = t
	case step.SetDefaultVersion:
		t := m.state.Templates[a.Template.Name]
		t.DefaultVersion, _ = strconv.ParseInt(a.Template.Version, 10, 64)
		m.state.Templates[t.Name] = t
	case step.DeleteLaunchTemplate:
		delete(m.state.Templates, a.Template.Name)
	case step.TagLaunchTemplate:
		t := m.state.Templates[a.Template.Name]
		t.Tags = observed.WithTags(t.Tags, a.Put)
		for _, k := range a.Remove {
			delete(t.Tags, k)
		}
		m.state.Templates[t.Name] = t
	default:
		m.doGroup(a)
	}
}

func (m *fakeAWS) doGroup(a step.Action) {
	switch a := a.(type) {
	case step.CreateGroup:
		g := a.Group
		g.Instances = m.launch(g, nil)
		m.state.Groups[g.Name] = g
		var hooks []intent.LifecycleHook
		for _, h := range a.LifecycleHooks {
			hooks = append(hooks, observed.HookDefaults(h))
		}
		m.state.Hooks[g.Name] = observed.GroupHooks{Hooks: hooks}
	case step.UpdateGroup:
		g := m.state.Groups[a.Name]
		assign(&g.MinSize, a.MinSize)
		assign(&g.MaxSize, a.MaxSize)
		assign(&g.DesiredCapacity, a.DesiredCapacity)
		g.DesiredCapacity = min(max(g.DesiredCapacity, g.MinSize), g.MaxSize)
		for _, member := range field.GroupMembers() {
			if v := member.Of(&a.GroupSettings); !v.IsZero() {
				member.Of(&g.GroupSettings).Set(v)
			}
		}
		if a.SubnetIDs != nil {
			g.SubnetIDs = a.SubnetIDs
		}
		if a.Template != nil {
			g.Template, g.LaunchConfiguration, g.MixedInstancesPolicy = *a.Template, "", a.MixedInstancesPolicy
		}
		g.Instances = m.launch(g, g.Instances)
		m.state.Groups[g.Name] = g
	case step.StartRefresh:
		g := m.state.Groups[a.Group]
		g.Template, g.MixedInstancesPolicy = a.Template, a.MixedInstancesPolicy
		g.Instances = m.launch(g, nil)
		m.state.Groups[g.Name] = g
		m.state.Refreshes[g.Name] = observed.Refresh{ID: m.id("refresh"), Status: "Successful", Template: a.Template, MixedInstancesPolicy: a.MixedInstancesPolicy}
	case step.CancelRefresh:
		r := m.state.Refreshes[a.Group]
		r.Status = "Cancelled"
		m.state.Refreshes[a.Group] = r
	case step.RollbackRefresh:
		r := m.state.Refreshes[a.Group]
		r.Status = "RollbackSuccessful"
		m.state.Refreshes[a.Group] = r
	case step.SetProcesses:
		g := m.state.Groups[a.Group]
		s := slices.DeleteFunc(append(slices.Clone(g.SuspendedProcesses), a.Suspend...), func(p string) bool { return slices.Contains(a.Resume, p) })
		g.SuspendedProcesses = slices.Compact(slices.Sorted(slices.Values(s)))
		m.state.Groups[g.Name] = g
	case step.TagGroup:
		g := m.state.Groups[a.Group]
		g.Tags = maps.Clone(g.Tags)
		maps.Copy(g.Tags, a.Put)
		for _, k := range a.Remove {
			delete(g.Tags, k)
		}
		m.state.Groups[g.Name] = g
	case step.DeleteGroup:
		delete(m.state.Groups, a.Name)
	case step.PutHook:
		m.hooks(a.Group, a.Hook.Name, observed.HookDefaults(a.Hook))
	case step.DeleteHook:
		m.hooks(a.Group, a.Name)
	default:
		m.doNodegroup(a)
	}
}

// hooks has a group's hook of a name be the given one, or none.
func (m *fakeAWS) hooks(group, name string, put ...intent.LifecycleHook) {
	h := m.state.Hooks[group]
	h.Hooks = append(slices.DeleteFunc(slices.Clone(h.Hooks), func(o intent.LifecycleHook) bool { return o.Name == name }), put...)
	m.state.Hooks[group] = h
}

func (m *fakeAWS) doNodegroup(a step.Action) {
	switch a := a.(type) {
	case step.CreateNodegroup:
		n := a.Nodegroup
		n.Status, n.ARN, n.DescribedAtPass = "ACTIVE", m.id("arn"), true
		m.state.Nodegroups[n.NodegroupName] = n
	case step.UpdateNodegroupConfig:
		n := m.state.Nodegroups[a.NodegroupName]
		assign(&n.MinSize, a.MinSize)
		assign(&n.MaxSize, a.MaxSize)
		assign(&n.DesiredSize, a.DesiredSize)
		n.Labels = observed.WithTags(n.Labels, a.PutLabels)
		for _, k := range a.RemoveLabels {
			delete(n.Labels, k)
		}
		for _, t := range a.PutTaints {
			n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), func(o intent.Taint) bool { return o.Key == t.Key && o.Effect == t.Effect })
			n.Taints = append(n.Taints, t)
		}
		n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), func(o intent.Taint) bool { return slices.Contains(a.RemoveTaints, o) })
		if u := a.Settings.UpdateConfig; u != (intent.UpdateConfig{}) {
			n.UpdateConfig = u
		}
		m.state.Nodegroups[a.NodegroupName] = n
	case step.UpdateNodegroupVersion:
		n := m.state.Nodegroups[a.NodegroupName]
		if a.Template != nil {
			n.Template = *a.Template
		}
		if a.Version != "" {
			n.Version = a.Version
		}
		m.state.Nodegroups[a.NodegroupName] = n
	case step.TagNodegroup:
		n := m.state.Nodegroups[a.NodegroupName]
		n.Tags = observed.WithTags(n.Tags, a.Put)
		m.state.Nodegroups[a.NodegroupName] = n
	case step.DeleteNodegroup:
		delete(m.state.Nodegroups, a.NodegroupName)
	default:
		panic(fmt.Sprintf("model: no such action %T", a))
	}
}

// launch brings a group to its desired size, new instances on the group's template.
func (m *fakeAWS) launch(g observed.Group, have []observed.Instance) []observed.Instance {
	have = slices.Clone(have)
	for int32(len(have)) < g.DesiredCapacity {
		kind := ""
		if p := g.MixedInstancesPolicy; p != nil && len(p.Overrides) > 0 {
			kind = p.Overrides[0].InstanceType
		} else {
			for _, t := range m.state.Templates {
				if t.ID == g.Template.ID || g.Template.ID == "" && t.Name == g.Template.Name {
					kind = t.Versions[model.VersionOf(t, g.Template)].Data.InstanceType
				}
			}
		}
		have = append(have, observed.Instance{ID: m.id("i"), Type: kind, Zone: "eu-west-1a", LifecycleState: "InService", Health: "Healthy", Template: g.Template})
	}
	return have[:g.DesiredCapacity]
}

// Pools for tests.
