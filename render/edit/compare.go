package edit

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/intent"
)

// compare compares two renders of a place. done are the changes that the second render has fulfilled. why
// describes the first other difference, or is "".
func (s *setter) compare(p *Place, before, after *render.Result) (done []int, why string) {
	if len(before.Objects) != len(after.Objects) {
		return nil, fmt.Sprintf("the target %s has other objects", p.Name)
	}
	for i, o := range before.Objects {
		if after.Objects[i].Ref != o.Ref {
			return nil, fmt.Sprintf("the target %s has %s in the place of %s", p.Name, after.Objects[i].Ref, o.Ref)
		}
		want, is := decoded(o.Node), decoded(after.Objects[i].Node)
		for k, w := range s.changes {
			if w.Place != p.Name || w.Object != o.Ref {
				continue
			}
			if reflect.DeepEqual(valueAt(want, w.Field), w.Value) || !reflect.DeepEqual(valueAt(is, w.Field), w.Value) {
				continue
			}
			want = with(want, w.Field, w.Value)
			if w.Value == nil { // the parent may be left empty, or be removed too
				want, is = pruned(want), pruned(is)
			}
			done = append(done, k)
		}
		if !reflect.DeepEqual(want, is) {
			return nil, fmt.Sprintf("%s of the target %s", o.Ref, p.Name)
		}
	}
	return done, ""
}

func objectOf(r *render.Result, ref intent.ObjectRef) (any, bool) {
	for _, o := range r.Objects {
		if o.Ref == ref {
			return decoded(o.Node), true
		}
	}
	return nil, false
}

// decoded returns the value of a node. A node that cannot be decoded equals only itself.
func decoded(n *yaml.Node) any {
	var v any
	if err := n.Decode(&v); err != nil {
		return n
	}
	return v
}

// valueAt returns the part of a value at a path, or nil.
func valueAt(v any, p intent.Path) any {
	for _, elem := range p {
		switch at := v.(type) {
		case map[string]any:
			v = at[elem]
		case []any:
			i, ok := index(elem)
			if !ok || i >= len(at) {
				return nil
			}
			v = at[i]
		default:
			return nil
		}
	}
	return v
}

// with returns a copy of v with to at a path. It creates missing mappings. If to is nil, it removes the key.
func with(v any, p intent.Path, to any) any {
	if len(p) == 0 {
		return to
	}
	switch at := v.(type) {
	case nil:
		return map[string]any{p[0]: with(nil, p[1:], to)}
	case map[string]any:
		out := maps.Clone(at)
		if out[p[0]] = with(at[p[0]], p[1:], to); out[p[0]] == nil {
			delete(out, p[0])
		}
		return out
	case []any:
		if i, ok := index(p[0]); ok && i < len(at) {
			out := slices.Clone(at)
			out[i] = with(at[i], p[1:], to)
			return out
		}
	}
	return v
}

// pruned returns a value without keys whose values are nil or empty mappings. It returns nil for a mapping
// that has no other keys.
func pruned(v any) any {
	switch at := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, x := range at {
			if x = pruned(x); x != nil {
				out[k] = x
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		out := make([]any, len(at))
		for i := range at {
			out[i] = pruned(at[i])
		}
		return out
	}
	return v
}

// index returns the position in a path element of the form [n].
func index(elem string) (int, bool) {
	inner, ok := strings.CutPrefix(elem, "[")
	if !ok {
		return 0, false
	}
	i, err := strconv.Atoi(strings.TrimSuffix(inner, "]"))
	return i, err == nil && i >= 0
}

// positions returns a path with positions in place of items that are identified by a text, as in
// [name=drain]. An element without a matching item stays unchanged.
func positions(v any, p intent.Path) intent.Path {
	out := slices.Clone(p)
	for i, elem := range p {
		key, text, named := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(elem, "["), "]"), "=")
		list, is := valueAt(v, out[:i]).([]any)
		if !is || !named || !strings.HasPrefix(elem, "[") {
			continue
		}
		if n := slices.IndexFunc(list, func(item any) bool { return valueAt(item, intent.Path{key}) == text }); n >= 0 {
			out[i] = intent.Index(n)
		}
	}
	return out
}
