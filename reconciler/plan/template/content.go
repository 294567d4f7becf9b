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

// is reports whether version v has the wanted content. A version that weir made names its content
// by the hashes in its description, which must match the content. Any other version is compared by
// content. If the image comes from a lookup, the source hash decides: as long as only the answer
// changes, the version keeps its image. A newly published image must not roll a fleet by itself,
// unless the pool follows it.
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

// mislabeled reports whether version v names the wanted content but has other content: somebody
// made it by hand with a copied description.
func (w *Want) mislabeled(v observed.TemplateVersion) bool {
	s, ours := content.DescriptionHashes(v.Description)
	return ours && w.named(s) && !w.trusted(v, s)
}

// trusted reports whether a version that names the wanted content has it. Members that AWS omits or
// fills in count as equal. AWS may return other content than was sent, in a way that weir does not
// know. weir then makes the version once more, with a confirmation of this content in its
// description. The confirmation counts as well, because otherwise every pass would make a version.
func (w *Want) trusted(v observed.TemplateVersion, s content.Said) bool {
	return s.Confirmed != "" && s.Confirmed == confirmation(v, v.Number) || w.matches(v, s)
}

// matches reports whether the content of a version that names the wanted content matches it.
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

// with returns the wanted content with the image that version v keeps.
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

// confirmation returns the confirmation for a version of the given number whose content reads like
// v. It includes the number, so a copied description does not confirm another version.
func confirmation(v observed.TemplateVersion, number int64) string {
	known := "known"
	if v.Unknown {
		known = "unknown"
	}
	return content.ShortHash([]byte(v.Hash()), []byte(known), []byte(strconv.FormatInt(number, 10)))
}

// body returns BodyHash of the wanted content, with the newest image.
func (w *Want) body() string {
	if w.hash == "" {
		w.hash = content.BodyHash(w.Data)
	}
	return w.hash
}

// published reports whether the image comes from a lookup whose answer changes when a newer image
// is published.
func (w *Want) published() bool {
	return w.lookup.Kind != "" && w.lookup.Kind != intent.ImageByID
}

func (w *Want) keepsImage() bool { return w.published() && !w.follow }

// tidy removes empty members: EC2 does not store them, so the version would read back differently.
func tidy(d *intent.TemplateData) {
	v := reflect.ValueOf(d).Elem()
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Kind() == reflect.Pointer && !f.IsNil() && f.Elem().Kind() == reflect.Struct && f.Elem().IsZero() {
			f.SetZero()
		}
	}
}

// withoutEmpty returns template data as JSON without empty values: false, 0, empty texts, and lists
// and objects with only those.
func withoutEmpty(d intent.TemplateData) any {
	var generic any
	if err := json.Unmarshal(content.BodyJSON(&d), &generic); err != nil {
		panic("template data without what is empty: " + err.Error())
	}
	out, _ := model.Strip(generic)
	return out
}
