package strict

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Field is one field of a struct, as its tags say:
//
//	json:"name"                  the key, under the language's tag; "-" and no tag leave a field out
//	enum:"a|b"                   the only values
//	default:"x"                  the value where the field is not written
//	check:"required,min=1,max=9,minlen=2"; required=v1beta1 is so in that version
//	in:"v1beta1,v1beta2"         the versions that have the field, or those of an embedded struct; all without the tag
//	later:"true"                 known, but refused by this version of weir
type Field struct {
	Name  string
	Index []int
	Limit
	Default *string // nil if the field has no default
	// Required is true if the field is required in the version RequiredOnly, or in all versions if that is
	// empty.
	Required     bool
	RequiredOnly string
	Versions     []string
	Later        bool
}

// RequiredIn reports whether the field is required in a version.
func (f *Field) RequiredIn(version string) bool {
	return f.Required && (f.RequiredOnly == "" || f.RequiredOnly == version)
}

// In reports whether a version has the field.
func (f *Field) In(version string) bool {
	return f.Versions == nil || slices.Contains(f.Versions, version)
}

// Fields returns the fields of a struct type, including fields of embedded structs.
func (l *Language) Fields(t reflect.Type) []Field {
	if table, ok := l.fields.Load(t); ok {
		return table.([]Field)
	}
	var table []Field
	for _, sf := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(sf.Tag.Get(l.Tag), ",")
		if sf.Anonymous || name == "" || name == "-" {
			continue
		}
		f, owner := newField(sf, name), t
		if n := len(sf.Index); n > 1 {
			embedded := t.FieldByIndex(sf.Index[:n-1])
			if owner = embedded.Type; f.Versions == nil {
				f.Versions = versions(embedded)
			}
		}
		if l.Refine == nil || l.Refine(owner, sf, &f) {
			table = append(table, f)
		}
	}
	l.fields.Store(t, table)
	return table
}

// newField returns the field with the given name in manifests, with the limits and the default from its
// struct tags.
func newField(sf reflect.StructField, name string) Field {
	f := Field{Name: name, Index: sf.Index, Versions: versions(sf), Later: sf.Tag.Get("later") == "true"}
	if e := sf.Tag.Get("enum"); e != "" {
		f.Enum = strings.Split(e, "|")
	}
	if text, ok := sf.Tag.Lookup("default"); ok {
		f.Default = &text
	}
	for c := range strings.SplitSeq(sf.Tag.Get("check"), ",") {
		key, value, _ := strings.Cut(c, "=")
		switch key {
		case "":
		case "required":
			f.Required, f.RequiredOnly = true, value
		default:
			f.set(map[string]string{"min": "minimum", "max": "maximum", "minlen": "minLength"}[key], value)
		}
	}
	return f
}

// versions returns the versions in a field's tag, or nil for all versions.
func versions(sf reflect.StructField) []string {
	if in := sf.Tag.Get("in"); in != "" {
		return strings.Split(in, ",")
	}
	return nil
}

// setDefault sets a field to the default in its tag.
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
	case reflect.Int64:
		if d, err := time.ParseDuration(text); err == nil && v.Type() == reflect.TypeFor[time.Duration]() {
			v.SetInt(int64(d))
			return
		}
		fallthrough
	default:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			panic("strict: bad default in a tag: " + text)
		}
		v.SetInt(n)
	}
}
