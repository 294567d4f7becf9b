// Package diag defines diagnostics about files that a user wrote: a severity, a stable code, a sentence, and
// the position of the fault in the source file. It imports only the standard library, so every package may
// import it.
package diag

import (
	"errors"
	"fmt"
	"sort"
	"strings"
)

// Severity is the effect of a diagnostic on the run that found it.
type Severity int

// Severities, most severe first.
const (
	// Error stops the affected pool or target.
	Error Severity = iota
	// Warning is shown, and the run continues.
	Warning
	// Info is a note, such as a deprecation.
	Info
)

// String returns the lower-case word for text and JSON output.
func (s Severity) String() string {
	switch s {
	case Error:
		return "error"
	case Warning:
		return "warning"
	default:
		return "info"
	}
}

// MarshalText returns the severity as a word, so that JSON contains "error" instead of 0.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses the output of MarshalText.
func (s *Severity) UnmarshalText(text []byte) error {
	for _, v := range []Severity{Error, Warning, Info} {
		if v.String() == string(text) {
			*s = v
			return nil
		}
	}
	return fmt.Errorf("parse severity: unknown word %q", text)
}

// Position is a place in a source file. The zero value means "unknown". File is relative to the tree's root
// and uses slashes. Line and Column start at 1. A 0 means that only the file or only the line is known.
type Position struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// Known reports whether at least the file is known.
func (p Position) Known() bool { return p.File != "" }

// String returns file:line:column without the unknown parts.
func (p Position) String() string {
	switch {
	case p.File == "":
		return ""
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	default:
		return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
	}
}

func (p Position) compare(q Position) int {
	if c := strings.Compare(p.File, q.File); c != 0 {
		return c
	}
	if p.Line != q.Line {
		return p.Line - q.Line
	}
	return p.Column - q.Column
}

// Related is a second position that helps to understand a diagnostic, for example the place of a conflicting
// value.
type Related struct {
	Position
	Message string `json:"message"`
}

// Diagnostic is a finding. Summary is one sentence without a full stop. Detail may add an explanation and a
// fix.
type Diagnostic struct {
	Severity Severity `json:"severity"`
	// Code is stable across releases, in kebab case.
	Code    string `json:"code"`
	Summary string `json:"summary"`
	Detail  string `json:"detail,omitempty"`
	Position
	Related []Related `json:"related,omitempty"`

	// Object and Field identify the fault in the rendered manifests ("AWSMachinePool default/web",
	// "spec.maxSize"). They serve readers if the position is unknown, and callers that search for the
	// position.
	Object string `json:"object,omitempty"`
	Field  string `json:"field,omitempty"`
}

// Located returns the summary, with the position before it if that is known.
func (d Diagnostic) Located() string {
	if d.Known() {
		return d.Position.String() + ": " + d.Summary
	}
	return d.Summary
}

// String returns the diagnostic on one line, in the form of compiler messages.
func (d Diagnostic) String() string {
	var b strings.Builder
	if d.Known() {
		b.WriteString(d.Position.String())
		b.WriteString(": ")
	}
	fmt.Fprintf(&b, "%s: %s", d.Severity, d.Summary)
	if d.Object != "" && !strings.Contains(d.Summary, d.Object) {
		fmt.Fprintf(&b, " (%s", d.Object)
		if d.Field != "" && !strings.Contains(d.Summary, d.Field) {
			fmt.Fprintf(&b, " %s", d.Field)
		}
		b.WriteString(")")
	}
	if d.Code != "" {
		fmt.Fprintf(&b, " [%s]", d.Code)
	}
	return b.String()
}

// List is a list of diagnostics. The zero value is an empty list.
type List []Diagnostic

// Sorted returns the list in order of position, severity and text. It removes exact duplicates, because
// overlays with a common base have the same faults.
func (l List) Sorted() List {
	out := append(List(nil), l...)
	sort.SliceStable(out, func(i, j int) bool { return out[i].less(out[j]) })
	kept := out[:0]
	for i, d := range out {
		if i > 0 && d.identity() == out[i-1].identity() {
			continue
		}
		kept = append(kept, d)
	}
	return kept
}

// less orders diagnostics by place, severity, object, field, code and summary.
func (d Diagnostic) less(e Diagnostic) bool {
	if c := d.compare(e.Position); c != 0 {
		return c < 0
	}
	if d.Severity != e.Severity {
		return d.Severity < e.Severity
	}
	for _, c := range []int{
		strings.Compare(d.Object, e.Object), strings.Compare(d.Field, e.Field),
		strings.Compare(d.Code, e.Code), strings.Compare(d.Summary, e.Summary),
	} {
		if c != 0 {
			return c < 0
		}
	}
	return false
}

// HasErrors reports whether any diagnostic is an Error.
func (l List) HasErrors() bool {
	for _, d := range l {
		if d.Severity == Error {
			return true
		}
	}
	return false
}

// Count returns the number of diagnostics with severity s.
func (l List) Count(s Severity) int {
	n := 0
	for _, d := range l {
		if d.Severity == s {
			n++
		}
	}
	return n
}

// Err returns nil if no diagnostic is an Error. Otherwise it returns an error with one line for each Error.
func (l List) Err() error {
	var errs []error
	for _, d := range l {
		if d.Severity == Error {
			errs = append(errs, errors.New(d.String()))
		}
	}
	return errors.Join(errs...)
}
