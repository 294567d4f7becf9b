package template

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/lazyregexp"
)

// Fields identify changes: a stop records the fields that the stopped change set. Their keys do not
// depend on the order of a list, and white space of user data does not count. So an entry before a
// bad boot command, or another blank in it, does not make it a different command.

// Fields computes the fields of launch templates by which FleetRollouts distinguish changes.
type Fields struct{ in *model.Input }

// Fields returns the Fields for the target's launch templates.
func (c Planner) Fields() Fields { return Fields{c.In} }

// FieldsOf returns the fields of a version that a pool had. If weir has not read the version, as
// for a template that the pool brings along, the only field is its number.
func (f Fields) FieldsOf(pool *intent.Pool, t observed.Template, number int64) []rollout.Field {
	if v, read := t.Versions[number]; read {
		return f.fields(pool, v.Data)
	}
	return []rollout.Field{f.Field("launchTemplate", "launchTemplate", t.Name+" "+strconv.FormatInt(number, 10))}
}

// WantedFields returns the fields of the wanted version.
func (f Fields) WantedFields(pool *intent.Pool, w Version) []rollout.Field {
	if w.want == nil {
		return []rollout.Field{f.Field("launchTemplate", "launchTemplate", w.Ref.Name+" "+w.Version())}
	}
	return f.fields(pool, w.Content(w.want))
}

// WholeUserData returns one field for the exact user data, nil if weir does not write it.
func (f Fields) WholeUserData(w Version) []rollout.Field {
	if w.want == nil {
		return nil
	}
	return []rollout.Field{f.Field("whole", "userData", content.Decoded(w.Content(w.want).UserData))}
}

// UserDataFields returns the wanted user data as a whole (see WholeUserData) and line by line, and the
// instance type under the key of earlier releases. A search for a stopped change needs them besides
// WantedFields. Lines are included even if user data contains a secret, although such a change is recorded
// only as a whole. So a changed secret next to a stopped line does not lift the stop.
func (f Fields) UserDataFields(w Version) []rollout.Field {
	if w.want == nil {
		return nil
	}
	out := append(f.WholeUserData(w), f.userDataFields(content.Decoded(w.Content(w.want).UserData))...)
	if kind := w.Content(w.want).InstanceType; kind != "" {
		out = append(out, f.Field("InstanceType", "instanceType", kind)) // records of earlier releases use this key
	}
	return out
}

// UserDataChange returns the wanted user data as one field if it differs from that of t's version with
// the given number. It returns nil if they are equal, the version was not read, or weir does not write
// the template. Callers use it if a comparison by line shows no difference, so that only white space or
// the order of lines changed.
func (f Fields) UserDataChange(w Version, t observed.Template, number int64) []rollout.Field {
	v, read := t.Versions[number]
	if w.want == nil || !read || content.Decoded(v.Data.UserData) == content.Decoded(w.Content(w.want).UserData) {
		return nil
	}
	return f.WholeUserData(w)
}

// InstanceTypes is the key of a pool's instance types, wherever the manifests name them. A type
// that moves from the template to an override stays the same.
const InstanceTypes = "instanceTypes" + rollout.Choices

// InstanceType returns the field of an instance type that the manifest sets in name.
func (f Fields) InstanceType(name, instanceType string) rollout.Field {
	return f.Field(InstanceTypes, name, instanceType)
}

// Field returns a field with the mark of a value.
func (f Fields) Field(key, name string, value any) rollout.Field {
	mark, _ := mask(f.in.Policy.DigestKey, key+"\x00"+string(content.Canonical(value))).(string)
	return rollout.Field{Key: key, Name: name, Mark: mark}
}

// fields returns the contents of a template version as fields of a rollout, without values that AWS drops or
// sets itself. Secret user data is one field.
func (f Fields) fields(pool *intent.Pool, data intent.TemplateData) (out []rollout.Field) {
	root := pool.LaunchTemplate != nil && pool.LaunchTemplate.RootDevice
	for key, value := range flatten(data) {
		if key == "UserData" {
			text := content.Decoded(data.UserData)
			if pool.LaunchTemplate != nil && pool.LaunchTemplate.UserData.Mark != "" {
				out = append(out, f.Field(key, "userData", text)) // with a mark for each line, anybody could test guesses of the secret
				continue
			}
			out = append(out, f.userDataFields(text)...)
			continue
		}
		if value == nil || value == "" || value == false || value == float64(0) || value == true && strings.HasSuffix(key, ".Ebs.DeleteOnTermination") {
			continue // AWS drops these values, or sets them itself
		}
		path, _ := templatePath(key, root)
		name, at := path.String(), fieldKey(key, data)
		if key == "InstanceType" {
			at = InstanceTypes
		}
		if list := reflect.ValueOf(value); list.Kind() == reflect.Slice {
			for i := range list.Len() {
				out = append(out, f.Field(at+rollout.List, name, list.Index(i).Interface()))
			}
			continue
		}
		one := f.Field(at, name, value)
		one.Tag = strings.HasPrefix(key, "TagSpecifications/")
		out = append(out, one)
	}
	return out
}

var position = lazyregexp.New(`\[(\d+)\]`)

// fieldKey returns a member's path with an element's identity in place of its position.
func fieldKey(key string, data intent.TemplateData) string {
	if strings.HasPrefix(key, "TagSpecifications/") {
		return key // keys of tags may hold brackets
	}
	at := position.FindStringSubmatchIndex(key)
	if at == nil {
		return key
	}
	i, err := strconv.Atoi(key[at[2]:at[3]])
	id := ""
	switch list := key[:at[0]]; {
	case err != nil:
	case list == "BlockDeviceMappings" && i < len(data.BlockDeviceMappings):
		id = data.BlockDeviceMappings[i].DeviceName
	case list == "NetworkInterfaces" && i < len(data.NetworkInterfaces):
		id = string(content.Canonical(data.NetworkInterfaces[i].DeviceIndex))
	}
	return key[:at[0]] + "[" + id + "]" + position.ReplaceAllString(key[at[1]:], rollout.List)
}

// userDataFields returns the lines of user data, each with its part.
func (f Fields) userDataFields(text string) (out []rollout.Field) {
	for _, p := range userDataParts(text) {
		name := p.name
		if i := strings.LastIndex(name, ": "); i >= 0 {
			name = name[i+2:] // of a MIME document
		}
		section, entry, _ := strings.Cut(name, "[")
		if !plainSection.MatchString(section) {
			section = "text"
		}
		if position.MatchString("[" + entry) {
			entry = "" // commands are identified by their text, not by their position
		}
		for line := range strings.Lines(p.text) {
			if words := strings.Join(strings.Fields(line), " "); words != "" {
				out = append(out, f.Field("userData/"+section+rollout.List, "userData."+section, entry+"\n"+words))
			}
		}
	}
	return out
}

// plainSection matches names of sections that may appear in a record. Any other name may be secret.
var plainSection = lazyregexp.New(`^[a-z][a-z0-9_./-]{0,40}$`)
