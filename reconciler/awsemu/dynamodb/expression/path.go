package expression

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/dynamodb/attr"
)

// step is the name of an attribute or the index of a list's element.
type step struct {
	name  string
	index int
	list  bool
}

func (s step) String() string {
	if s.list {
		return "[" + strconv.Itoa(s.index) + "]"
	}
	return s.name
}

// Path is the path of an attribute or of a value inside it. Its first step is a name.
type Path []step

// Attribute returns the attribute with which the path starts.
func (p Path) Attribute() string { return p[0].name }

func (p Path) String() string {
	var parts []string
	for _, s := range p {
		parts = append(parts, s.String())
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// compare orders paths by their steps.
func (p Path) compare(q Path) int {
	return slices.CompareFunc(p, q, func(a, b step) int { return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.name, b.name)) })
}

// in returns the value at the path.
func (p Path) in(item attr.Item) (attr.Value, bool) {
	v := attr.Value{Type: "M", Map: item}
	for _, s := range p {
		next, ok := at(v, s)
		if !ok {
			return attr.Value{}, false
		}
		v = next
	}
	return v, true
}

// at returns the part of a value at a step.
func at(v attr.Value, s step) (attr.Value, bool) {
	switch {
	case !s.list && v.Type == "M":
		part, ok := v.Map[s.name]
		return part, ok
	case s.list && v.Type == "L" && s.index < len(v.List):
		return v.List[s.index], true
	}
	return attr.Value{}, false
}

// changed returns a copy of v with another value at the path, or with none if to is nil. The copy shares
// everything outside the path with v. ok is false if the path does not exist up to its last step.
func changed(v attr.Value, path Path, to *attr.Value) (out attr.Value, ok bool) {
	s, last := path[0], len(path) == 1
	if s.list && v.Type != "L" || !s.list && v.Type != "M" {
		return v, false
	}
	part, there := at(v, s)
	if !last {
		if !there {
			return v, false
		}
		if part, ok = changed(part, path[1:], to); !ok {
			return v, false
		}
		to = &part
	}
	out = v
	if !s.list {
		if out.Map = maps.Clone(v.Map); to == nil {
			delete(out.Map, s.name)
			return out, true
		}
		if out.Map == nil {
			out.Map = attr.Item{}
		}
		out.Map[s.name] = *to
		return out, true
	}
	out.List = slices.Clone(v.List)
	switch {
	case to == nil && there:
		out.List = slices.Delete(out.List, s.index, s.index+1)
	case to != nil && there:
		out.List[s.index] = *to
	case to != nil:
		out.List = append(out.List, *to)
	}
	return out, true
}

// apart refuses two paths if one is a prefix of the other, or if they treat the same part as a list and as a
// map.
func (p *parser) apart(paths []Path) {
	for i, a := range paths {
		for _, b := range paths[:i] {
			for n := range a {
				if n == len(b) {
					break
				}
				if a[n].list != b[n].list {
					p.refuse("Two document paths conflict with each other; must remove or rewrite one of these paths; path one: %s, path two: %s", b, a)
				}
				if a[n] != b[n] {
					break
				}
				if n+1 == min(len(a), len(b)) {
					p.refuse("Two document paths overlap with each other; must remove or rewrite one of these paths; path one: %s, path two: %s", b, a)
				}
			}
		}
	}
}

// Projection is the requested part of an item.
type Projection struct{ paths []Path }

func (p *parser) projection() *Projection {
	out := &Projection{[]Path{p.path()}}
	for p.accept(",") {
		out.paths = append(out.paths, p.path())
	}
	p.apart(out.paths)
	return out
}

// Of returns the projection of an item. For nil it is the whole item.
func (p *Projection) Of(item attr.Item) attr.Item {
	if p == nil {
		return item
	}
	return projected(attr.Value{Type: "M", Map: item}, p.paths).Map
}

// projected returns the parts of a value at the paths.
func projected(v attr.Value, paths []Path) attr.Value {
	rest := map[step][]Path{}
	for _, path := range paths {
		if len(path) == 0 {
			return v
		}
		rest[path[0]] = append(rest[path[0]], path[1:])
	}
	out := attr.Value{Type: v.Type, Map: attr.Item{}}
	for _, s := range slices.SortedFunc(maps.Keys(rest), func(a, b step) int { return cmp.Compare(a.index, b.index) }) {
		part, ok := at(v, s)
		if !ok {
			continue
		}
		if deeper := len(rest[s][0]) > 0; deeper {
			if part = projected(part, rest[s]); len(part.Map)+len(part.List) == 0 {
				continue
			}
		}
		if s.list {
			out.List = append(out.List, part)
		} else {
			out.Map[s.name] = part
		}
	}
	return out
}
