package strict

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/nearest"
	"go.yaml.in/yaml/v3"
)

// Limits of a document: its nesting depth, and its number of nodes after aliases are expanded.
const (
	maxDepth = 100
	maxNodes = 200_000
)

// Decode decodes a document into the value that v points to, which must be empty.
func (d *Decoder) Decode(n *yaml.Node, v any) {
	d.visit(nil, n)
	if n = d.resolve(n, nil); n != nil {
		d.value(n, reflect.ValueOf(v).Elem(), nil, &Limit{})
	}
}

// Read decodes a node into the value that v points to. It is for a Value that checks the node first. The
// node's limits are checked once, after the Value has read it.
func (d *Decoder) Read(n *yaml.Node, v any, p intent.Path) {
	d.typed(n, reflect.ValueOf(v).Elem(), p)
}

// resolve follows an alias. It returns nil after it reported a fault.
func (d *Decoder) resolve(n *yaml.Node, p intent.Path) *yaml.Node {
	switch to := Resolve(n); {
	case !d.Kubernetes && (n.Kind == yaml.AliasNode || n.Anchor != ""):
		d.Error(n, p, "yaml-alias", "anchors and aliases are not allowed in "+d.Whole, "write the value out")
		return nil
	case to == nil:
		d.Error(n, p, "wrong-type", named(d.Whole, p)+" is nested too deeply", "")
		return nil
	default:
		return to
	}
}

// value decodes a resolved node into v. It checks the limits of v's field and the limits of the schema.
func (d *Decoder) value(n *yaml.Node, v reflect.Value, p intent.Path, own *Limit) {
	if d.depth >= maxDepth {
		d.Error(n, p, "wrong-type", named(d.Whole, p)+" is nested too deeply", "")
		return
	}
	if !d.spend(n, 1) {
		return
	}
	d.depth++
	defer func() { d.depth-- }()
	before := d.faults
	d.typed(n, v, p)
	if n.Kind == yaml.ScalarNode && d.faults > before {
		return // it would be another fault of the same value
	}
	if d.limit(own, n, p) && d.Limits != nil {
		d.limit(&d.Limits.Limit, n, p)
	}
}

// below runs read with the limits of the first of the elements that has limits.
func (d *Decoder) below(read func(), elements ...string) {
	around := d.Limits
	d.Limits = around.At(elements...)
	read()
	d.Limits = around
}

// typed decodes a resolved node by the type of v.
func (d *Decoder) typed(n *yaml.Node, v reflect.Value, p intent.Path) {
	switch of := v.Addr().Interface().(type) {
	case Value:
		of.DecodeYAML(d, n, p)
		return
	case *time.Duration:
		d.duration(n, of, p)
		return
	case encoding.TextUnmarshaler:
		if n.Kind != yaml.ScalarNode {
			d.WrongType(n, p, "a single value")
		} else if err := of.UnmarshalText([]byte(n.Value)); err != nil {
			d.Error(n, p, "bad-value", fmt.Sprintf("%s: %v", p, err), "")
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		before := d.faults
		v.Set(reflect.New(v.Type().Elem()))
		d.typed(n, v.Elem(), p)
		if n.Kind == yaml.ScalarNode && d.faults > before {
			v.SetZero() // an unreadable value is not the same as zero
		}
	case reflect.Struct:
		d.structure(n, v, p)
	case reflect.Slice:
		d.list(n, v, p)
	case reflect.Map:
		d.mapping(n, v, p)
	case reflect.Interface:
		if free := d.free(n, p); free != nil {
			v.Set(reflect.ValueOf(free))
		}
	default:
		d.scalar(n, v, p)
	}
}

// structure decodes a mapping into a struct. Unknown fields and missing required fields are faults. A null
// counts as a missing field.
func (d *Decoder) structure(n *yaml.Node, v reflect.Value, p intent.Path) {
	if n.Kind != yaml.MappingNode {
		d.WrongType(n, p, "a mapping")
		return
	}
	fields := d.Fields(v.Type())
	written := map[string]bool{}
	d.each(n, p, func(name string, key, item *yaml.Node) {
		at := p.Join(name)
		i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })
		if i < 0 || !fields[i].In(d.Version) {
			written[name] = true
			d.unknown(v.Type(), fields, i, key, at)
			return
		}
		f := &fields[i]
		d.visit(at, item)
		written[name] = true
		switch item = d.resolve(item, at); {
		case item == nil:
		case f.Later:
			d.Error(item, at, "not-supported", at.String()+" is not supported by this version", "")
		case IsNull(item):
			written[name] = false // an explicit null means an absent field
		default:
			d.below(func() { d.value(item, v.FieldByIndex(f.Index), at, &f.Limit) }, name, "{}")
		}
	})
	for i := range fields {
		if f := &fields[i]; !written[f.Name] && f.In(d.Version) {
			d.absent(f, n, v.FieldByIndex(f.Index), p.Join(f.Name))
		}
	}
}

