package template

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/render/intent"
)

// is reports whether version v holds the wanted content. A version of weir's says so by
// the hashes in its description, and is believed if its content gives them; any other
// is compared by content. Where the image comes from a lookup, the source hash decides:
// while nothing but the answer changed, the version keeps its image, because a newly
// published image must not roll a fleet by itself, unless the pool follows it.
func (w *Want) is(v observed.TemplateVersion) bool {
	s, ours := content.DescriptionHashes(v.Description)
	if !ours {
		return !v.Unknown && v.Hash() == w.body() || SameMachines(v, w.Data, true)
	}
	return w.named(s) && w.trusted(v, s)
}

// named reports whether a description names the wanted content.
func (w *Want) named(s content.Said) bool {
	if w.keepsImage() {
		return s.Source == w.source
	}
	return s.Body == w.body()
}

// mislabeled reports whether version v says that it is the wanted content and
// holds something else: it was made by hand with a copied description.
func (w *Want) mislabeled(v observed.TemplateVersion) bool {
	s, ours := content.DescriptionHashes(v.Description)
	return ours && w.named(s) && !w.trusted(v, s)
}

// trusted reports whether a version that names the wanted content holds it. A member
// that AWS leaves out or fills in of its own accord is no difference. Should AWS answer
// something else than what was sent in a way that weir does not know, the version that
// was made for that reason confirms by its description that it is so, because otherwise
// a version would be made at each pass.
func (w *Want) trusted(v observed.TemplateVersion, s content.Said) bool {
	return s.Confirmed != "" && s.Confirmed == confirmation(v, v.Number) || w.matches(v, s)
}

// matches reports whether a version that names the wanted content reads like it.
func (w *Want) matches(v observed.TemplateVersion, s content.Said) bool {
	if v.Unknown {
		return false
	}
	if v.Hash() == s.Body {
		return true
	}
	data := w.with(v)
	return content.BodyHash(data) == s.Body && reflect.DeepEqual(withoutEmpty(data), withoutEmpty(v.Data))
}

// with is the wanted content with the image that version v keeps.
func (w *Want) with(v observed.TemplateVersion) intent.TemplateData {
	data := w.Data
	if w.keepsImage() {
		data.ImageID = v.Data.ImageID
		if w.root && len(data.BlockDeviceMappings) > 0 && len(v.Data.BlockDeviceMappings) > 0 {
			data.BlockDeviceMappings = slices.Clone(data.BlockDeviceMappings)
			data.BlockDeviceMappings[0].DeviceName = v.Data.BlockDeviceMappings[0].DeviceName
		}
	}
	return data
}

// confirmation is the statement of the version of the given number if it reads like v.
// The number is part of it, so a copy of the description is not believed.
func confirmation(v observed.TemplateVersion, number int64) string {
	known := "known"
	if v.Unknown {
		known = "unknown"
	}
	return content.ShortHash([]byte(v.Hash()), []byte(known), []byte(strconv.FormatInt(number, 10)))
}

// body is BodyHash of the wanted content, with the newest image.
func (w *Want) body() string {
	if w.hash == "" {
		w.hash = content.BodyHash(w.Data)
	}
	return w.hash
}

// published reports whether the image comes from a lookup whose answer changes with a
// newer published image.
func (w *Want) published() bool {
	return w.lookup.Kind != "" && w.lookup.Kind != intent.ImageByID
}

func (w *Want) keepsImage() bool { return w.published() && !w.follow }

// tidy drops members that hold nothing: EC2 stores none of them, so such a
// version would read back as another.
func tidy(d *intent.TemplateData) {
	v := reflect.ValueOf(d).Elem()
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Kind() == reflect.Pointer && !f.IsNil() && f.Elem().Kind() == reflect.Struct && f.Elem().IsZero() {
			f.SetZero()
		}
	}
}

// withoutEmpty is template data as JSON without what stands for nothing: false, 0,
// empty texts and whatever holds only those.
func withoutEmpty(d intent.TemplateData) any {
	var generic any
	if err := json.Unmarshal(content.BodyJSON(&d), &generic); err != nil {
		panic("template data without what is empty: " + err.Error())
	}
	out, _ := model.Strip(generic)
	return out
}
