package comments

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/visible"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/wording"
)

// table writes a row for each affected target, and a column for each thing that
// happens to any.
func (c *comment) table() {
	if len(c.Reports) == 0 {
		return
	}
	names := []string{"Target", "Account, region", "Create", "Update", "Roll", "Replace", "Delete", "Held", "Problems"}
	used := make([]bool, len(names))
	rows := make([][]string, len(c.Reports))
	for i, r := range c.Reports {
		rows[i] = cells(r)
		for k, text := range rows[i] {
			used[k] = used[k] || text != ""
		}
	}
	row := func(cells []string) {
		for k, text := range cells {
			if used[k] {
				c.b.WriteString("| " + text + " ")
			}
		}
		c.b.WriteString("|\n")
	}
	row(names)
	row([]string{"---", "---", "--:", "--:", "--:", "--:", "--:", "--:", "---"})
	for _, cells := range rows[:c.rows] {
		row(cells)
	}
	if n := len(rows) - c.rows; n > 0 {
		rest := make([]string, len(names))
		rest[0] = "and " + wording.Count(n, "more target")
		row(rest)
	}
	c.b.WriteString("\n")
}

// cells are a target's row. A zero is left out, so that what happens stands out.
func cells(r *plan.Report) []string {
	var s plan.Summary
	held := 0
	if r.Plan != nil {
		s = r.Plan.Summary
		held = len(r.Plan.Steps) - r.Plan.Runnable()
	}
	out := []string{escaped(r.Target, longestName), escaped(report.AccountRegion(r), longestName)}
	for _, n := range []int{s.Create, s.Update, s.Rollout, s.Replace, s.Delete, held} {
		text := ""
		if n > 0 {
			text = fmt.Sprint(n)
		}
		out = append(out, text)
	}
	return append(out, report.Problems(r))
}

// fold writes the steps and diagnostics of a target, if there are any. It is open
// where there is one target.
func (c *comment) fold(r *plan.Report) {
	list := c.shown(report.Diagnostics(r))
	empty := r.Plan == nil || r.Plan.Empty()
	if empty && (len(list) == 0 || c.level >= withoutUnchanged && !list.HasErrors()) {
		return
	}
	open := ""
	if len(c.Reports) == 1 {
		open = " open"
	}
	fmt.Fprintf(&c.b, "<details%s>\n<summary><b>%s</b>: %s</summary>\n\n", open, wording.HTML(visible.Clip(visible.Line(r.Target), longestName)), report.SummaryWords(r))
	if !empty && c.level < withoutSteps {
		for _, s := range r.Plan.Steps {
			c.step(r, s)
		}
		c.b.WriteString("\n")
		c.waits(r)
	}
	if len(list) > 0 {
		c.paragraph("**Found while planning**") // which also separates the lists
	}
	for _, f := range list.Fold() {
		c.diagnostic(f.Diagnostic)
		if also := f.Also(); also != "" {
			c.b.WriteString("  - " + escaped(also, longestText) + "\n")
		}
	}
	if len(list) > 0 {
		c.b.WriteString("\n")
	}
	if d := c.digestOf(r); d != "" && !empty && len(c.Reports) > 1 {
		c.paragraph("Digest " + quoted(d))
	}
	c.paragraph("</details>")
}

// waits say what held steps wait for, a line for each wait.
func (c *comment) waits(r *plan.Report) {
	waits := wording.WaitsOf(r.Target, r.Plan.Steps)
	if len(waits) == 0 {
		return
	}
	c.paragraph("**What waits**") // which also separates the lists
	for _, w := range waits {
		c.b.WriteString("- " + escaped(w.Text(), longestText) + "\n")
	}
	c.b.WriteString("\n")
}

// digestOf is a target's digest. Steps may have been redacted since it was made.
func (c *comment) digestOf(r *plan.Report) string {
	if c.Digests != nil || r.Plan == nil {
		return c.Digests[r.Target]
	}
	return r.Plan.Digest()
}

