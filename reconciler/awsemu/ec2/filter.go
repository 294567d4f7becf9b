package ec2

import (
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// maxFilterValues is the maximum number of filter values in one request.
const maxFilterValues = 200

// filter is one filter of a Describe call: its values are alternatives.
type filter struct {
	Name   string
	Values []string
}

// attributes has the filter names of a Describe call, each with a function that returns a resource's values.
type attributes[T any] map[string]func(T) []string

// one returns an attribute with a single text.
func one[T any](get func(T) string) func(T) []string {
	return func(v T) []string { return []string{get(v)} }
}

// matcher returns a test for filters. All filters must match, each by one of its values. Values may contain
// the wildcards * and ?, which a backslash escapes.
func matcher[T any](filters []filter, known attributes[T], tagsOf func(T) world.Tags) (func(T) bool, error) {
	tests := make([]func(T) bool, 0, len(filters))
	for _, f := range filters {
		test, err := oneMatcher(f, known, tagsOf)
		if err != nil {
			return nil, err
		}
		tests = append(tests, test)
	}
	return func(v T) bool {
		for _, test := range tests {
			if !test(v) {
				return false
			}
		}
		return true
	}, nil
}

func oneMatcher[T any](f filter, known attributes[T], tagsOf func(T) world.Tags) (func(T) bool, error) {
	if key, ok := strings.CutPrefix(f.Name, "tag:"); ok {
		return func(v T) bool {
			value, has := tagsOf(v).Get(key)
			return has && f.accepts(value)
		}, nil
	}
	switch f.Name {
	case "tag-key", "tag-value":
		return func(v T) bool {
			for _, t := range tagsOf(v) {
				text := t.Key
				if f.Name == "tag-value" {
					text = t.Value
				}
				if f.accepts(text) {
					return true
				}
			}
			return false
		}, nil
	}
	get := known[f.Name]
	if get == nil {
		return nil, wire.Fail("InvalidParameterValue", "The filter '%s' is invalid", f.Name)
	}
	return func(v T) bool {
		for _, text := range get(v) {
			if f.accepts(text) {
				return true
			}
		}
		return false
	}, nil
}

// accepts reports whether one of the filter's values matches a text.
func (f *filter) accepts(text string) bool {
	for _, pattern := range f.Values {
		if pattern == text || strings.ContainsAny(pattern, `*?\`) && Wildcard(pattern, text) {
			return true
		}
	}
	return false
}

// Wildcard matches a text against a pattern with * (any text), ? (any character) and backslash (the next
// character literally). Its time is at most proportional to the product of both lengths.
func Wildcard(pattern, text string) bool {
	p, t := 0, 0
	star, mark := -1, 0
	for t < len(text) {
		literal := byte(0)
		width := 0
		if p < len(pattern) {
			literal, width = pattern[p], 1
			if literal == '\\' && p+1 < len(pattern) {
				literal, width = pattern[p+1], 2
			}
		}
		switch {
		case width == 1 && literal == '*':
			star, mark = p, t
			p++
		case width > 0 && (literal == text[t] || width == 1 && literal == '?'):
			p += width
			t++
		case star >= 0:
			mark++
			p, t = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// describe contains the members that the Describe calls share.
type describe struct {
	Filters    []filter
	NextToken  string
	MaxResults *int64

	limit int // rows of a page, 0: no limit
}

// bound checks filters and page size. lowest and highest bound the page size. usual is the default (0: no
// limit).
func (d *describe) bound(lowest, highest, usual int64) error {
	d.limit = int(usual)
	if n := d.MaxResults; n != nil {
		if *n < lowest || *n > highest {
			return badValue("maxResults", wire.Decimal(*n), "Expecting value between "+wire.Decimal(lowest)+" and "+wire.Decimal(highest)+".")
		}
		d.limit = int(*n)
	}
	return checkFilters(d.Filters)
}

func checkFilters(filters []filter) error {
	total := 0
	for _, f := range filters {
		total += len(f.Values)
	}
	if total > maxFilterValues {
		return wire.Fail("FilterLimitExceeded", "The maximum number of filter values specified on a single call is %d", maxFilterValues)
	}
	return nil
}

// badValue returns EC2's error for a parameter's value.
func badValue(name, value, why string) *wire.Error {
	return wire.Fail("InvalidParameterValue", "Value (%s) for parameter %s is invalid. %s", value, name, why)
}

// runDescribe writes a page of a table's rows: the requested ids, or all rows that match the filters.
// missing returns the error for an unknown id.
func runDescribe[T any](rq *request, d describe, ids []string, rows *world.Table[T], match func(T) bool, missing func(id string) *wire.Error, list string, write func(T)) error {
	wanted := map[string]bool{}
	for _, id := range ids {
		if !rows.Has(id) {
			return missing(id)
		}
		wanted[id] = true
	}
	w := &rq.XML
	w.Open(list)
	next, err := rq.Page(rows.Sorted(), d.NextToken, d.limit, func(id string) bool {
		row := rows.Get(id)
		if len(wanted) > 0 && !wanted[id] || !match(row) {
			return false
		}
		w.Open("item")
		write(row)
		w.Close("item")
		return true
	})
	if err != nil {
		return err
	}
	w.Close(list)
	w.Optional("nextToken", next)
	return nil
}
