package oracle

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// TestPaths walks the Go structs of the others and weir's schemas, and compares
// the JSON paths below spec and what they hold.
func TestPaths(t *testing.T) {
	found, schemas := findings{}, kinds.Schemas()
	for _, s := range subjects() {
		weir := schemas[s.SchemaVersion]
		if weir == nil {
			t.Errorf("weir does not read %s", s.name())
			continue
		}
		spec, ok := reflect.TypeOf(s.new()).Elem().FieldByName("Spec")
		if !ok {
			t.Fatalf("%s has no spec", s.name())
		}
		theirs, ours := map[string]string{}, map[string]string{}
		walkType(spec.Type, "spec", theirs, 0)
		walkSchema(weir.Properties["spec"], "spec", ours)
		for path, kind := range theirs {
			switch own, ok := ours[path]; {
			case ok && own == "any" && kind != "any":
				found.add(finding{"paths", s.name(), path, "weir does not look into it"}, kind)
			case !ok && !underAny(ours, path):
				found.add(finding{"paths", s.name(), path, "weir does not know it"}, kind)
			case ok && own != kind:
				found.add(finding{"paths", s.name(), path, "weir has " + own + ", they have " + kind}, "")
			}
		}
		for path, kind := range ours {
			if _, ok := theirs[path]; !ok && !underAny(theirs, path) {
				found.add(finding{"paths", s.name(), path, "weir alone has it"}, kind)
			}
		}
	}
	found.judge(t, "paths")
}

// underAny reports whether a field above path holds anything.
func underAny(kinds map[string]string, path string) bool {
	for i, c := range path {
		if (c == '.' || c == '[' || c == '{') && kinds[path[:i]] == "any" {
			return true
		}
	}
	return false
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// walkType notes what each path of a Go type holds.
func walkType(t reflect.Type, path string, out map[string]string, depth int) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if depth > 40 {
		panic("a recursive type at " + path)
	}
	if strings.HasSuffix(t.PkgPath(), "meta/v1") && (t.Name() == "Duration" || t.Name() == "Time") {
		out[path] = "string"
		return
	}
	if reflect.PointerTo(t).Implements(unmarshaler) {
		out[path] = "any" // free-form, or a type that says itself what it takes
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		out[path] = "object"
		walkFields(t, path, out, depth)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			out[path] = "string"
			return
		}
		out[path] = "array"
		walkType(t.Elem(), path+"[]", out, depth+1)
	case reflect.Map:
		out[path] = "object"
		walkType(t.Elem(), path+"{}", out, depth+1)
	case reflect.String:
		out[path] = "string"
	case reflect.Bool:
		out[path] = "boolean"
	case reflect.Interface:
		out[path] = "any"
	default:
		out[path] = "integer"
	}
}

func walkFields(t reflect.Type, path string, out map[string]string, depth int) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case name == "" && (f.Anonymous || strings.Contains(options, "inline")):
			embedded := f.Type
			for embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			walkFields(embedded, path, out, depth+1)
		case name == "":
			walkType(f.Type, path+"."+f.Name, out, depth+1)
		default:
			walkType(f.Type, path+"."+name, out, depth+1)
		}
	}
}

// walkSchema notes what each path of a schema holds.
func walkSchema(s *kinds.Schema, path string, out map[string]string) {
	out[path] = s.Type
	if s.Type == "" {
		out[path] = "any"
	}
	for name, p := range s.Properties {
		walkSchema(p, path+"."+name, out)
	}
	if s.Items != nil {
		walkSchema(s.Items, path+"[]", out)
	}
	if s.AdditionalProperties != nil {
		walkSchema(s.AdditionalProperties, path+"{}", out)
	}
}
