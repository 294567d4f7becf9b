package config

import (
	"cmp"
	"encoding"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/targetspec"
	"github.com/weir-gitops/weir/render/schema"
	"github.com/weir-gitops/weir/render/values"
)

// oneOf contains sets of keys by the path of their section. At least one key of each set is required.
var oneOf = map[string][][]string{
	"targets[]": {{"region", "table"}}, "targets[].varsFrom[]": {{"file", "path"}},
	"coordination": {{"dynamodb", "etcd"}, {"keysFile", "kmsKeyARNs"}},
}

// Schema returns the JSON Schema of a configuration, as draft-07. It accepts everything that Parse accepts,
// and some configurations that Parse rejects.
func Schema() schema.Node {
	out := describe("", reflect.TypeFor[Config]())
	out["$schema"], out["title"] = schema.Draft, "The configuration of weir"
	return out
}

// describe returns the schema of the type at a path.
func describe(at string, t reflect.Type) schema.Node {
	out := shape(at, t)
	if d := ruleOf(at).initial; d != nil {
		out["default"] = d
	}
	return out
}

// shape returns the JSON schema of a type in the configuration, without a description. at is its position in
// the configuration.
func shape(at string, t reflect.Type) schema.Node {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return schema.Node{"anyOf": []any{schema.Node{"type": "string", "pattern": schema.Duration}, schema.Node{"enum": []any{0, nil}}}}
	case t == reflect.TypeFor[targetspec.Limit]():
		return schema.Node{"anyOf": []any{schema.Node{"type": "integer", "minimum": 1}, schema.Node{"type": "string", "pattern": `^0*[1-9][0-9]*%?$`}, schema.Node{"type": "null"}}}
	case t == reflect.TypeFor[targetspec.Clock]():
		return schema.Node{"anyOf": []any{schema.Node{"type": "string", "pattern": targetspec.ClockPattern.String()}, schema.Node{"type": "null"}}}
	case t == reflect.TypeFor[targetspec.Count]():
		return schema.Node{"anyOf": []any{schema.Node{"type": "integer", "minimum": 1, "maximum": targetspec.MaxCount}, schema.Node{"type": "string", "pattern": `^0*[1-9][0-9]*$`}, schema.Node{"type": "null"}}}
	case t == reflect.TypeFor[targetspec.Rollouts]():
		return schema.Node{"anyOf": []any{schema.Node{"type": "integer", "minimum": 1}, schema.Node{"type": "string", "pattern": `^0*[1-9][0-9]*$`}, schema.Node{"type": "null"}}}
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return anyScalar()
	}
	switch t.Kind() {
	case reflect.Struct:
		return structure(at, t)
	case reflect.Slice:
		return schema.Node{"type": orNull(at, "array"), "items": describe(at+"[]", t.Elem())}
	case reflect.Map:
		if t.Elem().Kind() == reflect.Struct {
			return schema.Node{"type": []string{"object", "null"}, "additionalProperties": describe(at+"[]", t.Elem())}
		}
		return schema.Node{"type": []string{"object", "null"}, "additionalProperties": anyScalar(), "propertyNames": schema.Node{"pattern": values.Name.String()}}
	case reflect.Bool:
		return schema.Node{"type": []string{"boolean", "null"}}
	}
	r := ruleOf(at)
	if r.words != nil {
		return schema.Node{"enum": r.words}
	}
	out := anyScalar()
	if r.form != nil {
		out["pattern"] = r.form.String()
		if !r.isRequired() && !strings.HasSuffix(at, "[]") {
			out["pattern"] = "^$|" + r.form.String() // an empty value counts as missing
		}
	}
	return out
}

// structure returns the JSON schema of a struct, with the descriptions of its fields and the required ones.
func structure(at string, t reflect.Type) schema.Node {
	props := schema.Node{}
	out := schema.Node{"type": orNull(at, "object"), "properties": props, "additionalProperties": false}
	var required []string
	for _, f := range language.Fields(t) {
		member, owner := t.FieldByIndex(f.Index), t
		if n := len(f.Index); n > 1 {
			owner = t.FieldByIndex(f.Index[:n-1]).Type
		}
		p := describe(join(at, f.Name), member.Type)
		if text := cmp.Or(descriptions()[owner.Name()+"."+f.Name], descriptions()[elementName(member.Type)]); text != "" {
			p["description"] = text
		}
		props[f.Name] = p
		if ruleOf(join(at, f.Name)).isRequired() {
			required = append(required, f.Name)
		}
	}
	if required != nil {
		slices.Sort(required)
		out["type"], out["required"] = "object", required
	}
	var all []any
	for _, keys := range oneOf[at] {
		var choices []any
		for _, key := range keys {
			choices = append(choices, schema.Node{"required": []string{key}})
		}
		all = append(all, schema.Node{"anyOf": choices})
	}
	if all != nil {
		out["allOf"] = all
	}
	return out
}

// elementName returns the name of a type, or of the element type of a list.
func elementName(t reflect.Type) string {
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t.Name()
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// anyScalar returns the schema of a text, which YAML can also write as another scalar.
func anyScalar() schema.Node {
	return schema.Node{"type": []string{"string", "number", "boolean", "null"}}
}

// orNull also accepts null for an optional key.
func orNull(at, kind string) any {
	if ruleOf(at).isRequired() {
		return kind
	}
	return []string{kind, "null"}
}
