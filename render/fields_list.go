package render

import (
	"slices"
	"strconv"
	"strings"

	rows "github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// listFields returns the manifest fields of an item in a list that the pool sorts in its own way. ok is false
// for all other fields.
func (m manifests) listFields(p *intent.Pool, field intent.Path) (out []manifestField, ok bool) {
	if len(field) > 2 && field[0] == "group" && field[1] == "options" {
		return []manifestField{{p.Options, intent.Path{"spec", "autoScalingGroup"}.Join(field[2:]...)}}, true
	}
	if len(field) > 4 && field[0] == "group" && field[2] == "overrides" {
		return m.overrideFields(p, field[3], field[4:]), true
	}
	i, rest, list := listed(field)
	if out, ok := foreignFields(p, field, i, list); out != nil {
		return out, ok
	}
	if out, ok := m.itemFields(p, field, i, rest, list); ok {
		return out, true
	}
	if len(field) > 2 && field[0] == "launchTemplate" && field[1] == "data" {
		return templateFields(p, field[2:]), true
	}
	return nil, false
}

// foreignFields returns the manifest fields that name a foreign launch template. ok is false for all other
// fields.
func foreignFields(p *intent.Pool, field intent.Path, i int, list string) (out []manifestField, ok bool) {
	f := p.ForeignTemplate
	if f == nil || len(field) < 2 || field[0] != "foreignTemplate" && list != "foreignOverrides" {
		return nil, false
	}
	if list != "" {
		f = &p.ForeignOverrides[i]
	}
	switch field[len(field)-1] {
	case "name":
		return []manifestField{{p.Infrastructure, f.NameField}}, true
	case "version":
		return []manifestField{{p.Infrastructure, f.Field()}}, f.VersionField != nil
	}
	return nil, false
}

// itemFields returns the manifest fields of item i of a list. rest is the path below the item.
func (m manifests) itemFields(p *intent.Pool, field intent.Path, i int, rest, list string) (out []manifestField, ok bool) {
	pool := func(path intent.Path) []manifestField { return []manifestField{{p.Infrastructure, path}} }
	spec := intent.Path{"spec"}
	switch list {
	case "launchTemplate.data.TagSpecifications":
		return m.tagFields(p, field, i), true
	case "launchTemplate.data.SecurityGroupIds":
		return pool(m.nth(p, spec.Join("awsLaunchTemplate", "additionalSecurityGroups"), i, "id").Join("id")), true
	case "launchTemplate.securityGroups":
		// The first one is the cluster's security group.
		if rest != "filters" && rest != "kind" || i == 0 {
			return nil, strings.HasPrefix(rest, "filters") || rest == "kind"
		}
		return pool(m.nth(p, spec.Join("awsLaunchTemplate", "additionalSecurityGroups"), i-1, "filters").Join("filters")), true
	case "group.suspendedProcesses":
		name := p.Group.SuspendedProcesses[i].Name
		name = strings.ToLower(name[:1]) + name[1:]
		if strings.HasPrefix(name, "aZ") {
			name = "az" + name[2:]
		}
		at := spec.Join("suspendProcesses")
		return append(pool(at.Join("processes", name)), pool(at.Join("all"))...), true
	case "group.lifecycleHooks":
		return pool(m.named(p, spec.Join("lifecycleHooks"), map[string]string{"name": p.Group.LifecycleHooks[i].Name}).Join(rest)), true
	case "nodegroup.lifecycleHooks":
		return pool(m.named(p, spec.Join("lifecycleHooks"), map[string]string{"name": p.Nodegroup.LifecycleHooks[i].Name}).Join(rest)), true
	case "nodegroup.taints":
		taint := p.Nodegroup.Taints[i]
		effect := strings.ToLower(strings.ReplaceAll(taint.Effect, "_", "-"))
		return pool(m.named(p, spec.Join("taints"), map[string]string{"key": taint.Key, "value": taint.Value, "effect": effect}).Join(rest)), true
	}
	return nil, false
}

// tagFields returns the manifest fields of a tag: [i].Tags[j].Key and .Value.
func (m manifests) tagFields(p *intent.Pool, field intent.Path, i int) []manifestField {
	of := p.LaunchTemplate.Data.TagSpecifications
	j, _, inner := listed(field[4:])
	if inner != "Tags" || i >= len(of) || j >= len(of[i].Tags) {
		return nil
	}
	return m.manifestFields(p, intent.Path{"launchTemplate", "tags", of[i].Tags[j].Key})
}

// manifestFieldsOf returns the manifest fields in the row of a field of a group or nodegroup.
func manifestFieldsOf(p *intent.Pool, field intent.Path) (out []manifestField) {
	paths, ofOptions := rows.Fields(rowOf(field))
	ref := p.Infrastructure
	if ofOptions {
		ref = p.Options
	}
	for _, at := range paths {
		out = append(out, manifestField{ref, intent.Path{"spec"}.Join(at...)})
	}
	return out
}

// rowOf returns the kind and member of the row in package field for a field of a group or nodegroup.
func rowOf(field intent.Path) (of rows.Kind, member intent.Path) {
	switch {
	case len(field) > 2 && field[0] == "group" && field[1] == "refresh":
		return rows.Refresh, field[2:]
	case len(field) > 1 && field[0] == "group":
		return rows.Group, field[1:]
	case len(field) > 1 && field[0] == "nodegroup":
		return rows.Nodegroup, field[1:]
	}
	return "", nil
}

// templateFields returns the manifest fields of a member of the launch template's data.
func templateFields(p *intent.Pool, member intent.Path) (out []manifestField) {
	paths, ofOptions := rows.TemplateFields(member, p.LaunchTemplate.RootDevice)
	ref := p.Infrastructure
	switch c := p.LaunchConfig; {
	case ofOptions && c != nil:
		ref = c.Options
	case ofOptions:
		ref = p.Options
	}
	for _, at := range paths {
		out = append(out, manifestField{ref, intent.Path{"spec"}.Join(at...)})
	}
	return out
}

// overrideFields returns the manifest fields of an override. The pool's own override names an instance type,
// and the PoolOptions has further settings of it.
func (m manifests) overrideFields(p *intent.Pool, index string, rest intent.Path) (out []manifestField) {
	own := intent.Path{"spec", "mixedInstancesPolicy", "overrides"}
	more := intent.Path{"spec", "autoScalingGroup", "mixedInstancesPolicy", "overrides"}
	if rest.String() == "instanceType" && m.node(p.Infrastructure, own) != nil {
		return []manifestField{{p.Infrastructure, own.Join(index, "instanceType")}}
	}
	i, _ := strconv.Atoi(strings.Trim(index, "[]"))
	if list := m.node(p.Options, more); list != nil && m.node(p.Infrastructure, own) != nil {
		for j := range list.Content {
			if n := m.node(p.Options, more.Join(intent.Index(j), "instanceType")); n != nil && n.Value == p.Group.MixedInstancesPolicy.Overrides[i].InstanceType {
				index = intent.Index(j)
			}
		}
	}
	return []manifestField{{p.Options, more.Join(index).Join(rest...)}}
}

// listed splits a field at its first index.
func listed(field intent.Path) (i int, rest, list string) {
	n := slices.IndexFunc(field, func(e string) bool { return strings.HasPrefix(e, "[") })
	if n < 0 {
		return 0, "", ""
	}
	i, err := strconv.Atoi(strings.Trim(field[n], "[]"))
	if err != nil {
		return 0, "", ""
	}
	return i, strings.Join(field[n+1:], "."), strings.Join(field[:n], ".")
}

// nth returns the path of the i-th item in a list that has the given field.
func (m manifests) nth(p *intent.Pool, list intent.Path, i int, field string) intent.Path {
	return m.item(p, list, func(at intent.Path) bool {
		if m.poolNode(p, at.Join(field)) == nil {
			return false
		}
		i--
		return i < 0
	})
}

// named returns the path of the item in a list whose fields have the given values.
func (m manifests) named(p *intent.Pool, list intent.Path, values map[string]string) intent.Path {
	return m.item(p, list, func(at intent.Path) bool {
		for name, value := range values {
			if n := m.poolNode(p, at.Join(name)); n == nil || n.Value != value {
				return false
			}
		}
		return true
	})
}

func (m manifests) item(p *intent.Pool, list intent.Path, is func(intent.Path) bool) intent.Path {
	n := m.poolNode(p, list)
	for i := 0; n != nil && i < len(n.Content); i++ {
		if at := list.Join(intent.Index(i)); is(at) {
			return at
		}
	}
	return list
}

// bytesOf describes a text that is not shown by its size.
func bytesOf(text string) string { return "user data, " + strconv.Itoa(len(text)) + " bytes" }
