// Package terminal prints results on the command line for people and programs: plans, outcomes,
// diagnostics, explanations, pools and history, as text, JSON, YAML, Markdown, SARIF or commands for GitHub
// Actions. It contains no decisions. It removes control characters and commands from text from outside, so
// that neither a file in Git nor a response of AWS can control the terminal, or the job that runs weir. Its
// phrases come from package wording, which comments and the page also use.
package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/wording"
)

// Printer writes text. The zero Color writes no colours.
type Printer struct {
	W io.Writer
	// Color uses the terminal's colours.
	Color bool
	// Width is the width of the terminal in characters. It is 0 if the output is not a terminal; then
	// nothing is truncated.
	Width int
	// Full disables truncation on a terminal.
	Full bool
}

// The colours, as SGR parameters.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
	dim    = "2"
	bold   = "1"
)

func (p Printer) paint(color, s string) string {
	if !p.Color || s == "" || color == "" {
		return s
	}
	return "\x1b[" + color + "m" + s + "\x1b[0m"
}

// line prints one line. It ignores errors, such as a closed pipe or a full disk: the caller gets them when
// it closes standard output.
func (p Printer) line(parts ...string) {
	_, _ = fmt.Fprintln(p.W, harmless(strings.TrimRight(strings.Join(parts, ""), " ")))
}

// harmless prevents a line from being a command to GitHub Actions, which reads commands from the output of
// every step. A command has "::" at the start of a line, also after blanks, or "##[" anywhere.
func harmless(line string) string {
	blanks := line[:len(line)-len(strings.TrimLeft(line, " "))]
	if text, ok := strings.CutPrefix(line[len(blanks):], "::"); ok {
		line = blanks + ": :" + text
	}
	return strings.ReplaceAll(line, "##[", "## [")
}

// CleanText is wording.Clean for a text with several lines.
func CleanText(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = wording.Clean(l)
	}
	return strings.Join(lines, "\n")
}

// Diagnostics prints a line for each diagnostic, like compilers do, with its details below.
func (p Printer) Diagnostics(list diag.List) {
	for _, d := range list {
		p.diagnostic("", d)
	}
}

func (p Printer) diagnostic(indent string, d diag.Diagnostic) {
	color := map[diag.Severity]string{diag.Error: red, diag.Warning: yellow}[d.Severity]
	text := wording.Clean(d.String())
	if color != "" {
		text = strings.Replace(text, d.Severity.String()+":", p.paint(color, d.Severity.String()+":"), 1)
	}
	p.line(indent, text)
	for l := range strings.Lines(d.Detail) {
		p.line(indent, "    ", wording.Clean(strings.TrimRight(l, "\n")))
	}
	for _, r := range d.Related {
		p.line(indent, "    ", wording.Clean(r.String()+": "+r.Message))
	}
}

// CountDiagnostics describes the size of a list: "2 errors, 1 warning".
func CountDiagnostics(list diag.List) string {
	var parts []string
	for _, s := range []diag.Severity{diag.Error, diag.Warning} {
		if n := list.Count(s); n > 0 {
			parts = append(parts, wording.Count(n, s.String()))
		}
	}
	return strings.Join(parts, ", ")
}

// JSON prints v as indented JSON.
func JSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}

type plansJSON struct {
	Schema string       `json:"schema"`
	Plans  []*plan.Plan `json:"plans"`
}

// Plans returns one target's plan as weir.dev/plan/v1, or several as weir.dev/plans/v1.
func Plans(reports []*plan.Report) any {
	plans := make([]*plan.Plan, len(reports))
	for i, r := range reports {
		plans[i] = r.Shown()
	}
	if len(plans) == 1 {
		return plans[0]
	}
	return plansJSON{Schema: "weir.dev/plans/v1", Plans: plans}
}

// Applied is the result of an apply on one target, over all its passes.
type Applied struct {
	// First is the first pass, which planned the work. Last is the pass after which the apply ended.
	First, Last *plan.Report
	// Outcomes contains the outcomes of all passes, in order.
	Outcomes []step.Outcome
}

type appliesJSON struct {
	Schema  string            `json:"schema"`
	Applies []json.RawMessage `json:"applies"`
}

// Applies returns one target in the schema weir.dev/apply/v1, or several
// in weir.dev/applies/v1. weir.dev/apply/v1 has the members of weir.dev/plan/v1 from the first pass, and
// outcomes, pools and converged.
func Applies(targets []Applied) (any, error) {
	var all []json.RawMessage
	for _, a := range targets {
		one, err := a.marshal()
		if err != nil {
			return nil, fmt.Errorf("print JSON: %w", err)
		}
		all = append(all, one)
	}
	if len(all) == 1 {
		return all[0], nil
	}
	return appliesJSON{Schema: "weir.dev/applies/v1", Applies: all}, nil
}

// marshal returns the JSON of weir.dev/apply/v1: the plan of the first pass, with the outcomes of all
// passes and the pools after the last one.
func (a Applied) marshal() (json.RawMessage, error) {
	first := a.First.Shown()
	if a.Last != a.First {
		// Diagnostics come from the last pass.
		with := *first
		with.Diagnostics = a.Last.Shown().Diagnostics
		first = &with
	}
	base, err := json.Marshal(first)
	if err != nil {
		return nil, err
	}
	rest, err := json.Marshal(struct {
		Outcomes  []step.Outcome    `json:"outcomes"`
		Pools     []plan.PoolStatus `json:"pools"`
		Converged bool              `json:"converged"`
	}{listed(a.Outcomes), listed(a.Last.Pools), a.Last.Converged()})
	if err != nil {
		return nil, err
	}
	text := strings.Replace(string(base), "weir.dev/plan/v1", "weir.dev/apply/v1", 1)
	return json.RawMessage(strings.TrimSuffix(text, "}") + "," + string(rest[1:])), nil
}

// listed returns a list that JSON prints as [] instead of null if it is empty.
func listed[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Heading prints a title in bold and facts next to it.
func (p Printer) Heading(title, facts string) {
	if facts != "" {
		facts = "  " + p.paint(dim, wording.Clean(facts))
	}
	p.line(p.paint(bold, wording.Clean(title)), facts)
}

// Note prints a note for the reader.
func (p Printer) Note(text string) { p.line(p.paint(yellow, "note:"), " ", wording.Clean(text)) }
