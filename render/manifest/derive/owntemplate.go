package derive

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weir-gitops/weir/render/instancetypes"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// ownTemplate sets a pool's foreign launch template, which must be able to boot the instance types. It
// returns false if the pool names none.
func (d *draft) ownTemplate(m kinds.Meta, types []kinds.TypeField) bool {
	k := kinds.ReadOwnKeys(kinds.Reporter{To: &kinds.Faults{}}, m)
	names, order := map[string][]string{}, []string{}
	for _, t := range types {
		suffix := "." + instancetypes.Architecture(t.Name)
		if _, _, ok := k.Named(suffix); !ok {
			suffix = ""
		}
		if _, _, ok := k.Named(suffix); !ok {
			d.noOwnTemplate(k, t)
			continue
		}
		if names[suffix] == nil && suffix != "" {
			order = append(order, suffix)
		}
		names[suffix] = append(names[suffix], t.Name)
	}
	d.ForeignTemplate = foreignTemplate(k, "", names[""])
	for _, suffix := range order {
		if d.ForeignTemplate == nil { // the group itself needs a template
			d.ForeignTemplate = foreignTemplate(k, suffix, names[suffix])
		} else {
			d.ForeignOverrides = append(d.ForeignOverrides, *foreignTemplate(k, suffix, names[suffix]))
		}
	}
	for _, suffix := range kinds.OwnArchitectures()[1:] {
		if key, _, ok := k.Named(suffix); ok && len(names[suffix]) == 0 {
			d.AtPool.Info(key.At, "not-carried", fmt.Sprintf("%s has no effect: no instance type of the pool is %s", key.At, suffix[1:]), "")
		}
	}
	return kinds.BringsTemplate(m)
}

// foreignTypes adds the instance types that launch from a group's templates to the template lookups. It runs
// after PoolOptions added types. An override with its own template or image does not count.
func (d *draft) foreignTypes() {
	if d.ForeignTemplate != nil && d.Nodegroup != nil && len(d.Nodegroup.InstanceTypes) > 0 {
		d.ForeignTemplate.Lookup.InstanceType = intent.JoinList(d.Nodegroup.InstanceTypes)
	}
	if d.ForeignTemplate == nil || d.Group == nil || d.Group.MixedInstancesPolicy == nil {
		return
	}
	var types []string
	for _, o := range d.Group.MixedInstancesPolicy.Overrides {
		if o.InstanceType != "" && o.LaunchTemplate == nil && o.ImageID == "" {
			types = append(types, o.InstanceType)
		}
	}
	others := d.ForeignOverrides
	d.ForeignOverrides = nil
	for _, f := range others {
		its := intent.SplitList(f.Lookup.InstanceType)
		not := func(t string) bool { return !slices.Contains(types, t) }
		f.Lookup.InstanceType = intent.JoinList(slices.DeleteFunc(slices.Clone(its), not))
		if f.Lookup.InstanceType != "" {
			d.ForeignOverrides = append(d.ForeignOverrides, f)
		}
		types = slices.DeleteFunc(types, func(t string) bool { return slices.Contains(its, t) })
	}
	d.ForeignTemplate.Lookup.InstanceType = intent.JoinList(types)
}

// noOwnTemplate reports an instance type for which the pool names no template.
func (d *draft) noOwnTemplate(k kinds.OwnKeys, t kinds.TypeField) {
	named, ok := k.NamesTemplate()
	if !ok {
		return
	}
	arch, detail := instancetypes.Architecture(t.Name), fmt.Sprintf("write %s%s for such types", kinds.OwnTemplatePrefix, kinds.OwnName)
	if arch != "" {
		detail = fmt.Sprintf("write %s%s.%s", kinds.OwnTemplatePrefix, kinds.OwnName, arch)
	}
	d.Faults.Add(kinds.Fault{Code: "template-for-architecture", Summary: fmt.Sprintf("%s %s is %s, for which the pool brings no launch template", t.At, t.Name, cmp.Or(arch, "of an architecture that weir does not know")),
		Detail: detail, Ref: d.Infrastructure, Path: t.At, Related: []kinds.RelatedField{{Ref: d.Infrastructure, Path: named.At, Message: "the template of another architecture"}}})
}

// foreignTemplate returns the template that the keys of an architecture name, or nil.
func foreignTemplate(k kinds.OwnKeys, suffix string, types []string) *intent.ForeignTemplate {
	key, byID, ok := k.Named(suffix)
	if !ok {
		return nil
	}
	out := &intent.ForeignTemplate{NameField: key.At,
		Lookup: intent.Lookup{Kind: intent.TemplateByName, Name: key.Value, Version: intent.LatestVersion, InstanceType: intent.JoinList(types)}}
	if byID {
		out.Lookup.Kind = intent.TemplateByID
	}
	version, written := k[kinds.OwnVersion+suffix]
	if !written {
		version, written = k[kinds.OwnVersion]
	}
	if written {
		out.VersionField = version.At
		out.Lookup.Version, _ = kinds.TemplateVersionOf(version.Value) // already checked
	}
	return out
}

// ownCapacity applies the capacity type in a pool's keys. For a group this is the fraction of on-demand
// instances, for a nodegroup EKS's own field.
func (d *draft) ownCapacity(m kinds.Meta) {
	c, ok := kinds.ReadOwnKeys(kinds.Reporter{To: &kinds.Faults{}}, m)[kinds.OwnCapacity]
	if !ok {
		return
	}
	if d.Nodegroup != nil {
		d.Nodegroup.CapacityType = capacityTypes()[kinds.EKSCapacity(c.Value)]
		return
	}
	if d.Group.MixedInstancesPolicy == nil {
		d.Group.MixedInstancesPolicy = mixed(&kinds.MixedInstancesPolicy{})
	}
	d.Group.MixedInstancesPolicy.OnDemandPercentageAboveBaseCapacity = map[string]int32{"on-demand": 100, "spot": 0}[c.Value]
}
