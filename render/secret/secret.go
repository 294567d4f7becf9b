// Package secret finds secret values in texts. weir refuses fields that contain one, and removes them from
// all output. It imports only packages that import nothing else of weir, and every package may import it.
//
// White space around a value is ignored. A value counts only if it has at least 6 bytes and is neither a
// boolean nor null. Shorter values occur in too many texts by chance, and are too easy to guess. In a value
// with several lines, each line of at least 16 bytes counts too, and so does the text after a line's colon or
// equals sign.
//
// The finder recognizes a value that is unchanged, in base64 of both alphabets, also inside a longer text, or
// escaped for URLs, JSON, HTML or Go.
package secret

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/render/visible"
)

// Mask replaces secret values in output.
const Mask = "(redacted)"

// Minimum sizes in bytes: of a value, of a line in a longer value, and of the text after a line's colon.
const (
	leastValue  = 6
	leastLine   = 16
	leastMember = 8
)

// Set is a set of secret values. It is immutable; nil is the empty set.
type Set struct {
	values []string // as given, trimmed, sorted
}

// New returns the set of all given values that count.
func New(values ...string) *Set {
	var kept []string
	for _, v := range values {
		if v = strings.TrimSpace(v); isSecret(v) {
			kept = append(kept, v)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	slices.Sort(kept)
	return &Set{values: slices.Compact(kept)}
}

// Union returns the set of all values of the sets. If one of the sets has all values, Union returns it.
func Union(sets ...*Set) *Set {
	var all []string
	for _, s := range sets {
		if s != nil {
			all = append(all, s.values...)
		}
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) == 0 {
		return nil
	}
	for _, s := range sets {
		if s.Len() == len(all) {
			return s
		}
	}
	return &Set{values: all}
}

func isSecret(v string) bool {
	switch strings.ToLower(v) {
	case "true", "false", "null":
		return false
	}
	return len(v) >= leastValue
}

// Equal reports whether two sets have the same values.
func (s *Set) Equal(o *Set) bool {
	if s == nil || o == nil {
		return s.Len() == o.Len()
	}
	return slices.Equal(s.values, o.values)
}

// Len returns the number of values.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.values)
}

// Word reports whether a value is a word, a name, a version or a small number. Such a value is so common that
// its occurrence in a text reveals nothing.
func Word(v string) bool { return len(v) < longestWord && word.MatchString(v) }

// word matches texts that are likely to occur by chance: a word, a name, a version, a small number.
var word = lazyregexp.New(`^([a-z]+([._/-][a-z]+)*|[A-Z][a-z]+|v?[0-9]{1,7}|v?[0-9]+(\.[0-9]+)+)$`)

// longestWord is the length from which a value never counts as a word.
const longestWord = 20

// formsOf returns all forms of a value and its parts.
func formsOf(v string) []string {
	var out []string
	for _, part := range parts(v) {
		out = append(append(out, encoded(part)...), escaped(part)...)
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(form string) bool { return len(form) < leastValue })
}

// parts returns a value and the parts of it that a message may quote alone: its lines, and the values of
// members in these lines.
func parts(v string) []string {
	out := []string{v}
	if !strings.Contains(v, "\n") {
		return out
	}
	for line := range strings.Lines(v) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "-----") { // the header of a PEM block is not secret
			continue
		}
		if len(line) >= leastLine {
			out = append(out, line)
		}
		if i := strings.IndexAny(line, ":="); i >= 0 {
			member := strings.Trim(strings.TrimSpace(line[i+1:]), `"'`)
			if len(member) >= leastMember && !word.MatchString(member) {
				out = append(out, member)
			}
		}
	}
	return out
}

// encoded returns the forms of a value in base64: alone, and inside a longer text. In the latter case only
// the characters in the middle depend on the value alone.
func encoded(v string) []string {
	var out []string
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		out = append(out, enc.EncodeToString([]byte(v)))
		for before := range 3 {
			text := enc.EncodeToString(append(make([]byte, before), v...))
			from := []int{0, 2, 3}[before] // these characters contain bits of the previous bytes
			to := (before + len(v)) * 8 / 6
			if to-from >= leastMember {
				out = append(out, text[from:to])
			}
		}
	}
	return out
}

// unescaped matches texts that are equal in all escaped forms.
var unescaped = lazyregexp.New(`^[A-Za-z0-9._~-]*$`)

// escaped returns the forms of a value in URLs, JSON, HTML and Go's quotes, also with invisible characters
// written out.
func escaped(v string) []string {
	if unescaped.MatchString(v) {
		return []string{v}
	}
	out := []string{v, url.QueryEscape(v), url.PathEscape(v), html.EscapeString(v)}
	quoted := strconv.Quote(v)
	out = append(out, quoted[1:len(quoted)-1])
	if js, err := json.Marshal(v); err == nil {
		out = append(out, string(js[1:len(js)-1]))
	}
	var plain strings.Builder
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) == nil {
		js := strings.TrimSuffix(plain.String(), "\n")
		out = append(out, js[1:len(js)-1])
	}
	if strings.ContainsFunc(v, visible.Hidden) {
		for _, form := range slices.Clone(out) {
			out = append(out, visible.Text(form), visible.HTML(form), visible.JSON(form), visible.YAML(form))
		}
	}
	return out
}
