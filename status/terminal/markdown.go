package terminal

import (
	"fmt"
	"io"
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/wording"
)

// PlansMarkdown prints plans for a comment or a job summary.
func PlansMarkdown(w io.Writer, reports []*plan.Report) error {
	var b strings.Builder
	for i, r := range reports {
		if i > 0 {
			b.WriteString("\n")
		}
		planMarkdown(&b, r)
	}
	return write(w, b.String())
}

// planMarkdown writes the plan of a target as Markdown.
func planMarkdown(b *strings.Builder, r *plan.Report) {
	p := r.Shown()
	heading(b, r)
	for _, s := range p.Steps {
		mark := wording.Mark(s.Verb)
		fmt.Fprintf(b, "- `%s` **%s** %s %s", mark, s.Verb, s.Resource, wording.Code(s.Name))
		if s.Reason != "" {
			fmt.Fprintf(b, ": %s", wording.Escape(s.Reason))
		}
		if s.Disruptive && s.Instances > 0 {
			fmt.Fprintf(b, " (%s)", wording.Count(s.Instances, "instance"))
		}
		if s.Held != "" {
			fmt.Fprintf(b, " **held: %s**", wording.Escape(wording.Held(s)))
		}
		b.WriteString("\n")
		for _, c := range wording.Distinct(s) {
			fmt.Fprintf(b, "  - %s: %s", wording.Code(c.Field), wording.Code(wording.Transition(s.Verb, c)))
			if c.Origin != nil && c.Origin.Known() {
				fmt.Fprintf(b, " (%s)", wording.Escape(wording.FileLine(*c.Origin)))
			}
			b.WriteString("\n")
		}
	}
	if !p.Empty() {
		b.WriteString("\n")
	}
	waitsMarkdown(b, p)
	remarksMarkdown(b, p)
	switch {
	case !p.Empty():
		b.WriteString(wording.Escape(summary(p)) + "\n")
	case p.Diagnostics.HasErrors():
		fmt.Fprintf(b, "%s: %s.\n", nothing(p), CountDiagnostics(p.Diagnostics))
	default:
		b.WriteString(emptyPlan(p) + "\n")
	}
	if d := p.Digest(); d != "" {
		fmt.Fprintf(b, "\nDigest %s\n", wording.Code(d))
	}
}

// AppliedMarkdown prints outcomes for a comment or a job summary.
func AppliedMarkdown(w io.Writer, targets []Applied) error {
	var b strings.Builder
	for i, a := range targets {
		if i > 0 {
			b.WriteString("\n")
		}
		heading(&b, a.Last)
		for _, o := range a.Outcomes {
			mark := wording.Mark(o.Step.Verb)
			fmt.Fprintf(&b, "- `%s` %s %s %s: %s", mark, o.Step.Verb, o.Step.Resource, wording.Code(o.Step.Name), o.Status)
			if o.Err != nil {
				fmt.Fprintf(&b, ": %s", wording.Escape(o.Err.Error()))
			}
			b.WriteString("\n")
		}
		if len(a.Outcomes) > 0 {
			b.WriteString("\n")
		}
		last := a.Last.Shown()
		waitsMarkdown(&b, last)
		remarksMarkdown(&b, last)
		switch {
		case len(a.Outcomes) > 0:
			fmt.Fprintf(&b, "%s done, %d failed.\n", wording.Count(count(a.Outcomes, step.Done), "step"), count(a.Outcomes, step.Failed))
		case !last.Diagnostics.HasErrors():
			b.WriteString(emptyPlan(last) + "\n")
		}
		if moving := unsettled(a.Last); moving != "" {
			fmt.Fprintf(&b, "\nNot converged yet: %s.\n", wording.Escape(moving))
		}
	}
	return write(w, b.String())
}

func heading(b *strings.Builder, r *plan.Report) {
	fmt.Fprintf(b, "### %s\n\n", wording.Escape(r.Target))
	fmt.Fprintf(b, "%s, account %s", r.Region, orDash(r.Account))
	if r.Revision != "" {
		fmt.Fprintf(b, ", revision %s", wording.Code(wording.Short(r.Revision)))
	}
	b.WriteString("\n\n")
}

// waitsMarkdown writes what held steps wait for, a line for each wait.
func waitsMarkdown(b *strings.Builder, p *plan.Plan) {
	waits := wording.WaitsOf(p.Target, p.Steps)
	for _, w := range waits {
		fmt.Fprintf(b, "- %s\n", wording.Escape(w.Text()))
	}
	if len(waits) > 0 {
		b.WriteString("\n")
	}
}

func remarksMarkdown(b *strings.Builder, p *plan.Plan) {
	for _, d := range p.Diagnostics {
		fmt.Fprintf(b, "- %s\n", wording.Escape(d.String()))
	}
	if len(p.Diagnostics) > 0 {
		b.WriteString("\n")
	}
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func write(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
