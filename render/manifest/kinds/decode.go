package kinds

import (
	_ "embed"
	"reflect"
	"slices"
	"strings"
	"sync"

	rows "github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/strict"
	"go.yaml.in/yaml/v3"
)

// language describes how manifests are decoded. A member of a struct in package intent is decoded by its row
// in package field, and every other field by its tags.
var language = &strict.Language{Tag: "json", Whole: "the object", Code: "unknown-field", Kubernetes: true, Refine: ofRow, Hint: hint}

// limitsText has the limits of values and sizes in the schemas of Cluster API and CAPA. Every line has kind,
// version, path and name=bound. In a path, [] stands for a position and {} for a key of a mapping. The oracle
// module writes the file. Tags of fields contain only defaults, and checks that are stricter or have better
// messages.
//
//go:embed limits.txt
var limitsText string

var allLimits = sync.OnceValue(func() map[string]*strict.Limits { return strict.ParseLimits(limitsText) })

// limitsOf returns the limits of a kind in a version, or nil.
func limitsOf(kind, version string) *strict.Limits { return allLimits()[kind+" "+version] }

// Decode decodes an object into the value that v points to, and fills in defaults.
func Decode(o Object, to *Faults, v any) {
	version := Version(o.Ref.APIVersion)
	d := &strict.Decoder{Language: language, Version: version, Limits: limitsOf(o.Ref.Kind, version), Secret: slices.Contains(mayHoldSecrets, o.Ref.Kind), Report: func(f strict.Fault) {
		to.Add(Fault{Code: f.Code, Summary: f.Summary, Detail: f.Detail, Ref: o.Ref, Path: f.Path, Key: f.Key})
	}}
	d.Decode(o.Node, v)
	if s, ok := v.(defaulted); ok {
		s.setDefaults(o.Ref)
	}
}

// ofRow adds the properties of a field's row. For an embedded struct of the intent it returns false if
// PoolOptions does not set the field.
func ofRow(owner reflect.Type, sf reflect.StructField, f *strict.Field) bool {
	step, ok := rows.At(owner, sf.Name)
	if !ok {
		return true
	}
	if len(sf.Index) > 1 && !step.OfOptions {
		return false
	}
	f.Name = step.Key
	r := step.Row
	if r == nil {
		return true // a struct whose members have rows
	}
	if r.Values != "" {
		f.Enum = strings.Split(r.Values, "|")
	}
	if r.Default != "" {
		f.Default = &r.Default
	}
	f.Required, f.Minimum, f.Maximum = r.Required, r.Min, r.Max
	switch r.Begins {
	case "":
	case "arn:":
		f.Also = noARN
	default:
		f.Also = func(p intent.Path, text string) (strict.Fault, bool) { return noID(p, text, r.Begins) }
	}
	return true
}

// hint returns the text to write in place of an unknown field.
func hint(t reflect.Type, name string) string {
	if of, ok := reflect.Zero(t).Interface().(interface{ unknownHint(string) string }); ok {
		return of.unknownHint(name)
	}
	return rows.Refused(t, name)
}

// hasField reports whether the struct type T has a field with the given YAML key.
func hasField[T any](name string) bool {
	return slices.ContainsFunc(language.Fields(reflect.TypeFor[T]()), func(f strict.Field) bool { return f.Name == name })
}

// Anything is a value of any form that weir ignores.
type Anything struct{}

// DecodeYAML ignores the value.
func (*Anything) DecodeYAML(*strict.Decoder, *yaml.Node, intent.Path) {}

// Show omits the value.
func (Anything) Show(string) any { return nil }

// Has reports whether an object writes a value other than null at p.
func (o Object) Has(p ...string) bool {
	n := o.At(p...)
	return n != nil && !strict.IsNull(n)
}

// At returns the node of a field, or nil if it is not written.
func (o Object) At(p ...string) *yaml.Node { return strict.At(o.Node, p...) }

// Values returns an object's spec with defaults, as JSON values: maps, lists, strings, int64, float64 and
// bool. It does not contain members that weir ignores. ok is false for a kind that weir does not read.
func Values(o Object) (spec map[string]any, ok bool) {
	k, ok := findKind(known(), o.Ref)
	if !ok || k.use != read {
		return nil, false
	}
	v := reflect.New(k.object)
	Decode(o, &Faults{}, v.Interface())
	written := language.Show(v.Elem().FieldByName("Spec").Interface(), Version(o.Ref.APIVersion), strings.Clone)
	(&strict.Decoder{Language: language, Report: func(strict.Fault) {}}).Decode(written, &spec)
	return spec, true
}
