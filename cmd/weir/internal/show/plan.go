package show

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/wording"
)

// sign is the mark in front of a step, and its colour.
func sign(v plan.Verb) (mark, color string) {
	mark = wording.Mark(v)
	return mark, map[string]string{"+": green, "-": red, "±": yellow, "~": cyan}[mark]
}

// Plan prints what a pass would do to one target.
func (p Printer) Plan(r *plan.Report) {
	p.headline(r)
	pl := PlanOf(r)
	for _, s := range pl.Steps {
		p.step(s)
	}
	p.remarks(pl)
	p.summary(pl)
}

func (p Printer) headline(r *plan.Report) {
	facts := []string{r.Region}
	if r.Account != "" {
		facts = append(facts, "account "+r.Account)
	}
	if r.Revision != "" {
		facts = append(facts, "revision "+short(r.Revision)+" "+Clean(r.Subject))
	}
	if r.Suspended {
		facts = append(facts, "suspended")
	}
	p.line(p.paint(bold, Clean(r.Target)), "  ", p.paint(dim, strings.Join(facts, "  ")))
}

func short(revision string) string { return revision[:min(len(revision), 7)] }

func (p Printer) step(s plan.Step) {
	mark, color := sign(s.Verb)
	text := fmt.Sprintf("%s %s %s", s.Verb, s.Resource, Clean(s.Name))
	if s.Reason != "" {
		text += ": " + Clean(s.Reason)
	}
	if len(s.Pools) > 0 {
		text += ", for " + Clean(strings.Join(s.Pools, ", "))
	}
	if s.Disruptive && s.Instances > 0 {
		text += " (" + Count(s.Instances, "instance") + ")"
	}
	if s.Held != "" {
		text += " " + p.paint(yellow, "[held: "+wording.Held(s)+"]")
	} else if s.Later {
		text += " " + p.paint(dim, "[in a later pass]")
	}
	p.line("  ", p.paint(color, mark), " ", text)
	p.changes(s)
}

// changes prints the fields of a step in columns.
func (p Printer) changes(s plan.Step) {
	const widest = 72
	shown := wording.Distinct(s)
	rows := make([][2]string, len(shown))
	var fieldWidth, valueWidth int
	for i, c := range shown {
		rows[i] = [2]string{Clean(c.Field) + ":", wording.Transition(s.Verb, c)}
		fieldWidth = max(fieldWidth, utf8.RuneCountInString(rows[i][0]))
		if n := utf8.RuneCountInString(rows[i][1]); n <= widest {
			valueWidth = max(valueWidth, n)
		}
	}
	for i, c := range shown {
		text := "      " + pad(rows[i][0], fieldWidth) + " " + rows[i][1]
		if c.Origin != nil && c.Origin.Known() {
			text = "      " + pad(rows[i][0], fieldWidth) + " " + pad(rows[i][1], valueWidth) + "   " + p.paint(dim, "("+Clean(wording.Place(*c.Origin))+")")
		}
		p.line(text)
	}
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}

func (p Printer) remarks(pl *plan.Plan) {
	for _, d := range pl.Diagnostics {
		p.diagnostic("  ", d)
	}
}

// summary is the last line of a target's plan.
func (p Printer) summary(pl *plan.Plan) {
	if !pl.Empty() {
		p.line("  ", Summary(pl))
		return
	}
	if pl.Diagnostics.HasErrors() {
		p.line("  ", p.paint(red, "Nothing can be planned"), ": ", CountDiagnostics(pl.Diagnostics), ".")
		return
	}
	p.line("  ", emptyPlan(pl))
}

// emptyPlan says that a plan is empty.
func emptyPlan(pl *plan.Plan) string {
	return "Nothing to do. Nothing changes: " + Count(pl.Summary.Unchanged, "pool") + " as wanted."
}

// Summary counts a plan's pools in words, with how many steps are held.
func Summary(pl *plan.Plan) string {
	s := pl.Summary
	var parts []string
	for _, c := range []struct {
		n    int
		what string
	}{
		{s.Create, "to create"},
		{s.Update, "to update"},
		{s.Rollout, "to roll out"},
		{s.Replace, "to replace"},
		{s.Delete, "to delete"},
		{s.Unchanged, "unchanged"},
	} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	text := "Plan: " + Count(len(pl.Steps), "step")
	if len(parts) > 0 {
		text += "; pools: " + strings.Join(parts, ", ")
	}
	if held := len(pl.Steps) - pl.Runnable(); held > 0 {
		text += "; " + Count(held, "step") + " held"
	}
	if n := pl.Diagnostics.Count(diag.Error); n > 0 {
		text += "; " + Count(n, "error")
	}
	return text + "."
}
