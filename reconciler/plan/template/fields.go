package template

import (
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/render/intent"
)

// The fields of a launch template, as a stop keeps those that the stopped change set. Their keys do not depend on the
// order of a list, and white space of user data counts for nothing: an entry in front of a bad boot command, or one
// more blank in it, must not make it another one.

// Fields makes the fields of launch templates by which FleetRollouts tell changes apart.
type Fields struct{ in *model.Input }

// Fields makes fields of the target's launch templates.
func (c Planner) Fields() Fields { return Fields{c.In} }

// FieldsOf are the fields of a version that a pool had: its number alone where weir has not read it, as that of a
// template which the pool brings along.
func (f Fields) FieldsOf(pool *intent.Pool, t observed.Template, number int64) []rollout.Field {
	if v, read := t.Versions[number]; read {
		return f.fields(pool, v.Data)
	}
	return []rollout.Field{f.Field("launchTemplate", "launchTemplate", t.Name+" "+strconv.FormatInt(number, 10))}
}

// WantedFields are those of the wanted version.
func (f Fields) WantedFields(pool *intent.Pool, w Version) []rollout.Field {
	if w.want == nil {
		return []rollout.Field{f.Field("launchTemplate", "launchTemplate", w.Ref.Name+" "+w.Version())}
	}
	return f.fields(pool, w.Content(w.want))
}

// Whole stands for the wanted user data to the letter; nil where weir does not write it.
func (f Fields) Whole(w Version) []rollout.Field {
	if w.want == nil {
		return nil
	}
	return []rollout.Field{f.Field("whole", "userData", content.Decoded(w.Content(w.want).UserData))}
}

// Values are Whole and each line: among them a stopped change is looked for. The lines are
// there too where user data holds a secret, whose changes are recorded as a whole, so that
// a secret beside a stopped line does not lift the stop.
func (f Fields) Values(w Version) []rollout.Field {
	if w.want == nil {
		return nil
	}
	out := append(f.Whole(w), f.userDataFields(content.Decoded(w.Content(w.want).UserData))...)
	if kind := w.Content(w.want).InstanceType; kind != "" {
		out = append(out, f.Field("InstanceType", "instanceType", kind)) // as records of earlier releases have it
	}
	return out
}

// Reordered returns the change if it affects only white space or an order in the user data of a
// version, nil for any other change.
func (f Fields) Reordered(w Version, t observed.Template, number int64) []rollout.Field {
	v, read := t.Versions[number]
	if w.want == nil || !read || content.Decoded(v.Data.UserData) == content.Decoded(w.Content(w.want).UserData) {
		return nil
	}
	return f.Whole(w)
}

// InstanceTypes is the key of the instance types of the machines of a pool, wherever the manifests
// give them: a type that moves from the template to an override is the same.
const InstanceTypes = "instanceTypes" + rollout.Choices

// InstanceType is the field of a type that a pool's machines may have, which the manifest says in name.
func (f Fields) InstanceType(name, instanceType string) rollout.Field {
	return f.Field(InstanceTypes, name, instanceType)
}

// Field returns a field with the mark of a value.
func (f Fields) Field(key, name string, value any) rollout.Field {
	mark, _ := mask(f.in.Policy.DigestKey, key+"\x00"+string(content.Canonical(value))).(string)
	return rollout.Field{Key: key, Name: name, Mark: mark}
}

func (f Fields) fields(pool *intent.Pool, data intent.TemplateData) (out []rollout.Field) {
	root := pool.LaunchTemplate != nil && pool.LaunchTemplate.RootDevice
	for key, value := range flatten(data) {
		if key == "UserData" {
			text := content.Decoded(data.UserData)
			if pool.LaunchTemplate != nil && pool.LaunchTemplate.UserData.Mark != "" {
				out = append(out, f.Field(key, "userData", text)) // a mark for each line would answer guesses
				continue
			}
			out = append(out, f.userDataFields(text)...)
			continue
		}
		if value == nil || value == "" || value == false || value == float64(0) || value == true && strings.HasSuffix(key, ".Ebs.DeleteOnTermination") {
			continue // AWS keeps none of these, or fills them in
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

var position = regexp.MustCompile(`\[(\d+)\]`)

// fieldKey is a member's path with what identifies an element in place of its position.
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

// userDataFields are the lines of user data, each in its part.
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
			entry = "" // commands are known by what they are, wherever they stand
		}
		for line := range strings.Lines(p.text) {
			if words := strings.Join(strings.Fields(line), " "); words != "" {
				out = append(out, f.Field("userData/"+section+rollout.List, "userData."+section, entry+"\n"+words))
			}
		}
	}
	return out
}

// plainSection are names of sections that may stand in a record: any other may be secret.
var plainSection = regexp.MustCompile(`^[a-z][a-z0-9_./-]{0,40}$`)
