// Package decoy makes another plain text for a secret one: of the same length and
// shape, and with another character in every place where a character says something.
// A build with decoys in the place of all secrets shows what depends on a secret: all
// that is not the same as in the build with the secrets themselves.
//
// A decoy keeps all that decides which way a build goes. Digits stay digits and letters
// letters, of their case; white space stays; JSON, YAML, lines of KEY=VALUE and base64
// of any of them stay what they are, and are changed leaf by leaf; numbers and booleans
// keep their type. The same text always has the same decoy, so that what is equal stays
// equal, and a render is as pure as it was. Only those who know the text can compute
// it, and weir never shows it.
//
// The build decides which other texts are kept; see Maker.
package decoy

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Maker makes the decoys of one build. The zero value is usable.
type Maker struct {
	// Delimiters are the texts at which the build splits others. They stay in a text,
	// unless so much of it stayed that a piece could be the same.
	Delimiters []string
	// Named are the names that paths of the build lead through: members with these
	// keep them. The author of the paths knows the names.
	Named map[string]bool
}

// deepest is how often a text is looked into: JSON in base64 in YAML, and so on.
const deepest = 6

// Text is the decoy of a text.
func (m *Maker) Text(text string) string { return m.text(text, 0) }

func (m *Maker) text(text string, depth int) string {
	if strings.TrimSpace(text) == "" {
		return text
	}
	if flipped, ok := boolean(text); ok {
		return flipped
	}
	if number.MatchString(text) {
		return otherDigits(text)
	}
	if depth < deepest {
		for _, structured := range []func(string, int) (string, bool){m.base64, m.json, m.yaml} {
			if out, ok := structured(text, depth+1); ok {
				return out
			}
		}
	}
	return m.lines(text, depth)
}

// boolean is the other one.
func boolean(text string) (string, bool) {
	words := []string{"true", "false", "True", "False", "TRUE", "FALSE"}
	if i := slices.Index(words, text); i >= 0 {
		return words[i^1], true
	}
	return "", false
}

// number matches what is a number in JSON and YAML, as far as a decoy has to be one.
var number = regexp.MustCompile(`^[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?$`)

// otherDigits is the decoy of a number or a date: its digits are others, the rest stays.
func otherDigits(text string) string {
	s := newSource(text)
	out := []byte(text)
	for i, c := range out {
		if isDigit(c) {
			out[i] = s.other(c, "")
		}
	}
	return string(out)
}

// assignment is a line that gives a name a value, as files of variables and many
// others have them. A name is as kustomize takes it.
var assignment = regexp.MustCompile(`^([ \t]*(?:export )?)([A-Za-z_.-][A-Za-z0-9_.-]*)(=|:[ \t]+)(.*)$`)

var bareName = regexp.MustCompile(`^[A-Za-z_.-][A-Za-z0-9_.-]*$`)

// lines is the decoy of a text of which every line stands for itself.
func (m *Maker) lines(text string, depth int) string {
	var out strings.Builder
	names := m.names()
	for line := range strings.Lines(text) {
		content := strings.TrimRight(line, "\r\n")
		end := line[len(content):]
		switch a := assignment.FindStringSubmatch(content); {
		case a != nil:
			out.WriteString(a[1] + names.of(a[2]) + a[3] + m.value(a[4], depth))
		case end != "" && bareName.MatchString(content): // which has an empty value
			out.WriteString(m.name(content, 0))
		default:
			rest := strings.TrimLeft(content, " \t")
			out.WriteString(content[:len(content)-len(rest)])
			if strings.HasPrefix(rest, "#") { // a comment stays one
				out.WriteByte('#')
				rest = rest[1:]
			}
			out.WriteString(m.opaque(rest))
		}
		out.WriteString(end)
	}
	return out.String()
}

// value is the decoy of what a line gives a name, which may be in quotes.
func (m *Maker) value(text string, depth int) string {
	if n := len(text); n >= 2 && (text[0] == '"' || text[0] == '\'') && text[n-1] == text[0] && depth < deepest {
		return text[:1] + m.text(text[1:n-1], depth+1) + text[n-1:]
	}
	if depth >= deepest || strings.Contains(text, "=") {
		return m.opaque(text)
	}
	return m.text(text, depth+1)
}

// names gives the members of one mapping their names: other ones, but for those that
// paths lead through, and none twice.
type names struct {
	m     *Maker
	taken map[string]bool
}

// fewTries is how often a name is made anew before it is made longer.
const fewTries = 10

func (m *Maker) names() *names { return &names{m, map[string]bool{}} }

func (n *names) of(name string) string {
	out := name
	if !n.m.Named[name] {
		out = n.m.name(name, 0)
		for i := 1; n.taken[out] || n.m.Named[out]; i++ {
			if out = n.m.name(name, i); i > fewTries {
				out += strconv.Itoa(i) // to be another one is worth more than the length
			}
		}
	}
	n.taken[out] = true
	return out
}

// name is the decoy of a member's name, of the characters that a name may have.
func (m *Maker) name(text string, try int) string {
	s := newSource(text + strings.Repeat("\x00", try))
	return strings.Map(func(r rune) rune {
		switch {
		case r == '_':
			return '-'
		case r == '-', r == '.':
			return '_'
		case r < utf8.RuneSelf && !isSpace(byte(r)):
			return rune(s.other(byte(r), ""))
		case r == utf8.RuneError:
			return r
		default:
			return s.rune(r, utf8.RuneLen(r))
		}
	}, text)
}
