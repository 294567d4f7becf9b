package simulate

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// templates makes the launch templates that weir owns, the foreign templates of pools, and templates that
// groups and machines refer to but that were not read.
func (m *maker) templates(ctx context.Context, answers []observed.Answer) error {
	var all []observed.Template
	for _, name := range slices.Sorted(maps.Keys(m.seen.Templates)) {
		all = append(all, m.seen.Templates[name])
	}
	others := m.foreignTemplates(answers)
	for _, id := range slices.Sorted(maps.Keys(others)) {
		all = append(all, others[id])
	}
	for _, t := range all {
		if err := m.template(ctx, t); err != nil {
			if err := m.leave(ctx, t.Tags[observed.TagPool], err); err != nil {
				return err
			}
		}
	}
	return nil
}

// standInType is the instance type of a launch template with an unknown type.
const standInType = "m5.large"

// foreignTemplates returns the launch templates, by id, that are not among the observed ones. An answer has
// the version that a pool wants. Of a template that only groups, nodegroups or machines name, only the name
// is known. Its copy launches the type of its existing machines.
func (m *maker) foreignTemplates(answers []observed.Answer) map[string]observed.Template {
	ids, names := map[string]bool{}, map[string]bool{}
	for _, t := range m.seen.Templates {
		ids[t.ID], names[t.Name] = true, true
	}
	out := map[string]observed.Template{}
	get := func(id, name string) (t observed.Template, there bool) {
		if t, there = out[id]; there {
			return t, true
		}
		if name == "" || names[name] { // a newer template has the name
			name = id
		}
		names[name] = true
		return observed.Template{ID: id, Name: name, Versions: map[int64]observed.TemplateVersion{}}, false
	}
	for _, a := range answers {
		f := a.Template
		if f == nil || ids[f.ID] {
			continue
		}
		data := f.Data
		if f.Requirements && data.InstanceType == "" {
			data.InstanceType = standInType
		}
		t, _ := get(f.ID, f.Name)
		t.LatestVersion, t.DefaultVersion = max(t.LatestVersion, f.Latest, f.Version), cmp.Or(t.DefaultVersion, f.Default, f.Version)
		t.Versions[f.Version] = observed.TemplateVersion{Data: data}
		out[f.ID] = t
	}
	m.eachRef(func(ref observed.TemplateRef, machine string) {
		if ref.ID == "" || ids[ref.ID] {
			return
		}
		t, there := get(ref.ID, ref.Name)
		number, err := strconv.ParseInt(ref.Version, 10, 64)
		if err != nil || number < 1 { // an alias
			number = max(1, t.LatestVersion)
		}
		t.LatestVersion, t.DefaultVersion = max(t.LatestVersion, number), cmp.Or(t.DefaultVersion, number)
		if !there {
			t.Versions[number] = observed.TemplateVersion{Data: intent.TemplateData{InstanceType: cmp.Or(machine, standInType)}}
		}
		out[ref.ID] = t
	})
	return out
}

// eachRef calls use with every observed reference to a launch template, and with the type of a
// machine launched from it, empty if no machine was.
func (m *maker) eachRef(use func(ref observed.TemplateRef, machine string)) {
	for _, name := range slices.Sorted(maps.Keys(m.seen.Groups)) {
		g := m.seen.Groups[name]
		for _, i := range g.Instances {
			use(i.Template, i.Type)
		}
		use(g.Template, "")
		if g.MixedInstancesPolicy != nil {
			for _, o := range g.MixedInstancesPolicy.Overrides {
				if o.LaunchTemplate != nil {
					use(observed.TemplateRef{ID: o.LaunchTemplate.ID, Name: o.LaunchTemplate.Name, Version: o.LaunchTemplate.Version}, o.InstanceType)
				}
			}
		}
	}
	for _, n := range m.seen.Nodegroups {
		use(n.Template, "")
	}
}

// template makes a launch template with the versions that were read, and the versions in use. The latter get
// the content of a neighboring version, because nothing launches from them.
func (m *maker) template(ctx context.Context, t observed.Template) error {
	numbers := map[int64]bool{t.DefaultVersion: true, t.LatestVersion: true}
	for n := range t.Versions {
		numbers[n] = true
	}
	for _, n := range t.Numbers {
		numbers[n] = true
	}
	m.eachRef(func(ref observed.TemplateRef, _ string) {
		if n, err := strconv.ParseInt(ref.Version, 10, 64); err == nil && (ref.ID == t.ID || ref.ID == "" && ref.Name == t.Name) && n <= t.LatestVersion {
			numbers[n] = true
		}
	})
	var some observed.TemplateVersion
	for _, n := range slices.Sorted(maps.Keys(t.Versions)) {
		some = t.Versions[n]
	}
	graft := ec2.TemplateGraft{Name: t.Name, ID: t.ID, Created: m.now.Add(-before), Default: t.DefaultVersion, Latest: t.LatestVersion, Numbers: slices.Sorted(maps.Keys(numbers))}
	var made observed.TemplateRef
	for i, n := range graft.Numbers {
		v, read := t.Versions[n]
		if !read {
			v = observed.TemplateVersion{Data: some.Data}
		}
		if i == 0 {
			res, err := m.execute(ctx, "launch template "+t.Name, step.CreateLaunchTemplate{Name: t.Name, Description: v.Description, Data: v.Data, Tags: own(t.Tags)})
			if err != nil {
				return err
			}
			made = observed.TemplateRef{ID: res.Template.ID, Name: t.Name}
			continue
		}
		if _, err := m.execute(ctx, "launch template "+t.Name, step.CreateLaunchTemplateVersion{Template: made, Description: v.Description, Data: v.Data}); err != nil {
			return err
		}
	}
	return m.graft(awsemu.Graft{Templates: []ec2.TemplateGraft{graft}})
}
