// Package variables substitutes variables in strings.
package variables

import (
	"strings"

	"github.com/weir-gitops/weir/render/lazyregexp"
)

// Variables have the same forms as in clusterctl: ${VAR}, ${VAR:-default} and ${VAR:=default}. The latter
// two use the default if VAR is unset or empty. $${…} is a literal ${…}. $VAR, $(VAR) and {{ }} are not
// variables.
//
// As in clusterctl and Flux, variables are substituted in all objects, even in kinds that weir does not read.
// There, variables without a value stay unchanged.
var variableForm = lazyregexp.New(`^([A-Za-z_][A-Za-z0-9_]*)(:[-=]((?s:.*)))?$`)

// Misuse is a variable that cannot be substituted.
type Misuse struct {
	Offset int
	Name   string // the variable, if its value is missing
	Form   string // the text between the braces, if it is invalid
}

// In reports whether Substitute could change a string.
func In(s string) bool { return strings.Contains(s, "${") }

// Substitute replaces the variables in a string. It leaves a variable unchanged and returns it if it has
// neither value nor default, or has an invalid form.
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

// closings maps the offset of each "${" to the offset of its closing brace. So a nested variable belongs to
// the outer one, which is refused as a whole.
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
