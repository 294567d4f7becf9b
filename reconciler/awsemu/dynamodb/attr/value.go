// Package attr implements DynamoDB's attribute values: their types, JSON format, order and size.
//
// A [Value] has exactly one type. Numbers are decimals of up to 38 digits, never floats. Binary values are
// stored as bytes. Values never change, so items may share them.
package attr

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
)

// MaxDepth is the maximum nesting depth of lists and maps.
const MaxDepth = 32

var errDepth = Invalid("Nesting Levels have exceeded supported limits: Attributes of type List and Map can be nested up to %d levels", MaxDepth)

// Item is an item's attributes by name.
type Item map[string]Value

// Value is an attribute's value.
type Value struct {
	Type   string  // S, N, B, BOOL, NULL, L, M, SS, NS or BS
	Text   string  // of S; for B, the bytes
	Number Number  // of N
	Bool   bool    // of BOOL
	List   []Value // of L; for a set, its elements of type S, N or B
	Map    Item    // of M
}

// Text returns a value of type S.
func Text(s string) Value { return Value{Type: "S", Text: s} }

// Set reports whether the value is a set.
func (v Value) Set() bool { return v.Type == "SS" || v.Type == "NS" || v.Type == "BS" }

// typed is the JSON format of a value.
type typed struct {
	S    *string   `json:",omitempty"`
	N    *string   `json:",omitempty"`
	B    *[]byte   `json:",omitempty"`
	BOOL *bool     `json:",omitempty"`
	NULL *bool     `json:",omitempty"`
	L    *[]Value  `json:",omitempty"`
	M    *Item     `json:",omitempty"`
	SS   *[]string `json:",omitempty"`
	NS   *[]string `json:",omitempty"`
	BS   *[][]byte `json:",omitempty"`
}

// MarshalJSON implements [json.Marshaler].
func (v Value) MarshalJSON() ([]byte, error) {
	var t typed
	raw := func(s string) []byte { return append([]byte{}, s...) }
	switch v.Type {
	case "S":
		t.S = &v.Text
	case "N":
		n := v.Number.String()
		t.N = &n
	case "B":
		b := raw(v.Text)
		t.B = &b
	case "BOOL":
		t.BOOL = &v.Bool
	case "NULL":
		yes := true
		t.NULL = &yes
	case "L":
		list := append([]Value{}, v.List...)
		t.L = &list
	case "M":
		m := v.Map
		if m == nil {
			m = Item{}
		}
		t.M = &m
	case "BS":
		set := [][]byte{}
		for _, e := range v.List {
			set = append(set, raw(e.Text))
		}
		t.BS = &set
	default:
		set := []string{}
		for _, e := range v.List {
			if e.Type == "N" {
				set = append(set, e.Number.String())
			} else {
				set = append(set, e.Text)
			}
		}
		if t.SS = &set; v.Type == "NS" {
			t.SS, t.NS = nil, &set
		}
	}
	return json.Marshal(t)
}

// UnmarshalJSON implements [json.Unmarshaler]. It returns DynamoDB's errors.
func (v *Value) UnmarshalJSON(data []byte) error {
	if tooDeep(data) {
		return errDepth // checked first, because each level reads all levels below it
	}
	var t typed
	if err := json.Unmarshal(data, &t); err != nil {
		return err
	}
	found, err := t.values()
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return Invalid("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
	case len(found) > 1:
		return Invalid("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes")
	}
	*v = found[0]
	return v.checkSet()
}

// values returns the values that are set; DynamoDB accepts exactly one.
func (t typed) values() (found []Value, err error) {
	number := func(text string) Value {
		n, wrong := ParseNumber(text)
		if wrong != nil {
			err = wrong
		}
		return Value{Type: "N", Number: n}
	}
	if t.S != nil {
		found = append(found, Text(*t.S))
	}
	if t.N != nil {
		found = append(found, number(*t.N))
	}
	if t.B != nil {
		found = append(found, Value{Type: "B", Text: string(*t.B)})
	}
	if t.BOOL != nil {
		found = append(found, Value{Type: "BOOL", Bool: *t.BOOL})
	}
	if t.NULL != nil {
		if !*t.NULL {
			err = Invalid("One or more parameter values were invalid: Null attribute value types must have the value of true")
		}
		found = append(found, Value{Type: "NULL"})
	}
	if t.L != nil {
		found = append(found, Value{Type: "L", List: *t.L})
	}
	if t.M != nil {
		found = append(found, Value{Type: "M", Map: *t.M})
	}
	if t.SS != nil {
		found = append(found, setOf("SS", *t.SS, Text))
	}
	if t.NS != nil {
		found = append(found, setOf("NS", *t.NS, number))
	}
	if t.BS != nil {
		found = append(found, setOf("BS", *t.BS, func(b []byte) Value { return Value{Type: "B", Text: string(b)} }))
	}
	return found, err
}

