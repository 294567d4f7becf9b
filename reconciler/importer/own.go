package importer

import (
	"maps"
	"slices"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// Templates selects how launch templates are imported.
type Templates string

// A pool can name its launch template, which stays unmanaged. Or its manifests describe the template,
// and weir manages it. With Auto, weir manages a template if it has the name that weir would give it, as
// templates of Cluster API Provider AWS do. A launch configuration can only be described.
const (
	Auto Templates = "auto"
	Name Templates = "name"
	Own  Templates = "own"
)

// source identifies the template or launch configuration that a group or nodegroup launches from.
type source struct {
	ref    observed.TemplateRef
	config string // name of a launch configuration
}

// known returns the content of the version that a source names, if the state has it.
func (m *maker) known(s source) (v observed.TemplateVersion, why string) {
	ok := false
	if s.config != "" {
		v, ok = m.state.LaunchConfigurations[s.config]
	} else if t, found := m.template(s.ref); found {
		v, ok = t.Versions[model.VersionOf(t, s.ref)]
	}
	switch {
	case !ok || v.Unknown && v.Data.InstanceType == "" && v.Data.ImageID == "":
		return v, "AWS does not show what it holds"
	case v.Unknown:
		return v, "it has members that manifests cannot express"
	}
	return v, ""
}

func (m *maker) template(ref observed.TemplateRef) (observed.Template, bool) {
	if t, ok := m.state.Templates[ref.Name]; ok && (ref.ID == "" || ref.ID == t.ID) {
		return t, true
	}
	for _, t := range m.state.Templates {
		if ref.ID != "" && ref.ID == t.ID {
			return t, true
		}
	}
	return observed.Template{}, false
}

// ContentNeeds returns the templates, their versions and the launch configurations whose content Make needs.
func ContentNeeds(s observed.State, how Templates) (needs observed.Needs) {
	add := func(ref observed.TemplateRef, name string) {
		if ref != (observed.TemplateRef{}) && (how == Own || how == Auto && ref.Name == name) {
			needs.TemplateNames = append(needs.TemplateNames, ref.Name)
			needs.Versions = append(needs.Versions, ref)
		}
	}
	for _, g := range s.Groups {
		if g.Template == (observed.TemplateRef{}) && g.LaunchConfiguration != "" {
			needs.LaunchConfigurations = append(needs.LaunchConfigurations, g.LaunchConfiguration)
		}
		add(g.Template, g.Name)
	}
	for _, n := range s.Nodegroups {
		add(n.Template, ownName(s, n))
	}
	needs.TemplateNames = slices.DeleteFunc(needs.TemplateNames, func(name string) bool { return name == "" })
	needs.Sort()
	return needs
}

// owns reports whether a pool's manifests must describe its template.
func (m *maker) owns(s source, ownName string) bool {
	switch m.options.Templates {
	case Own:
		return s.ref != (observed.TemplateRef{}) || s.config != ""
	case Name:
		return s.config != ""
	}
	return s.config != "" || s.ref.Name != "" && s.ref.Name == ownName
}

// said writes the content of a template version into spec and options, and returns the launch tags. why
// explains why manifests cannot express it. With root, the first volume may become the root volume.
func said(d intent.TemplateData, root bool, spec, options map[string]any) (tags map[string]string, why string) {
	for i := range d.BlockDeviceMappings {
		e := &d.BlockDeviceMappings[i].Ebs
		switch {
		case e.DeleteOnTermination == nil:
			return nil, "it leaves to the image whether the volume " + d.BlockDeviceMappings[i].DeviceName + " ends with its machine, and manifests say that it does"
		case !*e.DeleteOnTermination:
			return nil, "the volume " + d.BlockDeviceMappings[i].DeviceName + " outlives its machine, and manifests cannot say that"
		}
		e.DeleteOnTermination = nil
	}
	delete(spec, "awsLaunchTemplate")
	fields(field.Template, d, spec, options)
	lt, _ := spec["awsLaunchTemplate"].(map[string]any)
	if lt == nil {
		lt = map[string]any{}
		spec["awsLaunchTemplate"] = lt
	}
	if len(d.SecurityGroupIDs) > 0 {
		lt["additionalSecurityGroups"] = subnets(d.SecurityGroupIDs)
	}
	if volumes, _ := lt["nonRootVolumes"].([]any); root && len(volumes) > 0 {
		// The image decides the name of its root device, which is nearly always one of these.
		first := volumes[0].(map[string]any)
		if name := first["deviceName"]; name == "/dev/xvda" || name == "/dev/sda1" {
			delete(first, "deviceName")
			lt["rootVolume"] = first
			if volumes = volumes[1:]; len(volumes) == 0 {
				delete(lt, "nonRootVolumes")
			} else {
				lt["nonRootVolumes"] = volumes
			}
		}
	}
	tags = map[string]string{}
	for _, s := range d.TagSpecifications {
		for _, t := range s.Tags {
			tags[t.Key] = t.Value
		}
	}
	return tags, ""
}

// owned makes the manifests describe the pool's template. why explains why that is not possible.
func (m *maker) owned(p *Pool, f finish, root bool) (boot bootstrap, why string) {
	v, why := m.known(f.source)
	if why != "" {
		return boot, why
	}
	p.holds = v
	d := v.Data
	d.BlockDeviceMappings = slices.Clone(d.BlockDeviceMappings) // the state's own list must not change
	tags, why := said(d, root, f.spec, f.options)
	if why != "" {
		return boot, why
	}
	own, _ := f.spec["additionalTags"].(map[string]any)
	if own == nil {
		own = map[string]any{}
	}
	for k, v := range additionalTags(tags) {
		switch have, ok := own[k]; {
		case !ok:
			own[k] = v
		case have != v:
			p.Notes = append(p.Notes, Note{"tags." + k, "its launch template gives machines another value than it has itself; new ones get its own"})
		}
	}
	if len(own) > 0 {
		f.spec["additionalTags"] = own
	}
	if boot, why = m.bootstrap(f.key, p.Cluster, content.Decoded(d.UserData)); why != "" {
		return boot, why
	}
	groups := slices.Clone(d.SecurityGroupIDs)
	for _, n := range d.NetworkInterfaces {
		groups = append(groups, n.Groups...)
	}
	p.groups = append([]string{}, groups...) // not nil: an empty list counts
	return boot, ""
}

// commonGroups returns, for each cluster, the first security group that is common to the machines of all
// pools with a described template. The cluster's manifest names it as the group of its nodes. Without
// it, weir uses the groups that Cluster API has tagged.
func commonGroups(pools []Pool) map[string]string {
	all := map[string][]string{}
	for i := range pools {
		p := &pools[i]
		if p.State == Refused || p.groups == nil {
			continue
		}
		have, seen := all[p.Cluster]
		if !seen {
			have = p.groups
		}
		all[p.Cluster] = slices.DeleteFunc(slices.Clone(have), func(id string) bool { return !slices.Contains(p.groups, id) })
	}
	out := map[string]string{}
	for cluster, ids := range all {
		if len(ids) > 0 {
			out[cluster] = slices.Min(ids)
		}
	}
	return out
}

// cloned returns a deep copy of a value in manifests.
func cloned(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := maps.Clone(v)
		for k := range out {
			out[k] = cloned(out[k])
		}
		return out
	case []any:
		out := slices.Clone(v)
		for i := range out {
			out[i] = cloned(out[i])
		}
		return out
	}
	return v
}

// clonedMap is cloned for a map.
func clonedMap(m map[string]any) map[string]any { return cloned(m).(map[string]any) }

// templateWords returns a value of a template in the spelling of Cluster API Provider AWS.
func templateWords(member string, v any) any {
	switch member {
	case "InstanceMarketOptions.MarketType":
		return map[any]string{"spot": "Spot", "capacity-block": "CapacityBlock"}[v]
	case "CapacityReservationSpecification.CapacityReservationPreference":
		return map[any]string{"none": "None", "capacity-reservations-only": "CapacityReservationsOnly", "open": "Open"}[v]
	}
	return v
}
