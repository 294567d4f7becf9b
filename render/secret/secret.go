// Package secret finds secret values in texts: to refuse a field that contains one, and to keep
// them out of everything that is shown. It imports only packages that import nothing else of weir,
// and every package may import it.
//
// The values that count. The finder ignores white space around a value. A value counts only if it
// has at least 6 bytes and is neither a boolean nor null: anything shorter is in too many texts by
// chance, and too easy to guess to be protected by silence. In a value with several lines, each
// line with at least 16 bytes counts too, and what follows the colon or equals sign of a line.
//
// It is found unchanged; in base64 of both alphabets, also as a part of something longer; and
// escaped for URLs, JSON, HTML and Go.
package secret

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/render/visible"
)

// Mask is shown in place of a secret value.
const Mask = "(redacted)"

// Least sizes in bytes: of a value, of a line of a longer value, and of the text behind a line's
// colon.
const (
	leastValue  = 6
	leastLine   = 16
	leastMember = 8
)

// Set is a set of secret values. It is immutable; nil is the empty set.
type Set struct {
	values []string // as they were given, trimmed, sorted
}

// New returns the set of those values that count.
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

// Union returns the set of all values of the sets; it is one of them where that has
// all values.
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

// Equal reports whether two sets hold the same values.
func (s *Set) Equal(o *Set) bool {
	if s == nil || o == nil {
		return s.Len() == o.Len()
	}
	return slices.Equal(s.values, o.values)
}

// Len is the number of values that are looked for.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.values)
}

// Word reports whether a value is a word, a name, a version or a small number: so
// likely to be in other texts by chance that it says nothing.
func Word(v string) bool { return len(v) < longestWord && word.MatchString(v) }

// word matches texts that are likely to occur by chance: a word, a name, a version, a small number.
var word = regexp.MustCompile(`^([a-z]+([._/-][a-z]+)*|[A-Z][a-z]+|v?[0-9]{1,7}|v?[0-9]+(\.[0-9]+)+)$`)

// longestWord is the size from which no value is taken for a word.
const longestWord = 20

// formsOf are all forms of a value and of its parts.
func formsOf(v string) []string {
	var out []string
	for _, part := range parts(v) {
		out = append(append(out, encoded(part)...), escaped(part)...)
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(form string) bool { return len(form) < leastValue })
}

// parts are a value and what of it may be quoted alone.
func parts(v string) []string {
	out := []string{v}
	if !strings.Contains(v, "\n") {
		return out
	}
	for line := range strings.Lines(v) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "-----") { // the head of a PEM block says nothing
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

// encoded are the forms of a value in base64: as a whole, and as a part of
// something longer, where only the characters in the middle are its own.
func encoded(v string) []string {
	var out []string
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		out = append(out, enc.EncodeToString([]byte(v)))
		for before := range 3 {
			text := enc.EncodeToString(append(make([]byte, before), v...))
			from := []int{0, 2, 3}[before] // these hold bits of the previous bytes
			to := (before + len(v)) * 8 / 6
			if to-from >= leastMember {
				out = append(out, text[from:to])
			}
		}
	}
	return out
}

// unescaped matches texts that are the same in all escaped forms.
var unescaped = regexp.MustCompile(`^[A-Za-z0-9._~-]*$`)

// escaped are the forms of a value in URLs, JSON, HTML and Go's quotes, also with what
// a reader does not see written out.
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
