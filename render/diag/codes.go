package diag

import (
	"slices"
	"strings"
)

// Rule describes a code.
type Rule struct {
	// Code is stable across releases, in kebab case.
	Code string
	// Severities lists the severities that it is reported with, gravest first.
	Severities []Severity
	// Short describes it: one sentence without a full stop.
	Short string
	// Help says what to do, in sentences.
	Help string
}

// rule is a line of the registry: a code, its severities by their first letters
// (e, w, i), its meaning and what to do.
type rule struct{ code, severities, short, help string }

// group is a part of the registry with its heading in the document.
type group struct {
	title string
	rules []rule
}

var byCode = func() map[string]Rule {
	out := map[string]Rule{}
	for _, g := range groups {
		for _, r := range g.rules {
			out[r.code] = r.rule()
		}
	}
	return out
}()

func (r rule) rule() Rule {
	out := Rule{Code: r.code, Short: r.short, Help: r.help}
	for _, s := range []Severity{Error, Warning, Info} {
		if strings.Contains(r.severities, s.String()[:1]) {
			out.Severities = append(out.Severities, s)
		}
	}
	return out
}

// Rules returns all codes that weir reports, sorted by code.
func Rules() []Rule {
	var out []Rule
	for _, r := range byCode {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Rule) int { return strings.Compare(a.Code, b.Code) })
	return out
}

// RuleOf returns what there is to know about a code.
func RuleOf(code string) (Rule, bool) {
	r, ok := byCode[code]
	return r, ok
}

// Levels is the severities in words: "error" or "error, warning".
func (r Rule) Levels() string {
	var words []string
	for _, s := range r.Severities {
		words = append(words, s.String())
	}
	return strings.Join(words, ", ")
}

// Hint returns the advice of a code's rule, empty for an unknown code.
func Hint(code string) string { return byCode[code].Help }

// Hinted gives each diagnostic without a Detail the Hint of its code.
func (l List) Hinted() List {
	out := append(List(nil), l...)
	for i := range out {
		if out[i].Detail == "" {
			out[i].Detail = Hint(out[i].Code)
		}
	}
	return out
}