func setOf[E any](kind string, elements []E, value func(E) Value) Value {
	v := Value{Type: kind}
	for _, e := range elements {
		v.List = append(v.List, value(e))
	}
	return v
}

// checkSet refuses empty sets and duplicate elements.
func (v Value) checkSet() error {
	if !v.Set() {
		return nil
	}
	if len(v.List) == 0 {
		return Invalid("One or more parameter values were invalid: An %s set  may not be empty", map[string]string{"SS": "string", "NS": "number", "BS": "binary"}[v.Type])
	}
	seen := map[string]bool{}
	for _, e := range v.List {
		if seen[e.Sortable()] {
			return Invalid("One or more parameter values were invalid: Input collection %s contains duplicates.", v.shown())
		}
		seen[e.Sortable()] = true
	}
	return nil
}

// shown returns a set in the format of AWS's messages.
func (v Value) shown() string {
	var parts []string
	for _, e := range v.List {
		if parts = append(parts, e.Text); e.Type == "N" {
			parts[len(parts)-1] = e.Number.String()
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// String returns the value in the format of AWS's messages.
func (v Value) String() string {
	text, err := json.Marshal(v)
	if err != nil {
		return "AttributeValue"
	}
	return "AttributeValue: " + strings.ReplaceAll(string(bytes.TrimSpace(text)), `"`, "")
}

// Sortable returns a text with the same order as keys of the value's type.
func (v Value) Sortable() string {
	if v.Type == "N" {
		return hex.EncodeToString([]byte(v.Number.sortable()))
	}
	return hex.EncodeToString([]byte(v.Text))
}

// Equal reports whether values are equal. The order of sets and the notation of numbers do not matter.
func (v Value) Equal(w Value) bool {
	switch {
	case v.Type != w.Type:
		return false
	case v.Set():
		return len(v.List) == len(w.List) && !slices.ContainsFunc(v.List, func(e Value) bool { return !w.Has(e) })
	case v.Type == "L":
		return slices.EqualFunc(v.List, w.List, Value.Equal)
	case v.Type == "M":
		return v.Map.Equal(w.Map)
	case v.Type == "N":
		return v.Number.Compare(w.Number) == 0
	}
	return v.Text == w.Text && v.Bool == w.Bool
}

// Equal reports whether items have the same attributes.
func (i Item) Equal(j Item) bool {
	if len(i) != len(j) {
		return false
	}
	for name, v := range i {
		if w, ok := j[name]; !ok || !v.Equal(w) {
			return false
		}
	}
	return true
}

// Has reports whether a set or list contains an element.
func (v Value) Has(e Value) bool { return slices.ContainsFunc(v.List, e.Equal) }

// Compare compares two values of the same ordered type. ok is false for other types.
func (v Value) Compare(w Value) (order int, ok bool) {
	switch {
	case v.Type != w.Type:
	case v.Type == "N":
		return v.Number.Compare(w.Number), true
	case v.Type == "S" || v.Type == "B":
		return strings.Compare(v.Text, w.Text), true
	}
	return 0, false
}

// Size returns the bytes of an item that count against its limit: names and values.
func (i Item) Size() int {
	size := 0
	for name, v := range i {
		size += len(name) + v.Size()
	}
	return size
}

// Size returns the size of a value in bytes.
func (v Value) Size() int {
	size := 0
	switch v.Type {
	case "N":
		return v.Number.size()
	case "BOOL", "NULL":
		return 1
	case "L", "M":
		size = 3 + len(v.List) + len(v.Map) + v.Map.Size()
	default:
		size = len(v.Text)
	}
	for _, e := range v.List {
		size += e.Size()
	}
	return size
}

// tooDeep reports whether JSON is deeper than any item can be. Each level of lists and maps takes two levels
// of JSON.
func tooDeep(data []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(data) && depth <= 2*MaxDepth+4; i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
	}
	return depth > 2*MaxDepth+4
}

// CheckDepth refuses values that nest too deep.
func (i Item) CheckDepth() error {
	if i.depth() > MaxDepth {
		return errDepth
	}
	return nil
}

func (i Item) depth() int {
	deepest := 0
	for _, v := range i {
		deepest = max(deepest, v.depth())
	}
	return deepest
}

func (v Value) depth() int {
	if v.Type != "L" && v.Type != "M" {
		return 0
	}
	deepest := v.Map.depth()
	for _, e := range v.List {
		deepest = max(deepest, e.depth())
	}
	return deepest + 1
}
