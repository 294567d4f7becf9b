package field

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/weir-gitops/weir/render/intent"
)

// Step is one element on the way to members: a field of a struct of the intent.
type Step struct {
	// Key is the name in a manifest of PoolOptions.
	Key string
	// Row is the row of this member; nil for parents of the members of rows.
	Row *Row
	// OfOptions says that PoolOptions sets it, or some of its members.
	OfOptions bool
}

// compiled is the table, resolved against the structs of the intent once.
type compiled struct {
	rows    map[Kind][]*Row
	members map[Kind]*node
	// steps holds the steps to any row's member, by the struct that has the field.
	steps map[reflect.Type]map[string]*Step
	// refused says why, by the struct that would have a member, and its key.
	refused map[reflect.Type]map[string]string
}

// node is an element of the paths of rows.
type node struct {
	row   *Row
	below map[string]*node
}

var table = sync.OnceValue(func() *compiled {
	c := &compiled{rows: map[Kind][]*Row{}, members: map[Kind]*node{}, steps: map[reflect.Type]map[string]*Step{}, refused: map[reflect.Type]map[string]string{}}
	c.add(Template, template, reflect.TypeFor[intent.TemplateData]())
	c.refuse(refusedTemplate, reflect.TypeFor[intent.TemplateData]())
	c.add(Group, group, reflect.TypeFor[intent.GroupSettings]())
	c.add(Group, groupOptions, reflect.TypeFor[intent.GroupOptions]())
	c.add(Nodegroup, nodegroup, reflect.TypeFor[intent.NodegroupSettings]())
	c.add(Refresh, refresh, reflect.TypeFor[intent.Refresh]())
	return c
})

func (c *compiled) add(of Kind, rows []Row, root reflect.Type) {
	if c.members[of] == nil {
		c.members[of] = &node{}
	}
	for i := range rows {
		r := &rows[i]
		r.Of = of
		at, in := c.members[of], root
		path := elements(r.member())
		for j, e := range path {
			e = strings.ToUpper(e[:1]) + e[1:]
			if at.below == nil {
				at.below = map[string]*node{}
			}
			if at.below[e] == nil {
				at.below[e] = &node{}
			}
			at = at.below[e]
			in = c.enter(in, e, r, j == len(path)-1)
		}
		at.row = r
		c.rows[of] = append(c.rows[of], r)
	}
}

// enter returns the type below a key of a type.
func (c *compiled) enter(t reflect.Type, key string, r *Row, last bool) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if key == "[]" {
		return t.Elem()
	}
	i := memberIndex(t, key)
	if i < 0 {
		panic(fmt.Sprintf("field: %s has no member %s of the row %s", t, key, r.AWS))
	}
	f := t.Field(i)
	if c.steps[t] == nil {
		c.steps[t] = map[string]*Step{}
	}
	s := c.steps[t][f.Name]
	if s == nil {
		s = &Step{Key: Key(key)}
		c.steps[t][f.Name] = s
	}
	if last {
		s.Row = r
	}
	s.OfOptions = s.OfOptions || !r.OfPool()
	return f.Type
}

// refuse notes why members are refused.
func (c *compiled) refuse(why map[string]string, root reflect.Type) {
	for member, text := range why {
		in, path := root, elements(member)
		for _, e := range path[:len(path)-1] {
			for in.Kind() == reflect.Pointer {
				in = in.Elem()
			}
			if e != "[]" {
				in = in.Field(memberIndex(in, e)).Type
			} else {
				in = in.Elem()
			}
		}
		for in.Kind() == reflect.Pointer {
			in = in.Elem()
		}
		if c.refused[in] == nil {
			c.refused[in] = map[string]string{}
		}
		c.refused[in][Key(path[len(path)-1])] = text
	}
}

// memberIndex finds a field of a struct by AWS's name of it.
func memberIndex(t reflect.Type, name string) int {
	for i := range t.NumField() {
		if strings.EqualFold(JSONKey(t.Field(i)), name) {
			return i
		}
	}
	return -1
}

// JSONKey is the key of a struct's field in JSON, "" without one.
func JSONKey(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return key
}

// Rows are the rows of a kind, by their names in AWS.
func Rows(of Kind) []*Row { return table().rows[of] }

// At returns what the table knows of a struct's field; ok is false where no row has
// it on its way.
func At(t reflect.Type, name string) (s Step, ok bool) {
	if found := table().steps[t][name]; found != nil {
		return *found, true
	}
	return Step{}, false
}

// Refused explains why a struct of the intent has no member of AWS's, by the key that a manifest would
// have; "" if no reason is recorded.
func Refused(t reflect.Type, key string) string { return table().refused[t][key] }

// Refusals are the members of AWS's that a kind cannot have, each with why.
func Refusals(of Kind) map[string]string {
	return map[Kind]map[string]string{Template: refusedTemplate}[of]
}

// Find returns the row of a member, whose path has the intent's keys and positions;
// below a list of texts every position is of its row.
func Find(of Kind, member intent.Path) (r *Row, ok bool) {
	at := table().members[of]
	if at == nil {
		return nil, false
	}
	for _, e := range member {
		if strings.HasPrefix(e, "[") {
			e = "[]"
		}
		next := at.below[strings.ToUpper(e[:1])+e[1:]]
		if next == nil && e == "[]" && at.row != nil {
			continue
		}
		if next == nil {
			return nil, false
		}
		at = next
	}
	return at.row, at.row != nil
}

// Fields returns the paths below spec that may set a member, the likeliest first, and
// whether they are of PoolOptions. Only there does a struct have a path of its own.
func Fields(of Kind, member intent.Path) (paths []intent.Path, ofOptions bool) {
	r, ok := Find(of, member)
	switch {
	case !ok:
		return nil, false
	case r.OfPool():
		for _, p := range r.PoolFields() {
			paths = append(paths, withPositions(elements(p), member))
		}
		return paths, false
	}
	return []intent.Path{withPositions(elements(r.OptionsField()), member)}, true
}

// withPositions gives the lists of a path the positions that a member has. A list of
// texts that the path does not go into keeps its own.
func withPositions(path, member intent.Path) intent.Path {
	positions := slices.DeleteFunc(slices.Clone(member), func(e string) bool { return !strings.HasPrefix(e, "[") })
	for i, e := range path {
		if e == "[]" && len(positions) > 0 {
			path[i], positions = positions[0], positions[1:]
		}
	}
	return append(path, positions...)
}
