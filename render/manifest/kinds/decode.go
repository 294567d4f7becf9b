package kinds

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	rows "github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/nearest"
	"go.yaml.in/yaml/v3"
)

// Bounds of one object: how deep it may nest, and how many nodes it may have
// with its aliases expanded.
const (
	maxDepth = 100
	maxNodes = 200_000
)

// decoder fills Go values from YAML nodes, strictly, and goes on after a fault.
// What a field may hold is said by its type and its tags; see fields.go.
type decoder struct {
	Reporter
	// version is the part of the apiVersion after the group, such as v1beta2.
	version string
	tables  map[reflect.Type][]field
	depth   int
	nodes   int
}

// selfDecoder is a type that reads a node in its own way.
type selfDecoder interface {
	decodeNode(d *decoder, n *yaml.Node, p intent.Path)
}

// Decode reads an object into the value v points to, and fills its defaults.
func Decode(o Object, to *Faults, v any) {
	d := &decoder{
		Reporter: Reporter{Ref: o.Ref, To: to},
		version:  o.Ref.APIVersion[strings.LastIndex(o.Ref.APIVersion, "/")+1:],
		tables:   map[reflect.Type][]field{},
	}
	d.value(o.Node, reflect.ValueOf(v).Elem(), nil)
	if l := limitsOf(o.Ref.Kind, d.version); l != nil && d.nodes <= maxNodes {
		d.checkLimits(l, o.Node, nil)
	}
	if s, ok := v.(defaulted); ok {
		s.setDefaults(o.Ref)
	}
}

// value reads a node that is not null into v.
func (d *decoder) value(n *yaml.Node, v reflect.Value, p intent.Path) {
	if n = d.enter(n, p); n == nil {
		return
	}
	defer d.leave()
	if s, ok := v.Addr().Interface().(selfDecoder); ok {
		s.decodeNode(d, n, p)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		before := len(d.To.List)
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), p)
		if n.Kind == yaml.ScalarNode && len(d.To.List) > before {
			v.SetZero() // unreadable, which is not the same as zero
		}
	case reflect.Struct:
		d.structure(n, v, p)
	case reflect.Slice:
		d.list(n, v, p)
	case reflect.Map:
		d.mapping(n, v, p)
	default:
		d.scalar(n, v, p)
	}
}

// enter resolves a node and counts it against the bounds; it returns nil where
// one is passed. Every node that it returns is followed by leave.
func (d *decoder) enter(n *yaml.Node, p intent.Path) *yaml.Node {
	if n = resolve(n); n == nil || d.depth >= maxDepth {
		d.Error(p, "wrong-type", named(p)+" is nested too deeply", "")
		return nil
	}
	if d.nodes++; d.nodes > maxNodes {
		if d.nodes == maxNodes+1 {
			d.Error(nil, "too-large", "the object is too large", "")
		}
		return nil
	}
	d.depth++
	return n
}

func (d *decoder) leave() { d.depth-- }

func (d *decoder) structure(n *yaml.Node, v reflect.Value, p intent.Path) {
	if n.Kind != yaml.MappingNode {
		d.wrongType(n, p, "a mapping")
		return
	}
	fields := d.fields(v.Type())
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, item := resolve(n.Content[i]), resolve(n.Content[i+1])
		name, ok := d.key(key, p, seen)
		if !ok {
			continue
		}
		at := p.Join(name)
		j := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
		switch {
		case j < 0:
			d.unknownField(v.Type(), fields, name, at)
		case !fields[j].in(d.version):
			d.otherVersion(fields[j], at)
		case fields[j].later:
			d.Unsupported(at, at.String(), "")
		case IsNull(item):
			seen[name] = false // an explicit null is an absent field
		default:
			target := v.FieldByIndex(fields[j].index)
			before := len(d.To.List)
			d.value(item, target, at)
			if len(d.To.List) == before {
				d.check(fields[j], target, item, at)
			}
		}
	}
	for _, f := range fields {
		if !seen[f.name] && f.in(d.version) {
			d.absent(f, v.FieldByIndex(f.index), p)
		}
	}
}

// key reads a mapping key, and reports one that is no text or comes twice.
func (d *decoder) key(key *yaml.Node, p intent.Path, seen map[string]bool) (string, bool) {
	if key == nil || key.Kind != yaml.ScalarNode {
		d.Error(p, "wrong-type", fmt.Sprintf("%s has a key that is not text", named(p)), "")
		return "", false
	}
	name := key.Value
	if _, twice := seen[name]; twice {
		d.To.Add(Fault{Code: "duplicate-key", Summary: fmt.Sprintf("%s is written twice", p.Join(name)),
			Ref: d.Ref, Path: p.Join(name), Key: true})
		return "", false
	}
	seen[name] = true
	return name, true
}

