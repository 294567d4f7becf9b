package kinds

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	rows "github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/nearest"
	"go.yaml.in/yaml/v3"
)

// field is one field of a decoded struct, as its tags say:
//
//	json:"name"                  the key in YAML; "-" and no tag leave a field out
//	enum:"a|b"                   the only values
//	default:"x"                  the value where the field is not written
//	check:"required,min=1,max=9,minlen=2"; required=v1beta1 is so in that version
//	in:"v1beta1,v1beta2"         the versions that have the field; all without the tag
//	later:"true"                 known, but refused by this version of weir
//
// or, for a member of a struct of package intent, as its row in package field says.
type field struct {
	name       string
	index      []int
	enum       []string
	byDefault  string
	hasDefault bool
	required   bool
	requiredIn string
	min, max   *int64
	minLen     int
	begins     string
	versions   []string
	later      bool
}

func (f field) requiredBy(version string) bool {
	return f.required && (f.requiredIn == "" || f.requiredIn == version)
}

func (f field) in(version string) bool {
	return f.versions == nil || slices.Contains(f.versions, version)
}

// enumerated is a string type that knows its values.
type enumerated interface{ values(version string) []string }

// hasField says that YAML of the struct type T may have the key.
func hasField[T any](name string) bool {
	d := &decoder{tables: map[reflect.Type][]field{}}
	return slices.ContainsFunc(d.fields(reflect.TypeFor[T]()), func(f field) bool { return f.name == name })
}

// fields returns the fields of a struct type, those of embedded structs included. Of an
// embedded struct of the intent those are left out that PoolOptions does not set.
func (d *decoder) fields(t reflect.Type) []field {
	if table, ok := d.tables[t]; ok {
		return table
	}
	var table []field
	for _, sf := range reflect.VisibleFields(t) {
		name := rows.JSONKey(sf)
		if sf.Anonymous || name == "" || name == "-" {
			continue
		}
		owner := t
		if n := len(sf.Index); n > 1 {
			owner = t.FieldByIndex(sf.Index[:n-1]).Type
		}
		f := newField(sf, name)
		if step, ok := rows.At(owner, sf.Name); ok {
			if owner != t && !step.OfOptions {
				continue
			}
			f.name = step.Key
			f.ofRow(step.Row)
		}
		table = append(table, f)
	}
	d.tables[t] = table
	return table
}

// ofRow adds what a row says of a field.
func (f *field) ofRow(r *rows.Row) {
	if r == nil {
		return // it holds the members of rows
	}
	if r.Values != "" {
		f.enum = strings.Split(r.Values, "|")
	}
	f.byDefault, f.hasDefault = r.Default, r.Default != ""
	f.required, f.min, f.max, f.begins = r.Required, r.Min, r.Max, r.Begins
}

func newField(sf reflect.StructField, name string) field {
	f := field{name: name, index: sf.Index}
	if e := sf.Tag.Get("enum"); e != "" {
		f.enum = strings.Split(e, "|")
	}
	f.byDefault, f.hasDefault = sf.Tag.Lookup("default")
	if in := sf.Tag.Get("in"); in != "" {
		f.versions = strings.Split(in, ",")
	}
	f.later = sf.Tag.Get("later") == "true"
	for _, c := range strings.Split(sf.Tag.Get("check"), ",") {
		key, value, _ := strings.Cut(c, "=")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch key {
		case "required":
			f.required, f.requiredIn = true, value
		case "min":
			f.min = &n
		case "max":
			f.max = &n
		case "minlen":
			f.minLen = int(n)
		}
	}
	return f
}

// setDefault writes a default, which is text in the tag, into a field.
func setDefault(v reflect.Value, text string) {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(text == "true")
	default:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			panic("manifest: bad default in a tag: " + text)
		}
		v.SetInt(n)
	}
}

// check applies the constraints of a field's tags to its decoded value.
func (d *decoder) check(f field, v reflect.Value, n *yaml.Node, p intent.Path) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	if list, ok := v.Interface().([]string); ok && f.begins != "" {
		for i, text := range list {
			d.checkBeginning(f.begins, text, p.Join(intent.Index(i)))
		}
	}
	if n.Kind == yaml.ScalarNode {
		switch v.Kind() {
		case reflect.String:
			d.checkText(f, v, p)
			if text := v.String(); f.begins != "" && text != "" {
				d.checkBeginning(f.begins, text, p)
			}
		case reflect.Int, reflect.Int32, reflect.Int64:
			d.checkRange(f, v.Int(), p)
		}
	}
}

func (d *decoder) checkText(f field, v reflect.Value, p intent.Path) {
	allowed := f.enum
	if e, ok := v.Interface().(enumerated); ok {
		allowed = e.values(d.version)
	}
	if allowed != nil && !slices.Contains(allowed, v.String()) {
		detail := "it must be " + OneOf(allowed)
		if near := nearest.Word(v.String(), allowed); near != "" && len(allowed) > 4 {
			detail = fmt.Sprintf("did you mean %q? %s", near, detail)
		}
		summary := fmt.Sprintf("%s cannot be %q", p, v.String())
		if slices.Contains(mayHoldSecrets, d.Ref.Kind) {
			summary = fmt.Sprintf("%s has a value that is not known", p) // which may come from a variable
		}
		d.Error(p, "bad-enum", summary, detail)
	}
	if len(v.String()) < f.minLen {
		d.Error(p, "out-of-range", fmt.Sprintf("%s must have at least %d characters", p, f.minLen), "")
	}
}

// checkBeginning checks an ARN or an id.
func (d *decoder) checkBeginning(with, text string, p intent.Path) {
	if with == "arn:" {
		CheckARN(d.Reporter, p, text)
	} else {
		CheckID(d.Reporter, p, text, with)
	}
}

func (d *decoder) checkRange(f field, n int64, p intent.Path) {
	if f.min != nil && n < *f.min {
		d.Error(p, "out-of-range", fmt.Sprintf("%s is %d, must be at least %d", p, n, *f.min), "")
	}
	if f.max != nil && n > *f.max {
		d.Error(p, "out-of-range", fmt.Sprintf("%s is %d, must be at most %d", p, n, *f.max), "")
	}
}
