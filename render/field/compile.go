package field

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/weir-gitops/weir/render/intent"
)

// PathElement is an element on the path to members: a field of a struct in package intent.
type PathElement struct {
	// Key is the name in a PoolOptions manifest.
	Key string
	// Row is the row of this member. It is nil for a parent of members that have rows.
	Row *Row
	// OfOptions is true if PoolOptions sets the member, or some members below it.
	OfOptions bool
}

// compiled is the table after its rows were resolved against the structs of package intent.
type compiled struct {
	rows    map[Kind][]*Row
	members map[Kind]*node
	// steps has the steps to the members of all rows, by the struct that has the field.
	elements map[reflect.Type]map[string]*PathElement
	// refused has the reasons for refused members, by the struct and the key that the member would have.
	refused map[reflect.Type]map[string]string
}

// node is an element in the paths of rows.
type node struct {
	row   *Row
	below map[string]*node
}

var table = sync.OnceValue(func() *compiled {
	c := &compiled{rows: map[Kind][]*Row{}, members: map[Kind]*node{}, elements: map[reflect.Type]map[string]*PathElement{}, refused: map[reflect.Type]map[string]string{}}
	c.add(Template, template, reflect.TypeFor[intent.TemplateData]())
	c.refuse(refusedTemplate, reflect.TypeFor[intent.TemplateData]())
	c.add(Group, group, reflect.TypeFor[intent.GroupSettings]())
	c.add(Group, groupOptions, reflect.TypeFor[intent.GroupOptions]())
	c.add(Nodegroup, nodegroup, reflect.TypeFor[intent.NodegroupSettings]())
	c.add(Refresh, refresh, reflect.TypeFor[intent.Refresh]())
	return c
})

// add resolves the rows of a kind against its struct, and adds them to the table in their order.
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

// enter returns the type of the member key of the type t, and records the step from t to the member for the
// row r. last is true at the end of the row's path. A key of [] stands for the items of a list, which are
// no step.
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
	if c.elements[t] == nil {
		c.elements[t] = map[string]*PathElement{}
	}
	s := c.elements[t][f.Name]
	if s == nil {
		s = &PathElement{Key: Key(key)}
		c.elements[t][f.Name] = s
	}
	if last {
		s.Row = r
	}
	s.OfOptions = s.OfOptions || !r.OfPool()
	return f.Type
}

// refuse records the reasons for refused members. why maps the path of a member below root to the reason.
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

// memberIndex returns the index of a struct's field with the given AWS name.
func memberIndex(t reflect.Type, name string) int {
	for i := range t.NumField() {
		if strings.EqualFold(JSONKey(t.Field(i)), name) {
			return i
		}
	}
	return -1
}

// JSONKey returns the JSON key of a struct's field, or "".
func JSONKey(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return key
}

// Rows returns the rows of a kind, by name in AWS.
func Rows(of Kind) []*Row { return table().rows[of] }

// At returns the step of a struct's field. ok is false if the field is not on the path of any row.
func At(t reflect.Type, name string) (s PathElement, ok bool) {
	if found := table().elements[t][name]; found != nil {
		return *found, true
	}
	return PathElement{}, false
}

// Refused returns the reason why a struct of package intent has no member with the given manifest key. It is
// "" if no reason is recorded.
func Refused(t reflect.Type, key string) string { return table().refused[t][key] }

// Refusals returns the AWS members that a kind cannot have, with the reasons.
func Refusals(of Kind) map[string]string {
	return map[Kind]map[string]string{Template: refusedTemplate}[of]
}

// Find returns the row of a member. The path has the keys of the intent, and positions. A position in a list
// of strings belongs to the row of the list.
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

// Fields returns the paths below spec that may set a member, the most likely first. ofOptions reports whether
// they are paths of PoolOptions.
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

// withPositions fills in the positions of a member for the lists in a path. It appends remaining positions,
// for an item in a list of strings.
func withPositions(path, member intent.Path) intent.Path {
	positions := slices.DeleteFunc(slices.Clone(member), func(e string) bool { return !strings.HasPrefix(e, "[") })
	for i, e := range path {
		if e == "[]" && len(positions) > 0 {
			path[i], positions = positions[0], positions[1:]
		}
	}
	return append(path, positions...)
}
