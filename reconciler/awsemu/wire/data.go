package wire

import (
	"strconv"
	"strings"
)

// Data is the body of a launch template version: the members of the API's ResponseLaunchTemplateData by
// name. A scalar is the text on the wire, a structure is a map, and a list is a slice. A member that was not
// sent is absent. Stored bodies never change.
type Data map[string]any

// Text returns a scalar, or "" if it is absent.
func (d Data) Text(name string) string {
	s, _ := d[name].(string)
	return s
}

// Integer returns a number, or 0 if it is absent.
func (d Data) Integer(name string) int64 {
	n, err := strconv.ParseInt(d.Text(name), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Sub returns a structure, or an empty one if it is absent.
func (d Data) Sub(name string) Data {
	m, _ := d[name].(map[string]any)
	return m
}

// List returns the structures of a list.
func (d Data) List(name string) []Data {
	items, _ := d[name].([]any)
	var out []Data
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// Texts returns the scalars of a list.
func (d Data) Texts(name string) []string {
	items, _ := d[name].([]any)
	var out []string
	for _, item := range items {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// Has reports whether a member was sent.
func (d Data) Has(name string) bool {
	_, ok := d[name]
	return ok
}

func Decimal(n int64) string { return strconv.FormatInt(n, 10) }

// MergedWith returns a new body: d's members, replaced by over's members.
func (d Data) MergedWith(over Data) Data {
	out := Data{}
	for name, v := range d {
		out[name] = v
	}
	for name, v := range over {
		out[name] = v
	}
	return out
}

// Alphanumeric contains the letters and digits in AWS's names.
const Alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// ConsistsOf reports whether every character of s is in allowed, which must be ASCII.
func ConsistsOf(s, allowed string) bool { return strings.Trim(s, allowed) == "" }
