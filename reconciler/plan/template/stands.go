package template

import (
	"strconv"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// Sum identifies the content of a wanted version. If somebody keeps changing the version back,
// several versions may have the same Sum.
func (w Version) Sum() string {
	switch {
	case w.want == nil:
		return w.Ref.Name + " " + w.Version()
	case w.want.keepsImage():
		return w.want.source
	}
	return w.want.body()
}

// Body returns the hash of the version's content, with the image as AWS resolved it.
func (w Version) Body() string {
	if v, read := w.Template.Versions[w.Number]; read && !w.Made() {
		if s, ours := content.DescriptionHashes(v.Description); ours {
			return s.Body
		}
		return v.Hash()
	}
	if w.want == nil {
		return w.Ref.Name + " " + w.Version()
	}
	return w.want.body()
}

// BodyOf returns that hash for another version, empty if it was not read.
func (w Version) BodyOf(t observed.Template, n int64) string {
	other := Version{Ref: observed.TemplateRef{Name: t.Name, Version: strconv.FormatInt(n, 10)}, Number: n, Template: t}
	if _, read := t.Versions[n]; !read && (!w.Foreign || t.ID != w.Template.ID) {
		return ""
	}
	return other.Body()
}

// PinTo returns the value to write in Git to get an earlier version n of a pool again. It is empty
// unless that version differs from the wanted one only in AWS's answer to a lookup.
func (w Version) PinTo(pool *intent.Pool, t observed.Template, n int64) string {
	if n == 0 || n == w.Number || t.Name != w.Template.Name {
		return ""
	}
	if f := pool.ForeignTemplate; f != nil {
		if f.Lookup.Version != intent.LatestVersion && f.Lookup.Version != intent.DefaultVersion {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	source := ""
	if w.want != nil {
		source = w.want.source
	} else if now, ours := content.DescriptionHashes(t.Versions[w.Number].Description); ours {
		source = now.Source
	}
	was, ours := content.DescriptionHashes(t.Versions[n].Description)
	image := t.Versions[n].Data.ImageID
	if l := pool.LaunchTemplate; !ours || l == nil || l.Image.Kind == "" || l.Image.Kind == intent.ImageByID || was.Source != source || image == w.Image {
		return ""
	}
	return image
}

// Refreshed identifies the result of a refresh of a group.
func (w Version) Refreshed(policy *intent.MixedInstances) string {
	return content.ShortHash([]byte(w.Sum()), content.Canonical(policy))
}
