package edit

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/intent"
)

// compare holds two renders of a place against each other: done are the wishes that the
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
		for k, w := range s.wishes {
			if w.Place != p.Name || w.Object != o.Ref {
				continue
			}
			if had, _ := valueAt(want, w.Field); had == w.Value {
				continue
			}
			if got, _ := valueAt(is, w.Field); got == w.Value {
				want = with(want, w.Field, w.Value)
				done = append(done, k)
			}
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

// decoded is a node as a value; one that cannot be is equal to nothing but itself.
func decoded(n *yaml.Node) any {
	var v any
	if err := n.Decode(&v); err != nil {
		return n
	}
	return v
}

// valueAt is the string at a path of a value.
func valueAt(v any, p intent.Path) (string, bool) {
	for _, elem := range p {
		switch at := v.(type) {
		case map[string]any:
			v = at[elem]
		case []any:
			i, ok := index(elem)
			if !ok || i >= len(at) {
				return "", false
			}
			v = at[i]
		default:
			return "", false
		}
	}
	text, ok := v.(string)
	return text, ok
}

// with is a value with another string at a path. Mappings that are missing are made.
func with(v any, p intent.Path, text string) any {
	if len(p) == 0 {
		return text
	}
	switch at := v.(type) {
	case nil:
		return map[string]any{p[0]: with(nil, p[1:], text)}
	case map[string]any:
		out := make(map[string]any, len(at)+1)
		for k, x := range at {
			out[k] = x
		}
		out[p[0]] = with(at[p[0]], p[1:], text)
		return out
	case []any:
		if i, ok := index(p[0]); ok && i < len(at) {
			out := slices.Clone(at)
			out[i] = with(at[i], p[1:], text)
			return out
		}
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
