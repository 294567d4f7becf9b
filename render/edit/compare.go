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

// compare holds two renders of a place against each other: done are the changes that the
// second has fulfilled, and why says what else differs.
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
			if w.Value == nil { // what contained it may be left empty, or be removed with it
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

// decoded returns a node as a value. A node that cannot be decoded equals only itself.
func decoded(n *yaml.Node) any {
	var v any
	if err := n.Decode(&v); err != nil {
		return n
	}
	return v
}

// valueAt returns the part of a value at a path, or nil if nothing is there.
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

// with is a value with another one at a path. Mappings that are missing are made, and nil
// takes a key out.
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

// pruned is a value without keys that hold nothing.
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

// index is the position that an element of a path stands for.
func index(elem string) (int, bool) {
	inner, ok := strings.CutPrefix(elem, "[")
	if !ok {
		return 0, false
	}
	i, err := strconv.Atoi(strings.TrimSuffix(inner, "]"))
	return i, err == nil && i >= 0
}

// positions are a path with the positions of items that are named by a text that they hold.
// One that is not there stays as it is, and leads nowhere.
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