// step is a step with its fields.
func (c *comment) step(r *plan.Report, s step.Step) {
	fmt.Fprintf(&c.b, "- `%s` **%s** %s %s", wording.Mark(s.Verb), escaped(string(s.Verb), longestName), escaped(string(s.Resource), longestName), quoted(s.Name))
	if s.Reason != "" {
		c.b.WriteString(": " + escaped(s.Reason, longestText))
	}
	if len(s.Pools) > 0 {
		c.b.WriteString(", for " + escaped(strings.Join(s.Pools, ", "), longestText))
	}
	if s.Held != "" {
		c.b.WriteString(" **(held: " + escaped(wording.Held(s), longestText) + ")**")
	} else if s.Later {
		c.b.WriteString(" (in a later pass)")
	}
	c.b.WriteString("\n")
	if s.Drift != nil {
		text := "  - puts right what changed outside Git"
		if s.Drift.Cause != "" {
			text += ": " + escaped(s.Drift.Cause, longestText)
		}
		c.b.WriteString(text + "\n")
	}
	if s.Disruptive && s.Instances > 0 {
		if wording.Replaces(s) {
			fmt.Fprintf(&c.b, "  - **replaces %s**\n", report.RollOf(r, s).Words(true))
		} else {
			fmt.Fprintf(&c.b, "  - **%s**\n", wording.Ends(s))
		}
	}
	c.fields(s)
}

func (c *comment) fields(s step.Step) {
	changes := wording.Distinct(s)
	if c.level >= withoutFields {
		if len(changes) > 0 {
			fmt.Fprintf(&c.b, "  - %s\n", wording.Count(len(changes), "field"))
		}
		return
	}
	for _, ch := range changes {
		fmt.Fprintf(&c.b, "  - %s: %s", quoted(ch.Field), wording.Code(wording.Transition(s.Verb, ch)))
		if ch.Origin != nil && ch.Origin.Known() && c.level < withoutOrigins {
			c.b.WriteString(" (" + c.linked(*ch.Origin) + ")")
		}
		c.b.WriteString("\n")
	}
}

// shown are the diagnostics that there is room for, the gravest first.
func (c *comment) shown(list diag.List) diag.List {
	out := slices.Clone(list)
	slices.SortStableFunc(out, func(a, b diag.Diagnostic) int { return cmp.Compare(a.Severity, b.Severity) })
	return slices.DeleteFunc(out, func(d diag.Diagnostic) bool {
		return c.level >= withoutNotes && d.Severity == diag.Info || c.level >= withoutSteps && d.Severity != diag.Error
	})
}

// diagnostic is a finding with what more there is to say of it.
func (c *comment) diagnostic(d diag.Diagnostic) {
	label := d.Severity.String()
	switch {
	case d.Code == "newer-image":
		label = "newer image"
	case d.Severity == diag.Info:
		label = "note"
	}
	fmt.Fprintf(&c.b, "- **%s** ", label)
	if d.Known() {
		c.b.WriteString(c.linked(d.Position) + ": ")
	}
	c.b.WriteString(escaped(d.Summary, longestText))
	if d.Object != "" && !strings.Contains(d.Summary, d.Object) {
		c.b.WriteString(" (" + escaped(strings.TrimSpace(d.Object+" "+d.Field), longestText) + ")")
	}
	if d.Code != "" {
		c.b.WriteString(" " + quoted(d.Code))
	}
	c.b.WriteString("\n")
	if d.Detail != "" {
		c.b.WriteString("  - → " + escaped(d.Detail, longestText) + "\n")
	}
	for i, r := range d.Related {
		if c.level >= withoutOrigins || i == mostListed {
			break
		}
		text := escaped(r.Message, longestText)
		if r.Known() {
			text = c.linked(r.Position) + ": " + text
		}
		c.b.WriteString("  - see " + text + "\n")
	}
}
