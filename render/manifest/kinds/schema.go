package kinds

import (
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/weir-gitops/weir/render/strict"
)

// Schema says what a value may hold, in the words of JSON Schema. It is made
// from the types that decoding uses, so the two cannot differ.
type Schema struct {
	// Type is object, array, string, integer or boolean; empty for any value.
	Type string `json:"type,omitempty"`
	// Format is "duration" for text such as 5m0s.
	Format               string             `json:"format,omitempty"`
	Properties           map[string]*Schema `json:"properties,omitempty"`
	AdditionalProperties *Schema            `json:"additionalProperties,omitempty"`
	Required             []string           `json:"required,omitempty"`
	Items                *Schema            `json:"items,omitempty"`
	Enum                 []string           `json:"enum,omitempty"`
	Default              any                `json:"default,omitempty"`
	Minimum              *int64             `json:"minimum,omitempty"`
	Maximum              *int64             `json:"maximum,omitempty"`
	MinLength            int64              `json:"minLength,omitempty"`
	MaxLength            int64              `json:"maxLength,omitempty"`
	Pattern              string             `json:"pattern,omitempty"`
	MinItems             int64              `json:"minItems,omitempty"`
	MaxItems             int64              `json:"maxItems,omitempty"`
	MinProperties        int64              `json:"minProperties,omitempty"`
	// Refused says that the field is known and that this version of weir does
	// not take it.
	Refused bool `json:"-"`
	// Of is the Go type that an object is decoded into, whose comment describes it.
	Of string `json:"-"`
}

// SchemaVersion identifies a version of a kind.
type SchemaVersion struct{ APIVersion, Kind string }

// Schemas returns the schemas of all versions of all kinds that weir reads. A schema contains only the fields
// of its version.
func Schemas() map[SchemaVersion]*Schema {
	out := map[SchemaVersion]*Schema{}
	for _, k := range known() {
		if k.use != read {
			continue
		}
		for _, version := range k.versions {
			s := schemer{version}.schema(k.object)
			limitSchema(s, limitsOf(k.name, version))
			out[SchemaVersion{k.group + "/" + version, k.name}] = s
		}
	}
	return out
}

// schemer makes schemas for one version.
type schemer struct{ version string }

// described is a type with its own decoder, which provides its schema.
type described interface{ schema(of schemer) *Schema }

// schema returns the schema of the values that the decoder accepts for a type.
func (in schemer) schema(t reflect.Type) *Schema {
	if s, ok := reflect.New(t).Interface().(described); ok {
		return s.schema(in)
	}
	if t == reflect.TypeFor[time.Duration]() {
		return &Schema{Type: "string", Format: "duration"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return in.schema(t.Elem())
	case reflect.Slice:
		return &Schema{Type: "array", Items: in.schema(t.Elem())}
	case reflect.Map:
		return &Schema{Type: "object", AdditionalProperties: in.schema(t.Elem())}
	case reflect.String:
		return &Schema{Type: "string"}
	case reflect.Bool:
		return &Schema{Type: "boolean"}
	case reflect.Struct:
		return in.structSchema(t)
	case reflect.Interface:
		return &Schema{}
	case reflect.Float64:
		least := int64(0)
		return &Schema{Type: "number", Minimum: &least}
	}
	return &Schema{Type: "integer"}
}

// structSchema returns the schema of a struct, with the fields that the API version has.
func (in schemer) structSchema(t reflect.Type) *Schema {
	out := &Schema{Type: "object", Properties: map[string]*Schema{}, Of: t.Name()}
	for _, f := range language.Fields(t) {
		if !f.In(in.version) {
			continue
		}
		s := in.schema(t.FieldByIndex(f.Index).Type)
		in.constrain(s, f)
		out.Properties[f.Name] = s
		if f.RequiredIn(in.version) {
			out.Required = append(out.Required, f.Name)
		}
	}
	slices.Sort(out.Required)
	return out
}

// constrain adds the limits and the default of a field.
func (in schemer) constrain(s *Schema, f strict.Field) {
	s.Refused = f.Later
	if f.Default != nil {
		s.Default = typedDefault(s.Type, *f.Default)
	}
	s.limit(&f.Limit)
}

// limit adds limits to a schema. If it already has one, the stricter limit wins.
func (s *Schema) limit(l *strict.Limit) {
	s.Minimum, s.Maximum = stricter(s.Minimum, l.Minimum, 1), stricter(s.Maximum, l.Maximum, -1)
	for field, bound := range map[*int64]*int64{&s.MinLength: l.MinLength, &s.MaxLength: l.MaxLength, &s.MinItems: l.MinItems,
		&s.MaxItems: l.MaxItems, &s.MinProperties: l.MinProperties} {
		if bound != nil && *field == 0 {
			*field = *bound
		}
	}
	if s.Enum == nil {
		s.Enum = l.Enum
	}
	if l.Pattern != nil {
		s.Pattern = l.Pattern.String()
	}
}

// limitSchema adds limits to a schema and its parts.
func limitSchema(s *Schema, l *strict.Limits) {
	if l == nil || s == nil {
		return
	}
	s.limit(&l.Limit)
	for name, property := range s.Properties {
		limitSchema(property, l.At(name))
	}
	limitSchema(s.Items, l.At("[]"))
	limitSchema(s.AdditionalProperties, l.At("{}"))
}

// stricter returns the stricter of two bounds: the larger one if sign is 1, and the smaller one if sign is
// -1.
func stricter(a, b *int64, sign int64) *int64 {
	if a == nil || (b != nil && *b*sign > *a*sign) {
		return b
	}
	return a
}

func typedDefault(kind, text string) any {
	switch kind {
	case "boolean":
		return text == "true"
	case "integer":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			panic("manifest: bad default in a tag: " + text)
		}
		return n
	}
	return text
}

func (*Anything) schema(schemer) *Schema { return &Schema{} }
