package importer

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// template compares the launch templates, if the plan changes them.
func (d *differ) template(ref observed.TemplateRef, image string) {
	launching := d.launching()
	if len(launching) == 0 {
		return
	}
	if f := d.pool.ForeignTemplate; f != nil {
		if v, ok := d.from("launchTemplate.version"); ok && v != nil && f.Field() != nil {
			d.add(d.pool.Infrastructure, f.Field(), strings.TrimPrefix(ref.Version, "$"))
		}
		return
	}
	t := d.pool.LaunchTemplate
	if t == nil || ref.Name != t.Name {
		return
	}
	wanted, has, why := d.sides(t, ref, image)
	if why != "" {
		d.out = append(d.out, Difference{Field: "launchTemplate", Why: "version " + ref.Version + " cannot be written: " + why})
		for _, i := range launching {
			d.covered[i] = true
		}
		return
	}
	object, base, options := d.pool.Infrastructure, intent.Path{"spec", "awsLaunchTemplate"}, d.pool.Options
	if l := d.pool.LaunchConfig; l != nil {
		object, base, options = l.Source, l.Spec(), l.Options
	}
	before := len(d.out)
	differences(base, plain(wanted.spec["awsLaunchTemplate"]), plain(has.spec["awsLaunchTemplate"]), func(at intent.Path, v any) { d.put(object, at, v) })
	differences(intent.Path{"spec"}, plain(wanted.options), plain(has.options), func(at intent.Path, v any) { d.put(options, at, v) })
	for _, i := range launching {
		if len(d.out) > before && !strings.Contains(d.changes[i].Field, "additionalSecurityGroups") {
			d.covered[i] = true
		}
	}
}

// launching returns the indexes of the changes to the launch template.
func (d *differ) launching() (out []int) {
	for i, ch := range d.changes {
		if strings.HasPrefix(ch.Field, "launchTemplate.") || strings.HasPrefix(ch.Field, "awsLaunchTemplate") || len(ch.Path) > 1 && ch.Path[1] == "launchTemplate" {
			out = append(out, i)
		}
	}
	return out
}

// sides returns the launch template in Git and an existing version, both in the form of manifests, or why
// manifests cannot express the version.
func (d *differ) sides(t *intent.LaunchTemplate, ref observed.TemplateRef, image string) (wanted, has words, why string) {
	v, why := d.maker.known(source{ref: ref})
	wanted, has = newWords(), newWords()
	data := t.Data
	data.ImageID = cmp.Or(image, data.ImageID)
	if v.Data.ImageID == image || t.Image == (intent.Lookup{}) {
		v.Data.ImageID, data.ImageID = "", "" // the lookup remains
	}
	data.BlockDeviceMappings, v.Data.BlockDeviceMappings = ending(data.BlockDeviceMappings), slices.Clone(v.Data.BlockDeviceMappings)
	if t.RootDevice && len(v.Data.BlockDeviceMappings) > 0 {
		data.BlockDeviceMappings[0].DeviceName = v.Data.BlockDeviceMappings[0].DeviceName
	}
	if why == "" {
		_, _ = said(data, t.RootDevice, wanted.spec, wanted.options)
		_, why = said(v.Data, t.RootDevice, has.spec, has.options)
	}
	if why != "" {
		return wanted, has, why
	}
	for _, side := range []words{wanted, has} {
		delete(side.spec["awsLaunchTemplate"].(map[string]any), "additionalSecurityGroups")
	}
	sections(wanted, has)
	return wanted, has, ""
}

// ending sets volumes without a setting to end with their machine, as weir sends them.
func ending(list []intent.BlockDeviceMapping) []intent.BlockDeviceMapping {
	out := slices.Clone(list)
	for i := range out {
		if ends := true; out[i].Ebs.DeleteOnTermination == nil {
			out[i].Ebs.DeleteOnTermination = &ends
		}
	}
	return out
}
