package comments

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/forecast"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/wording"
)

// table writes a row for each affected target, and a column for each kind of change that occurs.
func (c *comment) table() {
	if len(c.Reports) == 0 {
		return
	}
	names := []string{"Target", "Account, region", "Create", "Update", "Roll", "Replace", "Delete", "Machines", "Batches", "Wave", "Held", "Problems"}
	used := make([]bool, len(names))
	rows := make([][]string, len(c.Reports))
	for i, r := range c.Reports {
		rows[i] = c.cells(r)
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
	row([]string{"---", "---", "--:", "--:", "--:", "--:", "--:", "--:", "--:", "---", "--:", "---"})
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

// cells returns a target's row, with the cells in the order of the names in table. Zeros are omitted, so that
// changes stand out.
func (c *comment) cells(r *plan.Report) []string {
	var s plan.Summary
	held := 0
	if r.Plan != nil {
		s = r.Plan.Summary
		held = len(r.Plan.Steps) - r.Plan.Runnable()
	}
	machines, batches := machinesAndBatches(r)
	number := func(n int) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprint(n)
	}
	out := []string{escaped(r.Target, longestName), escaped(report.AccountRegion(r), longestName)}
	for _, n := range []int{s.Create, s.Update, s.Rollout, s.Replace, s.Delete, machines} {
		out = append(out, number(n))
	}
	return append(out, batches, escaped(c.waveOf(r), longestName), number(held), c.problems(r))
}

// mostCells is the maximum number of items in a cell.
const mostCells = 3

// machinesAndBatches returns the number of machines that a target's plan ends. For each pool that it rolls, it also
// returns the number of batches, if AWS documents it.
func machinesAndBatches(r *plan.Report) (machines int, batches string) {
	if r.Plan == nil {
		return 0, ""
	}
	var list []string
	for _, s := range r.Plan.Steps {
		if !s.Disruptive {
			continue
		}
		machines += s.Instances
		if n := report.RollOf(r, s).Batches(); n > 0 {
			list = append(list, fmt.Sprint(n))
		}
	}
	if len(list) > mostCells {
		list = append(list[:mostCells], "…")
	}
	return machines, strings.Join(list, ", ")
}

// waveOf describes the waves in which a target's machines are replaced. It uses the forecast, or otherwise
// only says that they wait for an earlier wave.
func (c *comment) waveOf(r *plan.Report) string {
	if c.Forecast != nil && c.Forecast.Timeline != nil {
		return strings.Join(forecast.WavesOf(c.Forecast.Timeline, r.Target), ", ")
	}
	if r.Plan != nil && slices.ContainsFunc(r.Plan.Steps, func(s step.Step) bool { return s.Held == step.HeldWave }) {
		return "a later one"
	}
	return ""
}

// problems counts a target's errors, and its warnings that the base does not also have.
func (c *comment) problems(r *plan.Report) string {
	list := report.Diagnostics(r)
	var out []string
	for _, s := range []diag.Severity{diag.Error, diag.Warning} {
		if n := c.fresh(r, list).Count(s); n > 0 {
			out = append(out, wording.Count(n, s.String()))
		}
	}
	return strings.Join(out, ", ")
}

// fresh returns the findings of a target that the base does not also have. Errors are always included.
func (c *comment) fresh(r *plan.Report, list diag.List) diag.List {
	before := c.Before[r.Target]
	return slices.DeleteFunc(slices.Clone(list), func(d diag.Diagnostic) bool {
		return d.Severity != diag.Error && slices.Contains(before, report.FindingKey(d))
	})
}

// digestOf returns a target's digest. The steps may have been redacted since it was computed.
func (c *comment) digestOf(r *plan.Report) string {
	if c.Digests != nil || r.Plan == nil {
		return c.Digests[r.Target]
	}
	return r.Plan.Digest()
}

// fields writes the changed fields of a step. At higher levels of shortening it omits their places, or
// writes only their number.
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

// shown returns the diagnostics that fit, the most serious first.
func (c *comment) shown(list diag.List) diag.List {
	out := slices.Clone(list)
	slices.SortStableFunc(out, func(a, b diag.Diagnostic) int { return cmp.Compare(a.Severity, b.Severity) })
	return slices.DeleteFunc(out, func(d diag.Diagnostic) bool {
		return c.level >= withoutNotes && d.Severity == diag.Info || c.level >= withoutSteps && d.Severity != diag.Error
	})
}

// diagnostic writes a finding with its details.
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
