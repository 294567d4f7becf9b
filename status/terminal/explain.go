package terminal

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/status/wording"
)

// Explained is a field and, if requested, the origin of its value.
type Explained struct {
	render.Field
	Chain []kust.ValueChange
}

type explainedJSON struct {
	Field    string             `json:"field,omitempty"`
	Manifest *manifestJSON      `json:"manifest,omitempty"`
	Value    string             `json:"value"`
	Source   render.ValueKind   `json:"source"`
	Note     string             `json:"note,omitempty"`
	Origin   *diag.Position     `json:"origin,omitempty"`
	Chain    []kust.ValueChange `json:"chain,omitempty"`
}

type manifestJSON struct {
	Object string `json:"object"`
	Field  string `json:"field"`
}

// Explanation returns the fields of a pool in the schema weir.dev/explain/v1.
func Explanation(pool intent.Key, fields []Explained) any {
	return struct {
		Schema string          `json:"schema"`
		Pool   string          `json:"pool"`
		Fields []explainedJSON `json:"fields"`
	}{"weir.dev/explain/v1", pool.String(), explained(fields)}
}

// RolloutExplanation returns the explanation of a FleetRollout.
func RolloutExplanation(rollout intent.Key, fields []Explained) any {
	return struct {
		Schema  string          `json:"schema"`
		Rollout string          `json:"rollout"`
		Fields  []explainedJSON `json:"fields"`
	}{"weir.dev/explain/v1", rollout.String(), explained(fields)}
}

func explained(fields []Explained) []explainedJSON {
	out := make([]explainedJSON, 0, len(fields))
	for _, f := range fields {
		j := explainedJSON{Field: f.Path.String(), Value: f.Value, Source: f.Source, Note: f.Note, Chain: f.Chain}
		if len(f.Manifest) > 0 {
			j.Manifest = &manifestJSON{f.Object.String(), f.Manifest.String()}
		}
		if f.Origin.Known() {
			j.Origin = &f.Origin
		}
		out = append(out, j)
	}
	return out
}

// Fields prints a line for each field: its name, its value and its source.
func (p Printer) Fields(fields []Explained) error {
	t := tabwriter.NewWriter(p.W, 0, 0, 2, ' ', 0)
	for _, f := range fields {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\n", wording.Clean(f.Path.String()), shown(f.Value), wording.Clean(originText(f.Field)))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print fields: %w", err)
	}
	return nil
}

// Chains prints fields with the origins of their values, the base first. It combines fields of the pool
// that get their value from the same field of a manifest.
func (p Printer) Chains(fields []Explained) error {
	type writtenField struct{ object, field, value string }
	together := map[writtenField][]string{}
	writtenIn := func(f Explained) writtenField { return writtenField{f.Object.String(), f.Manifest.String(), f.Value} }
	for _, f := range fields {
		if len(f.Path) > 0 {
			together[writtenIn(f)] = append(together[writtenIn(f)], f.Path.String())
		}
	}
	shownAt := map[writtenField]bool{}
	for i, f := range fields {
		at := writtenIn(f)
		if len(f.Manifest) > 0 && shownAt[at] {
			continue
		}
		shownAt[at] = true
		if i > 0 {
			p.line()
		}
		if len(f.Manifest) == 0 {
			p.line(p.paint(bold, wording.Clean(f.Path.String())), " = ", shown(f.Value))
		} else {
			p.line(p.paint(bold, wording.Clean(f.Spec().String())), " = ", shown(f.Value))
			p.line("    field: ", wording.Clean(at.object), ", ", wording.Clean(at.field))
			if list := together[at]; len(list) > 0 {
				p.line("    intent: ", wording.Clean(strings.Join(list, ", ")))
			}
		}
		if err := p.chain(f); err != nil {
			return err
		}
	}
	return nil
}

// chain prints the places that set a field, one line for each. For a field without such places it prints
// the source of the value.
func (p Printer) chain(f Explained) error {
	if len(f.Chain) == 0 {
		p.line("    ", wording.Clean(originText(f.Field)))
		return nil
	}
	t := tabwriter.NewWriter(p.W, 0, 0, 2, ' ', 0)
	for _, s := range f.Chain {
		line := "    " + how(s) + "\t" + stepValue(s)
		if s.Known() {
			line += "\t" + wording.Clean(s.String())
		}
		if s.By != nil {
			line += ", by " + wording.Clean(s.By.String())
		}
		_, _ = fmt.Fprintln(t, line)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print fields: %w", err)
	}
	return nil
}

// originText describes the origin of a value.
func originText(f render.Field) string {
	switch {
	case f.Origin.Known():
		return f.Origin.String()
	case f.Source == render.Unknown:
		return "cannot be told"
	default:
		return string(f.Source) + ": " + f.Note
	}
}

// how describes the kind of a step.
func how(s kust.ValueChange) string {
	text := strings.ReplaceAll(string(s.How), "-", " ")
	if s.Component {
		text += " of a component"
	}
	return text
}

func stepValue(s kust.ValueChange) string {
	if s.Value == nil {
		return "(not shown)"
	}
	return shown(*s.Value)
}

// shown returns a value on one line.
func shown(v string) string {
	const longest = 80
	first, rest, more := strings.Cut(v, "\n")
	text := wording.Clean(first)
	if runes := []rune(text); len(runes) > longest {
		text, more = string(runes[:longest]), true
	}
	switch {
	case more && rest != "":
		return text + " …"
	case text == "":
		return `""`
	}
	return text
}
