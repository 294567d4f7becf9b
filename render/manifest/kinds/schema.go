package kinds

import (
	"reflect"
	"slices"
	"strconv"
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
	// Of is the Go type that an object is decoded into, whose comment says what it
	// is for.
	Of string `json:"-"`
}

// SchemaVersion names one version of a kind.
type SchemaVersion struct{ APIVersion, Kind string }

// Schemas returns the schemas of all objects that weir reads, in all versions
// that it reads. Fields that the other versions have are not in them.
func Schemas() map[SchemaVersion]*Schema {
	out := map[SchemaVersion]*Schema{}
	for _, k := range known() {
		if k.use != read {
			continue
		}
		for _, version := range k.versions {
			d := &decoder{version: version, tables: map[reflect.Type][]field{}}
			s := d.schema(k.object)
			limitSchema(s, limitsOf(k.name, version))
			out[SchemaVersion{k.group + "/" + version, k.name}] = s
		}
	}
	return out
}

// described is a type that reads a node in its own way and says what it takes.
type described interface {
	schema(d *decoder) *Schema
}

// schema describes what the decoder takes for a type.
func (d *decoder) schema(t reflect.Type) *Schema {
	if s, ok := reflect.New(t).Interface().(described); ok {
		return s.schema(d)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.schema(t.Elem())
	case reflect.Slice:
		return &Schema{Type: "array", Items: d.schema(t.Elem())}
	case reflect.Map:
		return &Schema{Type: "object", AdditionalProperties: d.schema(t.Elem())}
	case reflect.String:
		return &Schema{Type: "string"}
	case reflect.Bool:
		return &Schema{Type: "boolean"}
	case reflect.Struct:
		return d.structSchema(t)
	case reflect.Float64:
		least := int64(0)
		return &Schema{Type: "number", Minimum: &least}
	}
	return &Schema{Type: "integer"}
}

func (d *decoder) structSchema(t reflect.Type) *Schema {
	out := &Schema{Type: "object", Properties: map[string]*Schema{}, Of: t.Name()}
	for _, f := range d.fields(t) {
		if !f.in(d.version) {
			continue
		}
		of := t.FieldByIndex(f.index).Type
		s := d.schema(of)
		d.constrain(s, f, of)
		out.Properties[f.name] = s
		if f.requiredBy(d.version) {
			out.Required = append(out.Required, f.name)
		}
	}
	slices.Sort(out.Required)
	return out
}

// constrain adds what a field's tags say.
func (d *decoder) constrain(s *Schema, f field, of reflect.Type) {
	s.Refused = f.later
	s.Enum = f.enum
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if e, ok := reflect.Zero(of).Interface().(enumerated); ok {
		s.Enum = e.values(d.version)
	}
	if f.hasDefault {
		s.Default = typedDefault(s.Type, f.byDefault)
	}
	s.Minimum, s.Maximum = f.min, f.max
	s.MinLength = int64(f.minLen)
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

func (*Duration) schema(*decoder) *Schema { return &Schema{Type: "string", Format: "duration"} }

func (*Free) schema(*decoder) *Schema { return &Schema{} }

func (*Anything) schema(*decoder) *Schema { return &Schema{} }

func (*currentNetwork) schema(d *decoder) *Schema {
	current := &decoder{version: "v1beta2", tables: d.tables}
	return current.schema(reflect.TypeFor[Network]())
}

func (*kubeletArgs) schema(d *decoder) *Schema {
	if d.version == "v1beta2" {
		return d.schema(reflect.TypeFor[[]kubeletArg]())
	}
	return d.schema(reflect.TypeFor[map[string]string]())
}