func (d *decoder) unknownField(t reflect.Type, fields []field, name string, at intent.Path) {
	names := make([]string, 0, len(fields))
	for _, f := range fields {
		if f.in(d.version) {
			names = append(names, f.name)
		}
	}
	detail := rows.Refused(t, name)
	if hint, ok := reflect.Zero(t).Interface().(interface{ unknownHint(string) string }); ok {
		detail = hint.unknownHint(name)
	}
	if near := nearest.Word(name, names); near != "" && detail == "" {
		detail = fmt.Sprintf("did you mean %q?", near)
	}
	d.To.Add(Fault{Code: "unknown-field", Summary: "unknown field " + at.String(), Detail: detail, Ref: d.Ref, Path: at, Key: true})
}

func (d *decoder) otherVersion(f field, at intent.Path) {
	d.To.Add(Fault{Code: "unknown-field", Summary: fmt.Sprintf("unknown field %s in %s", at, d.Ref.APIVersion),
		Detail: fmt.Sprintf("it belongs to version %s", strings.Join(f.versions, ", ")), Ref: d.Ref, Path: at, Key: true})
}

// absent fills the default of a field that is not written, or reports it
// missing. A struct that is not written is read as an empty one.
func (d *decoder) absent(f field, v reflect.Value, p intent.Path) {
	switch {
	case f.hasDefault:
		setDefault(v, f.byDefault)
	case f.requiredBy(d.version):
		at := p.Join(f.name)
		d.Error(at, "missing-required", at.String()+" is required", "")
	case v.Kind() == reflect.Struct && !isSelfDecoder(v):
		d.structure(&yaml.Node{Kind: yaml.MappingNode}, v, p.Join(f.name))
	}
}

func isSelfDecoder(v reflect.Value) bool {
	_, ok := v.Addr().Interface().(selfDecoder)
	return ok
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, p intent.Path) {
	if n.Kind != yaml.SequenceNode {
		d.wrongType(n, p, "a list")
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		at := p.Join(intent.Index(i))
		if IsNull(resolve(item)) {
			d.Error(at, "wrong-type", at.String()+" is empty", "")
			continue
		}
		d.value(item, out.Index(i), at)
	}
	v.Set(out)
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, p intent.Path) {
	if n.Kind != yaml.MappingNode {
		d.wrongType(n, p, "a mapping")
		return
	}
	out := reflect.MakeMapWithSize(v.Type(), len(n.Content)/2)
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, ok := d.key(resolve(n.Content[i]), p, seen)
		if !ok {
			continue
		}
		item := reflect.New(v.Type().Elem()).Elem()
		if value := resolve(n.Content[i+1]); !IsNull(value) {
			d.value(value, item, p.Join(name))
		}
		out.SetMapIndex(reflect.ValueOf(name), item)
	}
	v.Set(out)
}

// decodeInto reads a node into the value v points to, from a selfDecoder that
// looked at the node first.
func decodeInto[T any](d *decoder, n *yaml.Node, v *T, p intent.Path) {
	d.value(n, reflect.ValueOf(v).Elem(), p)
}

// resolve follows aliases. It returns nil for a chain without an end.
func resolve(n *yaml.Node) *yaml.Node {
	for i := 0; n != nil && n.Kind == yaml.AliasNode; i++ {
		if i > maxDepth {
			return nil
		}
		n = n.Alias
	}
	return n
}

func IsNull(n *yaml.Node) bool {
	return n != nil && n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// Has reports whether an object writes a value other than null at p.
func (o Object) Has(p ...string) bool {
	n := o.At(p...)
	return n != nil && !IsNull(n)
}

// At is the node of a field, nil where it is not written.
func (o Object) At(p ...string) *yaml.Node {
	n := resolve(o.Node)
	for _, name := range p {
		if n == nil || n.Kind != yaml.MappingNode {
			return nil
		}
		var next *yaml.Node
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == name {
				next = resolve(n.Content[i+1])
			}
		}
		n = next
	}
	return n
}

// named is a path for the start of a sentence; the empty path is the object.
func named(p intent.Path) string {
	if len(p) == 0 {
		return "the object"
	}
	return p.String()
}
