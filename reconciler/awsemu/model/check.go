package model

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Kind is the kind of an error in a request.
type Kind int

// The kinds of errors.
const (
	Unknown Kind = iota // a member that the operation does not have
	Missing             // a required member is missing
	Type                // a value of another type
	Enum                // not one of the values
	Limit               // too long, too short, too large or too small, or it does not match the pattern
)

// Fault is one violation of the model in a request.
type Fault struct {
	Kind  Kind
	Path  string
	Value string // "" if it is secret
	Rule  string // in AWS's words
}

func (f Fault) String() string {
	switch f.Kind {
	case Unknown:
		return f.Path + ": the operation has no such member"
	case Missing:
		return f.Path + ": required"
	}
	return fmt.Sprintf("%s: %q: %s", f.Path, f.Value, f.Rule)
}

// checker checks a value against a shape. Values come from Decode if text is set, or else from
// encoding/json, with numbers as json.Number.
type checker struct {
	sv     *Service
	text   bool
	answer bool // enumerations and limits apply to the caller, not to AWS
	faults []Fault
}

// Check checks a request's value against a shape.
func (sv *Service) Check(s *Shape, v any, text bool) []Fault {
	c := checker{sv: sv, text: text}
	c.value(s, "", v, "")
	return c.faults
}

func (c *checker) fault(k Kind, s *Shape, path string, v any, format string, args ...any) {
	f := Fault{Kind: k, Path: path, Rule: fmt.Sprintf(format, args...)}
	if !s.Sensitive {
		f.Value = fmt.Sprint(v)
	}
	c.faults = append(c.faults, f)
}

// name returns a member's name for an error: for EC2 the name in the request, for all others the member with
// a lower-case first letter.
func (c *checker) name(path, member string, m *Member) string {
	if c.sv.Protocol == "ec2" {
		return join(path, c.sv.wire(member, m))
	}
	return join(path, lowerFirst(member))
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

func (c *checker) value(s *Shape, shape string, v any, path string) {
	wrong := false
	switch s.Type {
	case "structure":
		m, ok := v.(map[string]any)
		if wrong = !ok; ok {
			c.structure(s, m, path)
		}
	case "list":
		items, ok := v.([]any)
		if wrong = !ok; ok {
			c.limits(s, shape, path, items, float64(len(items)), "length")
			for i, item := range items {
				c.value(s.Item.Shape, s.Item.Type, item, c.item(path, i+1))
			}
		}
	case "map":
		m, ok := v.(map[string]any)
		if wrong = !ok; ok {
			c.limits(s, shape, path, m, float64(len(m)), "length")
			c.entries(s, m, path)
		}
	default:
		if !c.scalar(s, shape, v, path) {
			wrong = true
		}
	}
	if wrong {
		c.fault(Type, s, path, v, "Expected %s %s.", article(s.Type), s.Type)
	}
}

func article(word string) string {
	if strings.ContainsAny(word[:1], "aeiou") {
		return "an"
	}
	return "a"
}

func (c *checker) item(path string, n int) string {
	path = join(path, strconv.Itoa(n))
	if c.sv.Protocol == "ec2" {
		return path
	}
	return path + ".member"
}

func (c *checker) structure(s *Shape, m map[string]any, path string) {
	for _, name := range s.Required {
		v := m[name]
		items, list := v.([]any)
		// In a form, an empty list looks like no list.
		if v == nil || c.sv.Protocol == "ec2" && v == "" || c.text && list && len(items) == 0 && !c.answer {
			c.faults = append(c.faults, Fault{Kind: Missing, Path: c.name(path, name, s.Members[name])})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		member, known := s.Members[name]
		switch {
		case !known:
			c.faults = append(c.faults, Fault{Kind: Unknown, Path: join(path, name)})
		case m[name] != nil:
			c.value(member.Shape, member.Type, m[name], c.name(path, name, member))
		}
	}
}

// entries checks a map's keys and values. AWS reports their errors at the map itself.
func (c *checker) entries(s *Shape, m map[string]any, path string) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		inner := checker{sv: c.sv, text: c.text, answer: c.answer}
		inner.value(s.Key.Shape, s.Key.Type, key, path)
		for i := range inner.faults {
			inner.faults[i].Rule = "Map keys must satisfy constraint: [" + inner.faults[i].Rule + "]"
		}
		keys := len(inner.faults)
		inner.value(s.Value.Shape, s.Value.Type, m[key], join(path, key))
		for i := range inner.faults[keys:] {
			f := &inner.faults[keys+i]
			f.Rule = "Map value must satisfy constraint: [" + f.Rule + "]"
		}
		c.faults = append(c.faults, inner.faults...)
	}
}

// scalar checks a value without parts. It returns false if the value has another type.
func (c *checker) scalar(s *Shape, shape string, v any, path string) bool {
	switch s.Type {
	case "string":
		text, ok := v.(string)
		if ok {
			c.texts(s, shape, path, text)
		}
		return ok
	case "blob":
		text, ok := v.(string)
		raw, err := base64.StdEncoding.DecodeString(text)
		if ok && err == nil {
			c.limits(s, shape, path, text, float64(len(raw)), "length")
		}
		return ok && err == nil
	case "boolean":
		if c.text {
			return v == "true" || v == "false"
		}
		_, ok := v.(bool)
		return ok
	case "timestamp":
		if text, ok := v.(string); ok {
			_, err := time.Parse(time.RFC3339Nano, text)
			return err == nil
		}
	}
	number, ok := v.(json.Number)
	if c.text {
		var text string
		text, ok = v.(string)
		number = json.Number(text)
	}
	n, err := number.Float64()
	if !ok || err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return false
	}
	if s.Type == "integer" || s.Type == "long" {
		whole, err := number.Int64()
		if err != nil || s.Type == "integer" && int64(int32(whole)) != whole {
			return false
		}
	}
	c.limits(s, shape, path, v, n, "value")
	return true
}

func (c *checker) texts(s *Shape, shape, path, text string) {
	c.limits(s, shape, path, text, float64(utf8.RuneCountInString(text)), "length")
	if c.answer || c.sv.lax(shape) {
		return
	}
	if s.pattern != nil && !s.pattern().MatchString(text) {
		c.fault(Limit, s, path, text, "Member must satisfy regular expression pattern: %s", s.Pattern)
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, text) {
		c.fault(Enum, s, path, text, "Member must satisfy enum value set: [%s]", strings.Join(s.Enum, ", "))
	}
}

func (c *checker) limits(s *Shape, shape, path string, v any, n float64, what string) {
	switch {
	case c.answer || c.sv.lax(shape):
	case s.Min != nil && n < *s.Min:
		c.fault(Limit, s, path, v, "Member must have %s greater than or equal to %v", what, *s.Min)
	case s.Max != nil && n > *s.Max:
		c.fault(Limit, s, path, v, "Member must have %s less than or equal to %v", what, *s.Max)
	}
}
