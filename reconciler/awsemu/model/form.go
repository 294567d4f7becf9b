package model

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxDepth limits the nesting of parameter names. AWS's deepest nesting is nine.
const maxDepth = 16

// Form is a level of a form's parameter names, split at the dots.
type Form struct {
	Kids  map[string]*Form
	Value string
	Set   bool // the node has a value of its own
}

// ParseForm builds the tree of a form's parameters.
func ParseForm(body string) (*Form, url.Values, error) {
	pairs, err := url.ParseQuery(body)
	if err != nil {
		return nil, nil, errors.New("the query string is malformed")
	}
	root := &Form{}
	for name, values := range pairs {
		if len(values) != 1 {
			return nil, nil, fmt.Errorf("the parameter %s is given more than once", name)
		}
		if strings.Count(name, ".") >= maxDepth {
			return nil, nil, fmt.Errorf("the parameter %s is nested too deep", name)
		}
		at := root
		for part := range strings.SplitSeq(name, ".") {
			if at.Kids == nil {
				at.Kids = map[string]*Form{}
			}
			if at.Kids[part] == nil {
				at.Kids[part] = &Form{}
			}
			at = at.Kids[part]
		}
		at.Value, at.Set = values[0], true
	}
	return root, pairs, nil
}

// Numbered returns the child nodes 1, 2, 3 … in numeric order.
func (f *Form) Numbered() []string {
	var names []string
	for name := range f.Kids {
		if n, err := strconv.Atoi(name); err == nil && n > 0 && strconv.Itoa(n) == name {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return len(a)*1000 + strings.Compare(a, b) - len(b)*1000 })
	return names
}

// Field returns the name of a member in a form, and its shape. It ignores the case of the name. The shape is
// nil if no such member exists.
func (s *Shape) Field(sv *Service, name string) (string, *Shape) {
	if s == nil {
		return "", nil
	}
	m, ok := s.Members[name]
	for other := range s.Members {
		if ok {
			break
		}
		if strings.EqualFold(other, name) {
			name, m, ok = other, s.Members[other], true
		}
	}
	if !ok {
		return "", nil
	}
	return sv.wire(name, m), m.Shape
}

// Items returns the shape of a list's items, or nil if the shape is not a list.
func (s *Shape) Items() *Shape {
	if s == nil || s.Item == nil {
		return nil
	}
	return s.Item.Shape
}

// wire returns the name of a member in a form.
func (sv *Service) wire(name string, m *Member) string {
	switch {
	case sv.Protocol == "ec2" && m.Query != "":
		return m.Query
	case m.Wire == "":
		return name
	case sv.Protocol == "ec2":
		return strings.ToUpper(m.Wire[:1]) + m.Wire[1:]
	}
	return m.Wire
}

// Decode reads a form as a value of a shape: structures as maps by member name, lists as slices, scalars in
// AWS's form. Parameters that the shape does not have are errors. An empty list counts as absent.
func (sv *Service) Decode(f *Form, s *Shape) (any, []Fault) {
	d := decoder{sv: sv, dropEmpty: true}
	v := d.value(f, s, "")
	return v, d.faults
}

type decoder struct {
	sv        *Service
	dropEmpty bool
	faults    []Fault
}

func (d *decoder) unknown(path string) {
	d.faults = append(d.faults, Fault{Kind: Unknown, Path: path})
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (d *decoder) value(f *Form, s *Shape, path string) any {
	if s.Type != "structure" && s.Type != "list" && s.Type != "map" {
		for name := range f.Kids {
			d.unknown(join(path, name))
		}
		return canonical(s.Type, f.Value)
	}
	if f.Set && f.Value != "" {
		d.unknown(path) // only an empty structure or list is sent as a value
	}
	if s.Type == "structure" {
		return d.structure(f, s, path)
	}
	if d.sv.Protocol == "query" && !s.Flat && len(f.Kids) > 0 {
		inner := "member"
		if s.Type == "map" {
			inner = "entry"
		} else if s.Item.Wire != "" {
			inner = s.Item.Wire
		}
		for name := range f.Kids {
			if name != inner {
				d.unknown(join(path, name))
			}
		}
		if f = f.Kids[inner]; f == nil {
			return []any{}
		}
		path = join(path, inner)
	}
	items := []any{}
	numbers := f.Numbered()
	for name := range f.Kids {
		if !slices.Contains(numbers, name) {
			d.unknown(join(path, name))
		}
	}
	for _, n := range numbers {
		items = append(items, d.value(f.Kids[n], s.Item.Shape, join(path, n)))
	}
	return items
}

func (d *decoder) structure(f *Form, s *Shape, path string) any {
	out, known := map[string]any{}, map[string]bool{}
	for name, m := range s.Members {
		wire := d.sv.wire(name, m)
		known[wire] = true
		if kid := f.Kids[wire]; kid != nil {
			v := d.value(kid, m.Shape, join(path, wire))
			if items, list := v.([]any); list && len(items) == 0 && d.dropEmpty {
				continue
			}
			out[name] = v
		}
	}
	for name := range f.Kids {
		if !known[name] {
			d.unknown(join(path, name))
		}
	}
	return out
}

// Time is the time format of the XML protocols.
const Time = "2006-01-02T15:04:05.000Z"

// canonical returns a scalar in AWS's form, or the original text if it is not valid.
func canonical(kind, text string) string {
	switch kind {
	case "boolean":
		// Python clients write True and False in manually built forms.
		if low := strings.ToLower(text); low == "true" || low == "false" {
			return low
		}
	case "integer", "long":
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return strconv.FormatInt(n, 10)
		}
	case "float", "double":
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			return strconv.FormatFloat(n, 'f', -1, 64)
		}
	case "timestamp":
		if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
			return t.UTC().Format(Time)
		}
	}
	return text
}
