package strict

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Shown is a type with its own output form. Show returns another value, a *yaml.Node, or nil for no output.
type Shown interface{ Show(version string) any }

// Show returns YAML that decodes to the value, with only the fields that decoding has. It returns nil for a
// value without content. In a configuration this is an empty value. In a manifest, where empty may differ
// from absent, it is an absent value. The function text converts every string.
func (l *Language) Show(v any, version string, text func(string) string) *yaml.Node {
	return shower{l, version, text}.node(reflect.ValueOf(v))
}

type shower struct {
	*Language
	version string
	text    func(string) string
}

// node returns the YAML of a value, or nil if the manifest should not have it: for nil, and except for
// Kubernetes objects also for zero values. A type with Show decides itself.
func (s shower) node(v reflect.Value) *yaml.Node {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	of, own := v.Interface().(Shown)
	switch {
	case own:
		switch other := of.Show(s.version).(type) {
		case nil:
			return nil
		case *yaml.Node:
			return other
		default:
			return s.node(reflect.ValueOf(other))
		}
	case (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.IsNil() || !s.Kubernetes && v.IsZero():
		return nil
	}
	if named, ok := v.Interface().(fmt.Stringer); ok {
		return s.word(named.String(), v)
	}
	out := &yaml.Node{Kind: yaml.MappingNode}
	switch v.Kind() {
	case reflect.Struct:
		out.Content = s.fields(v)
	case reflect.Slice:
		out.Kind, out.Content = yaml.SequenceNode, s.items(v)
	case reflect.Map:
		out.Content = s.entries(v)
	default:
		return s.word(fmt.Sprint(v.Interface()), v)
	}
	if len(out.Content) == 0 && !s.Kubernetes {
		return nil
	}
	return out
}

// fields returns the names and values of a struct's fields.
func (s shower) fields(v reflect.Value) (out []*yaml.Node) {
	for _, f := range s.Fields(v.Type()) {
		if n := s.node(v.FieldByIndex(f.Index)); n != nil && f.In(s.version) {
			out = append(out, &yaml.Node{Kind: yaml.ScalarNode, Value: f.Name}, n)
		}
	}
	return out
}

func (s shower) items(v reflect.Value) (out []*yaml.Node) {
	for i := range v.Len() {
		if n := s.node(v.Index(i)); n != nil {
			out = append(out, n)
		}
	}
	return out
}

// entries returns the keys and values of a map, sorted.
func (s shower) entries(v reflect.Value) (out []*yaml.Node) {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(x, y reflect.Value) int { return strings.Compare(x.String(), y.String()) })
	for _, k := range keys {
		out = append(out, text(k.String(), 0), s.entry(v.MapIndex(k)))
	}
	return out
}

// entry returns the node of a map entry's value, which is always shown.
func (s shower) entry(v reflect.Value) *yaml.Node {
	n := s.node(v)
	switch {
	case n != nil:
		return n
	case v.Kind() == reflect.String:
		return text("", 0)
	case v.Kind() == reflect.Struct:
		return &yaml.Node{Kind: yaml.MappingNode}
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
}

// word returns the node of a scalar.
func (s shower) word(word string, v reflect.Value) *yaml.Node {
	if v.Type() == reflect.TypeFor[time.Duration]() && !s.Kubernetes {
		for _, zero := range []string{"m0s", "h0m"} { // 1h0m0s is 1h
			if strings.HasSuffix(word, zero) {
				word = word[:len(word)-2]
			}
		}
	}
	switch {
	case v.Kind() != reflect.String:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: word} // a number or a time is not a string
	case s.Kubernetes:
		return text(s.text(word), yaml.DoubleQuotedStyle) // quoted, because yes would be a boolean
	}
	return text(s.text(word), 0)
}

func text(word string, style yaml.Style) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(word)
	n.Style |= style
	return n
}
