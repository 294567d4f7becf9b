package importer

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// template compares what is launched, where the plan changes that.
func (d *differ) template(ref observed.TemplateRef, image string) {
	var launching []int
	for i, ch := range d.changes {
		if strings.HasPrefix(ch.Field, "launchTemplate.") || strings.HasPrefix(ch.Field, "awsLaunchTemplate") || len(ch.Path) > 1 && ch.Path[1] == "launchTemplate" {
			launching = append(launching, i)
		}
	}
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
	v, why := d.maker.known(source{ref: ref})
	a, b := newWords(), newWords()
	data := t.Data
	data.ImageID = cmp.Or(image, data.ImageID)
	if v.Data.ImageID == image || t.Image == (intent.Lookup{}) {
		v.Data.ImageID, data.ImageID = "", "" // the lookup stays
	}
	data.BlockDeviceMappings, v.Data.BlockDeviceMappings = ending(data.BlockDeviceMappings), slices.Clone(v.Data.BlockDeviceMappings)
	if t.RootDevice && len(v.Data.BlockDeviceMappings) > 0 {
		data.BlockDeviceMappings[0].DeviceName = v.Data.BlockDeviceMappings[0].DeviceName
	}
	if why == "" {
		_, _ = said(data, t.RootDevice, a.spec, a.options)
		_, why = said(v.Data, t.RootDevice, b.spec, b.options)
	}
	if why != "" {
		d.out = append(d.out, Difference{Field: "launchTemplate", Why: "the version " + ref.Version + " cannot be said: " + why})
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
	for _, side := range []words{a, b} {
		delete(side.spec["awsLaunchTemplate"].(map[string]any), "additionalSecurityGroups")
	}
	sections(a, b)
	differences(base, plain(a.spec["awsLaunchTemplate"]), plain(b.spec["awsLaunchTemplate"]), func(at intent.Path, v any) { d.put(object, at, v) })
	differences(intent.Path{"spec"}, plain(a.options), plain(b.options), func(at intent.Path, v any) { d.put(options, at, v) })
	for _, i := range launching {
		if len(d.out) > before && !strings.Contains(d.changes[i].Field, "additionalSecurityGroups") {
			d.covered[i] = true
		}
	}
}

// ending has volumes end with their machine where nothing says otherwise, as weir sends it.
func ending(list []intent.BlockDeviceMapping) []intent.BlockDeviceMapping {
	out := slices.Clone(list)
	for i := range out {
		if ends := true; out[i].Ebs.DeleteOnTermination == nil {
			out[i].Ebs.DeleteOnTermination = &ends
		}
	}
	return out
}