// each visits the entries of a mapping. It reports keys that are not strings, and duplicate keys.
func (d *Decoder) each(n *yaml.Node, p intent.Path, visit func(name string, key, item *yaml.Node)) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content) && !d.spent(); i += 2 {
		key := d.resolve(n.Content[i], p)
		switch {
		case key == nil:
		case key.Kind != yaml.ScalarNode:
			d.Error(key, p, "wrong-type", named(d.Whole, p)+" has a key that is not text", "")
		case seen[key.Value]:
			d.keyError(n.Content[i], p.Join(key.Value), "duplicate-key", p.Join(key.Value).String()+" is written twice", "")
		default:
			seen[key.Value] = true
			visit(key.Value, n.Content[i], n.Content[i+1])
		}
	}
}

// unknown reports an unknown key, or a key that only another version has. In the latter case i is the index
// of its field.
func (d *Decoder) unknown(t reflect.Type, fields []Field, i int, key *yaml.Node, at intent.Path) {
	unknown := strings.ReplaceAll(d.Code, "-", " ")
	if i >= 0 {
		d.keyError(key, at, d.Code, fmt.Sprintf("%s %s in %s", unknown, at, d.Version), "it belongs to version "+strings.Join(fields[i].Versions, ", "))
		return
	}
	var names []string
	for _, f := range fields {
		if f.In(d.Version) {
			names = append(names, f.Name)
		}
	}
	detail, name := "", at[len(at)-1]
	if d.Hint != nil {
		detail = d.Hint(t, name)
	}
	if near := nearest.Word(name, names); near != "" && detail == "" {
		detail = fmt.Sprintf("did you mean %q?", near)
	}
	if detail == "" && !d.Kubernetes {
		detail = "known here: " + strings.Join(names, ", ")
	}
	d.keyError(key, at, d.Code, unknown+" "+at.String(), detail)
}

// absent sets the default of a field that is not written, or reports a missing required field. A missing
// struct is decoded like an empty one.
func (d *Decoder) absent(f *Field, around *yaml.Node, v reflect.Value, p intent.Path) {
	switch {
	case f.Default != nil:
		setDefault(v, *f.Default)
	case f.RequiredIn(d.Version):
		d.Error(around, p, "missing-required", p.String()+" is required", "")
	case v.Kind() == reflect.Struct && !readsItself(v):
		d.below(func() {
			d.structure(&yaml.Node{Kind: yaml.MappingNode, Line: around.Line, Column: around.Column}, v, p)
		})
	}
}

func readsItself(v reflect.Value) bool {
	switch v.Addr().Interface().(type) {
	case Value, encoding.TextUnmarshaler:
		return true
	}
	return false
}

// list decodes a list into a slice. A null item is a fault, and leaves a zero in the slice.
func (d *Decoder) list(n *yaml.Node, v reflect.Value, p intent.Path) {
	if n.Kind != yaml.SequenceNode {
		d.WrongType(n, p, "a list")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		if d.spent() {
			return
		}
		at := p.Join(intent.Index(i))
		d.visit(at, item)
		switch item = d.resolve(item, at); {
		case item == nil:
		case IsNull(item):
			d.Error(item, at, "wrong-type", at.String()+" is empty", "")
		default:
			d.below(func() { d.value(item, v.Index(i), at, &Limit{}) }, "[]")
		}
	}
}

// mapping decodes a mapping into a map. A null value becomes the zero value.
func (d *Decoder) mapping(n *yaml.Node, v reflect.Value, p intent.Path) {
	if n.Kind != yaml.MappingNode {
		d.WrongType(n, p, "a mapping")
		return
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), len(n.Content)/2))
	d.each(n, p, func(name string, key, item *yaml.Node) {
		at, entry := p.Join(name), reflect.New(v.Type().Elem()).Elem()
		d.visit(at, key)
		if item = d.resolve(item, at); item != nil && !IsNull(item) {
			d.below(func() { d.value(item, entry, at, &Limit{}) }, name, "{}")
		}
		v.SetMapIndex(reflect.ValueOf(name), entry)
	})
}

// free decodes a node into a field of any type: maps with string keys, slices and scalars.
func (d *Decoder) free(n *yaml.Node, p intent.Path) (out any) {
	switch n.Kind {
	case yaml.MappingNode:
		entries := make(map[string]any, len(n.Content)/2)
		v := reflect.ValueOf(&entries).Elem()
		d.mapping(n, v, p)
		return entries
	case yaml.SequenceNode:
		items := make([]any, len(n.Content))
		for i, item := range n.Content {
			if d.spent() {
				break
			}
			at := p.Join(intent.Index(i))
			if item = d.resolve(item, at); item != nil {
				d.below(func() { d.value(item, reflect.ValueOf(items).Index(i), at, &Limit{}) }, "[]")
			}
		}
		return items
	}
	return freeScalar(n)
}

// Resolve follows aliases. It returns nil for an endless chain.
func Resolve(n *yaml.Node) *yaml.Node {
	for i := 0; n != nil && n.Kind == yaml.AliasNode; i++ {
		if i > maxDepth {
			return nil
		}
		n = n.Alias
	}
	return n
}

// IsNull reports whether a node is null.
func IsNull(n *yaml.Node) bool {
	return n != nil && n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// At returns the node of a field below n, or nil. It follows aliases.
func At(n *yaml.Node, p ...string) *yaml.Node {
	n = Resolve(n)
	for _, name := range p {
		if n == nil || n.Kind != yaml.MappingNode {
			return nil
		}
		var next *yaml.Node
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == name {
				next = Resolve(n.Content[i+1])
			}
		}
		n = next
	}
	return n
}
