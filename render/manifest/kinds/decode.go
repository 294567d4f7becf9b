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

// language describes the language of manifests. A member of a struct of package intent is read as
// its row in package field says, every other field as its tags say.
var language = &strict.Language{Tag: "json", Whole: "the object", Code: "unknown-field", Kubernetes: true, Refine: ofRow, Hint: hint}

// limitsText holds what Cluster API's and CAPA's schemas say about values and
// their sizes, a line each: kind, version, path, name=bound, where a path has []
// for a position and {} for a key of a mapping. The oracle module writes it. Tags
// of fields are for defaults, and for what weir says better or more strictly.
//
//go:embed limits.txt
var limitsText string

var allLimits = sync.OnceValue(func() map[string]*strict.Limits { return strict.ParseLimits(limitsText) })

// limitsOf returns the limits of a kind in a version, nil for one without.
func limitsOf(kind, version string) *strict.Limits { return allLimits()[kind+" "+version] }

// Decode reads an object into the value v points to, and fills its defaults.
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

// ofRow adds what a row says of a field. Of an embedded struct of the intent those are
// left out that PoolOptions does not set.
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
		return true // it holds the members of rows
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

// hint says what to write in place of an unknown field.
func hint(t reflect.Type, name string) string {
	if of, ok := reflect.Zero(t).Interface().(interface{ unknownHint(string) string }); ok {
		return of.unknownHint(name)
	}
	return rows.Refused(t, name)
}

// hasField says that YAML of the struct type T may have the key.
func hasField[T any](name string) bool {
	return slices.ContainsFunc(language.Fields(reflect.TypeFor[T]()), func(f strict.Field) bool { return f.Name == name })
}

// Anything is a value of any shape that weir does not look at.
type Anything struct{}

// DecodeYAML reads nothing.
func (*Anything) DecodeYAML(*strict.Decoder, *yaml.Node, intent.Path) {}

// Show leaves it out.
func (Anything) Show(string) any { return nil }

// Has reports whether an object writes a value other than null at p.
func (o Object) Has(p ...string) bool {
	n := o.At(p...)
	return n != nil && !strict.IsNull(n)
}

// At is the node of a field, nil where it is not written.
func (o Object) At(p ...string) *yaml.Node { return strict.At(o.Node, p...) }

// Values is an object's spec with its defaults, as JSON has it: maps, lists, text,
// int64, float64 and bool. Members that weir ignores are left out. ok is false for an
// object of a kind that weir does not read.
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
