package plan

import (
	"reflect"
	"slices"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// Tags with which Cluster API Provider AWS marks the bootstrap data of a version.
// They follow from the user data and say nothing about the machines.
const (
	tagBootstrapSecret = "sigs.k8s.io/cluster-api-provider-aws/bootstrap-data-secret"
	tagBootstrapHash   = "sigs.k8s.io/cluster-api-provider-aws/bootstrap-data-hash"
)

// madeByWeir reports whether a version has the hashes of weir's.
func madeByWeir(v observed.TemplateVersion) bool {
	_, ours := content.DescriptionHashes(v.Description)
	return ours
}

// sameMachines reports whether a version that weir did not make starts the same
// machines as data does; with bootstrap their user data is compared as well.
// What only stands for a default of AWS is no difference.
func sameMachines(v observed.TemplateVersion, data intent.TemplateData, bootstrap bool) bool {
	if v.Unknown {
		return false
	}
	a, b := plainData(v.Data), plainData(data)
	if !bootstrap {
		a.UserData, b.UserData = "", ""
	}
	return reflect.DeepEqual(essence(a), essence(b))
}

// among finds the wanted content in the versions that may hold it, which begin
// with the newest. Of versions that weir did not make, several may hold the same;
// then the one that is in use is taken, so that nothing moves from one to another.
func (w *wantTemplate) among(t observed.Template, candidates []observed.TemplateVersion, inUse []observed.TemplateRef) (found observed.TemplateVersion, ok bool) {
	i := slices.IndexFunc(candidates, w.is)
	if i < 0 {
		return observed.TemplateVersion{}, false
	}
	if madeByWeir(candidates[i]) {
		return candidates[i], true
	}
	for _, ref := range inUse {
		number := versionOf(t, ref)
		if j := slices.IndexFunc(candidates, func(v observed.TemplateVersion) bool { return v.Number == number && w.is(v) }); j >= 0 {
			return candidates[j], true
		}
	}
	return candidates[i], true
}

// plainData is template data as far as versions of different makers are compared.
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

// spare finds the machines that a change of hands must not replace, and marks
// their versions in w. Cluster API Provider AWS makes a version for each join
// token and replaces no machine for it, so a pool's machines run many versions
// that differ in user data alone, some of them deleted since. As long as the
// wanted version is one that weir did not make, or the first that weir made after
// such a one and differs from it in the user data of a KubeadmConfig alone, none
// of them is replaced. The next change in Git is rolled out to all of them.
func (c groups) spare(pool *intent.Pool, want *wantTemplate, have observed.Group, w *wantedVersion) {
	if !w.found || want == nil {
		return
	}
	stale := slices.ContainsFunc(have.Instances, func(i observed.Instance) bool { return !i.Leaving() && !w.resolves(i.Template) })
	if !w.foreign {
		if pool.Bootstrap.Kind != "KubeadmConfig" || !w.made() && !stale && w.template.DefaultVersion == w.number {
			return
		}
		before, read := c.versionBefore(w)
		if !read || madeByWeir(before) || !sameMachines(before, w.content(want), false) {
			return
		}
		w.handover = true
	}
	w.spared = map[int64]bool{}
	n := 0
	for _, i := range have.Instances {
		number := versionOf(w.template, i.Template)
		if i.Leaving() || w.resolves(i.Template) || number == 0 {
			continue
		}
		if v, known := w.template.Versions[number]; known && (madeByWeir(v) || !sameMachines(v, w.content(want), false)) {
			continue
		} else if !known && !w.template.Missing[number] {
			c.needs.Versions = append(c.needs.Versions, observed.TemplateRef{ID: w.template.ID, Name: w.template.Name, Version: strconv.FormatInt(number, 10)})
			continue
		} else if !known && w.ownBefore() {
			continue // it may have been weir's
		}
		w.spared[number] = true
		n++
	}
	if n > 0 {
		c.note(diag.Info, pool, nil, "adopted-instances",
			strconv.Itoa(n)+" instances of "+have.Name+" run versions from before weir took the group over, which differ from version "+w.version()+" in user data at most; they stay",
			"they are replaced when the pool's launch configuration changes in Git")
	}
}

// versionBefore is the version just below the wanted one. read is false where
// there is none, or it is yet to be read.
func (c groups) versionBefore(w *wantedVersion) (v observed.TemplateVersion, read bool) {
	number := w.number - 1
	v, read = w.template.Versions[number]
	if !read && number > 0 && !w.template.Missing[number] {
		c.needs.Versions = append(c.needs.Versions, observed.TemplateRef{ID: w.template.ID, Name: w.template.Name, Version: strconv.FormatInt(number, 10)})
	}
	return v, read
}

// content is what the wanted version holds: one that exists keeps its image.
func (w *wantedVersion) content(want *wantTemplate) intent.TemplateData {
	if v, ok := w.template.Versions[w.number]; ok && !w.made() {
		return v.Data
	}
	return want.data
}

// ownBefore reports whether weir made a version before the wanted one.
func (w *wantedVersion) ownBefore() bool {
	for n, v := range w.template.Versions {
		if n < w.number && madeByWeir(v) {
			return true
		}
	}
	return false
}

// runs reports whether a machine of the version that ref names is as wanted.
func (w wantedVersion) runs(ref observed.TemplateRef) bool {
	return w.resolves(ref) || w.found && w.spared[versionOf(w.template, ref)]
}
