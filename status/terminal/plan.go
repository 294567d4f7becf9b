package terminal

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/wording"
)

// sign returns the symbol in front of a step, and its colour.
func sign(v step.Verb) (mark, color string) {
	mark = wording.Mark(v)
	return mark, map[string]string{"+": green, "-": red, "±": yellow, "~": cyan}[mark]
}

// Plan prints the plan of one target, with a single write.
func (p Printer) Plan(r *plan.Report) {
	var all bytes.Buffer
	defer func(w io.Writer) { _, _ = w.Write(all.Bytes()) }(p.W)
	p.W = &all
	p.headline(r)
	pl := r.Shown()
	for _, s := range pl.Steps {
		p.step(s)
	}
	p.waits(pl)
	p.remarks(pl)
	p.stays(r)
	p.summary(pl)
}

// stays names the pools that weir leaves unchanged because of an error in Git, with their resources in AWS.
func (p Printer) stays(r *plan.Report) {
	const most = 8
	var said []string
	pools := map[string][]string{}
	for i := range r.Pools {
		s := &r.Pools[i]
		does := s.KeptMessage()
		if does == "" {
			continue
		}
		if pools[does] == nil {
			said = append(said, does)
		}
		pools[does] = append(pools[does], wording.Clean(s.Namespace+"/"+s.Name)+" ("+wording.Count(int(s.Replicas), "machine")+")")
	}
	for _, does := range said {
		names := pools[does]
		text := wording.Count(len(names), "pool") + " kept: " + strings.Join(names[:min(len(names), most)], ", ")
		if more := len(names) - most; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		p.line("  ", p.paint(yellow, text), ": ", wording.Clean(does))
	}
}

// waits prints what held steps wait for, a line for each wait.
func (p Printer) waits(pl *plan.Plan) {
	for _, w := range wording.WaitsOf(pl.Target, pl.Steps) {
		p.line("  ", p.paint(yellow, w.Text()))
	}
}

func (p Printer) headline(r *plan.Report) {
	facts := []string{r.Region}
	if r.Account != "" {
		facts = append(facts, "account "+r.Account)
	}
	if r.Revision != "" {
		facts = append(facts, "revision "+wording.Short(r.Revision)+" "+wording.Clean(r.Subject))
	}
	if r.Suspended {
		facts = append(facts, "suspended")
	}
	p.line(p.paint(bold, wording.Clean(r.Target)), "  ", p.paint(dim, strings.Join(facts, "  ")))
}

// step prints a planned step with its changes.
func (p Printer) step(s step.Step) {
	mark, color := sign(s.Verb)
	text := fmt.Sprintf("%s %s %s", s.Verb, s.Resource, wording.Clean(s.Name))
	if s.Reason != "" {
		text += ": " + wording.Clean(s.Reason)
	}
	if len(s.Pools) > 0 {
		text += ", for " + wording.Clean(strings.Join(s.Pools, ", "))
	}
	if s.Disruptive && s.Instances > 0 {
		text += " (" + wording.Count(s.Instances, "instance") + ")"
	}
	if s.Held != "" {
		text += " " + p.paint(yellow, "[held: "+wording.Held(s)+"]")
	} else if s.Later {
		text += " " + p.paint(dim, "[in a later pass]")
	}
	p.line("  ", p.paint(color, mark), " ", text)
	p.changes(s)
}

