package diag

import (
	"slices"
	"strings"
)

// Rule describes a diagnostic code.
type Rule struct {
	// Code is stable across releases, in kebab case.
	Code string
	// Severities lists the severities that the code is reported with, most severe first.
	Severities []Severity
	// Short is a description in one sentence without a full stop.
	Short string
	// Help is advice in full sentences.
	Help string
}

// rule is an entry of the registry: a code, its severities by their first letters (e, w, i), its meaning and
// the advice.
type rule struct{ code, severities, short, help string }

// group is a part of the registry with a heading for the document.
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

// RuleOf returns the rule of a code.
func RuleOf(code string) (Rule, bool) {
	r, ok := byCode[code]
	return r, ok
}

// Levels returns the severities as words: "error" or "error, warning".
func (r Rule) Levels() string {
	var words []string
	for _, s := range r.Severities {
		words = append(words, s.String())
	}
	return strings.Join(words, ", ")
}

// Hint returns the advice of a code's rule. It is empty for an unknown code.
func Hint(code string) string { return byCode[code].Help }

// Hinted returns the list with the Hint of its code in each diagnostic without a Detail.
func (l List) Hinted() List {
	out := append(List(nil), l...)
	for i := range out {
		if out[i].Detail == "" {
			out[i].Detail = Hint(out[i].Code)
		}
	}
	return out
}
