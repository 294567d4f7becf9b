package template

import (
	"reflect"
	"slices"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// adoptTemplate plans the adoption of a launch template. t gets the tags after the adoption.
func (c Planner) adoptTemplate(pool *intent.Pool, want *Want, t *observed.Template, o *model.Ownership) bool {
	if !c.In.MayAdopt(pool, t.Tags, want.tags, o) {
		return false
	}
	put, remove := model.MissingTags(want.tags, t.Tags)
	t.Tags = c.Adopt(pool, step.LaunchTemplate, t.Name, t.Tags, step.TagLaunchTemplate{Template: observed.TemplateRef{ID: t.ID, Name: t.Name}, Put: put, Remove: remove})
	return true
}

// Tags with which Cluster API Provider AWS marks the bootstrap data of a version.
// They derive from the user data and do not affect the machines.
const (
	tagBootstrapSecret = "sigs.k8s.io/cluster-api-provider-aws/bootstrap-data-secret"
	tagBootstrapHash   = "sigs.k8s.io/cluster-api-provider-aws/bootstrap-data-hash"
)

// MadeByWeir reports whether a version's description contains weir's hashes.
func MadeByWeir(v observed.TemplateVersion) bool {
	_, ours := content.DescriptionHashes(v.Description)
	return ours
}

// SameMachines reports whether a version that weir did not make starts the same machines as data
// does. With bootstrap, it also compares their user data, unpacked if compressed. A value that is
// AWS's default is no difference.
func SameMachines(v observed.TemplateVersion, data intent.TemplateData, bootstrap bool) bool {
	if v.Unknown {
		return false
	}
	a, b := plainData(v.Data), plainData(data)
	if bootstrap && a.UserData != b.UserData && content.Decoded(a.UserData) != content.Decoded(b.UserData) {
		return false
	}
	a.UserData, b.UserData = "", ""
	return reflect.DeepEqual(withoutEmpty(a), withoutEmpty(b))
}

// SameButTags is SameMachines with user data and without the tags that a launch sets: different
// tags are no reason to replace a running machine.
func SameButTags(v observed.TemplateVersion, data intent.TemplateData) bool {
	v.Data.TagSpecifications, data.TagSpecifications = nil, nil
	return SameMachines(v, data, true)
}

// findIn finds the wanted content in versions that may have it, newest first. If weir made none of
// them, several may match. findIn then prefers the version in use, so that no pool moves between
// equal versions.
func (w *Want) findIn(t observed.Template, candidates []observed.TemplateVersion, inUse []observed.TemplateRef) (found observed.TemplateVersion, ok bool) {
	i := slices.IndexFunc(candidates, w.is)
	if i < 0 {
		return observed.TemplateVersion{}, false
	}
	if MadeByWeir(candidates[i]) {
		return candidates[i], true
	}
	for _, ref := range inUse {
		number := model.VersionOf(t, ref)
		if j := slices.IndexFunc(candidates, func(v observed.TemplateVersion) bool { return v.Number == number && w.is(v) }); j >= 0 {
			return candidates[j], true
		}
	}
	return candidates[i], true
}

// plainData returns the part of template data that matters when versions of different makers are
// compared.
func plainData(d intent.TemplateData) intent.TemplateData {
	specs := make([]intent.TemplateTagSpecification, 0, len(d.TagSpecifications))
	for _, s := range d.TagSpecifications {
		s.Tags = slices.DeleteFunc(slices.Clone(s.Tags), func(t intent.Tag) bool {
			return t.Key == tagBootstrapSecret || t.Key == tagBootstrapHash
		})
		if len(s.Tags) > 0 {
			specs = append(specs, s)
		}
	}
	d.TagSpecifications = specs
	if m := d.MetadataOptions; m != nil && m.HTTPProtocolIPv6 == "disabled" {
		plain := *m
		plain.HTTPProtocolIPv6 = "" // the default of EC2, which Cluster API Provider AWS never sends
		d.MetadataOptions = &plain
	}
	return d
}

// Content returns the content of the wanted version. An existing version keeps its image.
func (w *Version) Content(want *Want) intent.TemplateData {
	if v, ok := w.Template.Versions[w.Number]; ok && !w.Made() {
		return v.Data
	}
	return want.Data
}

// ImageAlone reports whether a version differs from the wanted version at most in its image.
func (w *Version) ImageAlone(v observed.TemplateVersion) bool {
	if w.want == nil {
		return false
	}
	data := w.Content(w.want)
	data.ImageID = v.Data.ImageID
	return SameMachines(v, data, true)
}

// OwnBefore reports whether weir made a version before the wanted one.
func (w *Version) OwnBefore() bool {
	for n, v := range w.Template.Versions {
		if n < w.Number && MadeByWeir(v) {
			return true
		}
	}
	return false
}

// Runs reports whether a machine of the version that ref names counts as up to date.
func (w Version) Runs(ref observed.TemplateRef) bool {
	return w.Resolves(ref) || w.Found && w.Kept[model.VersionOf(w.Template, ref)]
}