// changes prints the fields of a step in columns. On a terminal, values are truncated so that their origins
// stay visible.
func (p Printer) changes(s step.Step) {
	const widest = 72
	shown := wording.Distinct(s)
	rows := make([][2]string, len(shown))
	room := make([]int, len(shown)) // the width available for the value, in characters
	var fieldWidth, valueWidth int
	for i, c := range shown {
		rows[i] = [2]string{wording.Clean(c.Field) + ":", wording.Whole(s.Verb, c)}
		fieldWidth = max(fieldWidth, utf8.RuneCountInString(rows[i][0]))
	}
	for i, c := range shown {
		room[i] = widest
		if p.Width > 0 && !p.Full {
			room[i] = max(narrowest, p.Width-fieldWidth-len("       ")-originWidth(c))
			if !wording.HasARN(rows[i][1]) { // a user who approves an ARN must see all of it
				rows[i][1] = cut(rows[i][1], room[i])
			}
		}
		// A row without an origin must not push other origins aside.
		if n := utf8.RuneCountInString(rows[i][1]); n <= widest && originWidth(c) > 0 {
			valueWidth = max(valueWidth, n)
		}
	}
	for i, c := range shown {
		text := "      " + pad(rows[i][0], fieldWidth) + " " + rows[i][1]
		if originWidth(c) > 0 {
			text = "      " + pad(rows[i][0], fieldWidth) + " " + pad(rows[i][1], min(valueWidth, room[i])) + "   " + p.paint(dim, "("+wording.Clean(wording.FileLine(*c.Origin))+")")
		}
		p.line(text)
	}
}

// originWidth returns the width of a change's origin, which follows its value.
func originWidth(c step.Change) int {
	if c.Origin == nil || !c.Origin.Known() {
		return 0
	}
	return utf8.RuneCountInString(wording.FileLine(*c.Origin)) + len("   ()")
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}

// remarks prints the findings, the most serious last, so that it is next to the summary.
func (p Printer) remarks(pl *plan.Plan) {
	folded := pl.Diagnostics.Fold()
	slices.SortStableFunc(folded, func(a, b diag.Folded) int { return cmp.Compare(b.Severity, a.Severity) })
	for _, f := range folded {
		p.diagnostic("  ", f.Diagnostic)
		if also := f.Also(); also != "" {
			p.line("      ", wording.Clean(also))
		}
	}
}

// Errors prints the last line of several plans: the number of errors, and their targets, codes and objects.
// It prints nothing if there are no errors.
func (p Printer) Errors(reports []*plan.Report) {
	const most = 8
	var which []string
	for _, r := range reports {
		for _, d := range r.Shown().Diagnostics {
			if d.Severity != diag.Error {
				continue
			}
			text := cmp.Or(d.Code, "failed")
			if _, name, _ := strings.Cut(d.Object, " "); name != "" {
				text += " " + name
			}
			which = append(which, wording.Clean(r.Target+": "+text))
		}
	}
	if len(which) == 0 {
		return
	}
	count := wording.Count(len(which), "error")
	if len(which) > most {
		which = append(which[:most], "…")
	}
	p.line(p.paint(red, count), ": ", strings.Join(which, "; "), ".")
}

// summary prints the last line of a target's plan.
func (p Printer) summary(pl *plan.Plan) {
	if !pl.Empty() {
		p.line("  ", summary(pl))
		return
	}
	if pl.Diagnostics.HasErrors() {
		p.line("  ", p.paint(red, nothing(pl)), ": ", CountDiagnostics(pl.Diagnostics), ".")
		return
	}
	p.line("  ", emptyPlan(pl))
}

// nothing describes the consequence of an empty plan with errors.
func nothing(pl *plan.Plan) string {
	if n := pl.Summary.Unchanged; n > 0 {
		return "Not everything can be planned (" + wording.Count(n, "pool") + " as wanted)"
	}
	return "Nothing can be planned"
}

// emptyPlan returns the text for an empty plan.
func emptyPlan(pl *plan.Plan) string {
	return "Nothing to do. Nothing changes: " + wording.Count(pl.Summary.Unchanged, "pool") + " as wanted."
}

// summary returns the numbers of pools in a plan, and the number of held steps.
func summary(pl *plan.Plan) string {
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
	text := "Plan: " + wording.Count(len(pl.Steps), "step")
	if len(parts) > 0 {
		text += "; pools: " + strings.Join(parts, ", ")
	}
	if held := len(pl.Steps) - pl.Runnable(); held > 0 {
		text += "; " + wording.Count(held, "step") + " held"
	}
	if n := pl.Diagnostics.Count(diag.Error); n > 0 {
		text += "; " + wording.Count(n, "error")
	}
	return text + "."
}
