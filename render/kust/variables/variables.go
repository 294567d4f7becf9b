// Package variables substitutes variables in texts.
package variables

import (
	"regexp"
	"strings"
)

// The forms of a variable are those of clusterctl: ${VAR}, ${VAR:-default} and ${VAR:=default},
// which both give the default if VAR is unset or empty, and $${…}, which means a literal ${…}.
// $VAR, $(VAR) and {{ }} mean nothing.
//
// As with clusterctl and Flux, all objects are substituted, also those that weir does not read:
// there a variable with a value gets it, and all other variables stay unchanged.
var variableForm = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)(:[-=]((?s:.*)))?$`)

// Misuse is a place of a text that cannot be substituted.
type Misuse struct {
	Offset int
	Name   string // the variable, if it is the value that is missing
	Form   string // the text between the braces, if that is the fault
}

// In reports whether Substitute could change a text.
func In(s string) bool { return strings.Contains(s, "${") }

// Substitute replaces the variables of a text. A variable with neither value nor
// default, or of another form, stays as it stands and is returned.
func Substitute(s string, vars map[string]string) (string, []Misuse) {
	var b strings.Builder
	var bad []Misuse
	closed := closings(s)
	for i := 0; i < len(s); {
		rest := s[i:]
		switch {
		case strings.HasPrefix(rest, "$${"):
			b.WriteString("${")
			i += len("$${")
		case strings.HasPrefix(rest, "${"):
			end, is := closed[i]
			if !is {
				bad = append(bad, Misuse{Offset: i, Form: firstLine(rest)})
				b.WriteString("${")
				i += len("${")
				continue
			}
			whole := s[i : end+1]
			value, fault := lookUp(s[i+2:end], vars)
			if fault != nil {
				fault.Offset = i
				bad = append(bad, *fault)
				value = whole
			}
			b.WriteString(value)
			i += len(whole)
		default:
			next := strings.IndexByte(rest[1:], '$')
			if next < 0 {
				next = len(rest) - 1
			}
			b.WriteString(rest[:next+1])
			i += next + 1
		}
	}
	return b.String(), bad
}

// closings gives for the offset of each "${" that is closed that of its brace. A nested
// variable is seen as a whole by that, and refused as a whole.
func closings(s string) map[int]int {
	out := map[int]int{}
	var open []int
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '{' && s[i-1] == '$':
			open = append(open, i-1)
		case s[i] == '}' && len(open) > 0:
			out[open[len(open)-1]] = i
			open = open[:len(open)-1]
		}
	}
	return out
}

func lookUp(inner string, vars map[string]string) (string, *Misuse) {
	m := variableForm.FindStringSubmatch(inner)
	if m == nil || strings.Contains(m[3], "${") {
		return "", &Misuse{Form: firstLine("${" + inner + "}")}
	}
	value, ok := vars[m[1]]
	switch {
	case m[2] != "" && value == "":
		return m[3], nil
	case !ok:
		return "", &Misuse{Name: m[1]}
	}
	return value, nil
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	const longest = 60
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return s
}
