package factor

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// part is a pool with its values by path.
type part struct {
	pool *Pool
	// objects contains the objects that a base can have, by role. The role is the object's type, and each
	// type occurs once. It is nil if the pool must stay separate.
	objects map[string]Object
	// beside contains all other objects.
	beside []Object
	// signature identifies the set of objects.
	signature string
	leaves    []leaf
	shape     *shape
}

// leaf is a value that patches replace as a whole: a scalar, a list or an empty map.
type leaf struct {
	path  string // its role and keys, joined
	text  string // the value as JSON
	lines int    // number of lines that it takes
	keys  []string
	role  string
	value any
}

const joint = "\x00"

// roleOf returns the type of an object.
func roleOf(o Object) string { return str(o["apiVersion"]) + joint + str(o["kind"]) }

func str(v any) string {
	s, _ := v.(string)
	return s
}

func nameOf(o Object) string {
	meta, _ := o["metadata"].(map[string]any)
	return str(meta["name"])
}

// newPart prepares a pool. If a patch cannot express the pool, it stays alone, and an object with
// another name is written separately.
func newPart(p *Pool) *part {
	out := &part{pool: p, objects: map[string]Object{}}
	for _, o := range p.Objects {
		role := roleOf(o)
		switch {
		case !plain(o):
			return &part{pool: p}
		case out.objects[role] != nil || nameOf(o) != p.Name:
			out.beside = append(out.beside, o)
		default:
			out.objects[role] = o
		}
	}
	out.signature = strings.Join(slices.Sorted(maps.Keys(out.objects)), joint+joint)
	return out
}

// plain reports whether a value contains nothing with another meaning in a patch.
func plain(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case map[string]any:
		for k, item := range v {
			if strings.HasPrefix(k, "$") || k == "" || !plain(item) {
				return false
			}
		}
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { return !plain(item) })
	}
	return true
}

// flatten adds the leaves of a value. If the pool's own name is a reference, or an object's own name, the
// leaf has the same text for every pool.
func (p *part) flatten(refs []reference) {
	for _, role := range slices.Sorted(maps.Keys(p.objects)) {
		o := maps.Clone(p.objects[role])
		meta := maps.Clone(o["metadata"].(map[string]any))
		delete(meta, "name")
		o["metadata"] = meta
		p.add(role, o, nil, refs)
	}
	slices.SortFunc(p.leaves, func(a, b leaf) int { return strings.Compare(a.path, b.path) })
}

// add adds the leaves of a value to the part. A leaf that refers to the pool by name is marked as a follower,
// because it changes with the name.
func (p *part) add(role string, v any, keys []string, refs []reference) {
	if m, ok := v.(map[string]any); ok && len(m) > 0 {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			p.add(role, m[k], append(keys[:len(keys):len(keys)], k), refs)
		}
		return
	}
	l := leaf{path: role + joint + strings.Join(keys, joint), lines: lines(v), keys: keys, role: role, value: v}
	if p.follows(role, keys, v, refs) {
		l.text, l.value = joint, follower{}
	} else {
		l.text = jsonOf(v)
	}
	p.leaves = append(p.leaves, l)
}

// follower is a placeholder for the name of the pool.
type follower struct{}

func jsonOf(v any) string {
	text, _ := json.Marshal(v) // cannot fail for maps, lists and scalars
	return string(text)
}

// lines returns the number of lines of a file that a value takes, below its key.
func lines(v any) int {
	n := 0
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			n += lines(item)
		}
	case map[string]any:
		for _, item := range v {
			n += lines(item)
		}
	case string:
		n = strings.Count(strings.TrimSuffix(v, "\n"), "\n")
		if n > 0 {
			n++
		}
		n++
	default:
		n = 1
	}
	return max(n, 1)
}

// grow makes an object from the leaves of one role.
func grow(leaves []leaf) map[string]any {
	out := map[string]any{}
	for _, l := range leaves {
		at := out
		for _, k := range l.keys[:len(l.keys)-1] {
			next, ok := at[k].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[k] = next
			}
			at = next
		}
		last := l.keys[len(l.keys)-1]
		if _, ok := at[last].(map[string]any); ok && jsonOf(l.value) == "{}" {
			continue
		}
		at[last] = l.value
	}
	return out
}

// difference returns the patch that turns one map into another, or nil if they are equal.
func difference(from, to map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range to {
		old, ok := from[k]
		a, isMap := old.(map[string]any)
		b, toMap := v.(map[string]any)
		switch {
		case !ok:
			out[k] = v
		case isMap && toMap:
			if d := difference(a, b); d != nil {
				out[k] = d
			}
		case jsonOf(old) != jsonOf(v):
			out[k] = v
		}
	}
	for k := range from {
		if _, ok := to[k]; !ok {
			out[k] = nil
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// at returns the value below keys, and whether it exists.
func at(m map[string]any, keys []string) (any, bool) {
	for i, k := range keys {
		v, ok := m[k]
		if !ok || i == len(keys)-1 {
			return v, ok
		}
		if m, ok = v.(map[string]any); !ok {
			return nil, false
		}
	}
	return m, true
}

// without removes the value below keys, and maps that become empty.
func without(m map[string]any, keys []string) {
	if len(keys) == 1 {
		delete(m, keys[0])
		return
	}
	if inner, ok := m[keys[0]].(map[string]any); ok {
		if without(inner, keys[1:]); len(inner) == 0 {
			delete(m, keys[0])
		}
	}
}
