package wire

import (
	"strconv"
	"strings"
)

// Data is the body of a launch template version: the members of the API's
// ResponseLaunchTemplateData by name. A scalar is the text that is on the wire, a
// structure a map, a list a slice; a member that was not sent is absent. Bodies
// never change once they are stored.
type Data map[string]any

// Text returns a scalar, "" where it is absent.
func (d Data) Text(name string) string {
	s, _ := d[name].(string)
	return s
}

// Integer returns a number, 0 where it is absent.
func (d Data) Integer(name string) int64 {
	n, err := strconv.ParseInt(d.Text(name), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Sub returns a structure; an absent one reads as empty.
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

// Has says whether a member was sent.
func (d Data) Has(name string) bool {
	_, ok := d[name]
	return ok
}

func Decimal(n int64) string { return strconv.FormatInt(n, 10) }

// MergedWith is a new body: d's members, replaced by those of over.
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

// Alphanumeric are the letters and digits of AWS's names.
const Alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// ConsistsOf says whether every character of s is one of allowed, which are ASCII.
func ConsistsOf(s, allowed string) bool { return strings.Trim(s, allowed) == "" }
