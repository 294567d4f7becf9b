package comments

import (
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

// group contains targets whose plans make the same change: the same steps with the same fields. Names,
// counts and reasons may differ.
type group struct {
	reports []*plan.Report
	// changes are the steps, in the order of the first target's plan. Equal steps are combined.
	changes []change
}

// change is an equal change of several resources.
type change struct {
	of    []*plan.Report
	steps []step.Step
}

const (
	// mostNames is the maximum number of names in a line.
	mostNames = 3
	// shortDigest is the length of a digest in a list of plans.
	shortDigest = 12
)

// groups combines the reports with the same change, in the order of the first report of each.
func (c *comment) groups() (out []*group) {
	at := map[string]*group{}
	for _, r := range c.Reports {
		key := keyOf(r)
		g := at[key]
		if g == nil {
			g = &group{}
			at[key], out = g, append(out, g)
		}
		g.reports = append(g.reports, r)
	}
	for _, g := range out {
		g.gather()
	}
	return out
}

// keyOf identifies what a target's plan does, independent of the names of the target and its
// resources.
func keyOf(r *plan.Report) string {
	if r.Plan == nil {
		return "no plan"
	}
	var keys []string
	for _, s := range r.Plan.Steps {
		keys = append(keys, stepKey(r, s))
	}
	slices.Sort(keys)
	return strings.Join(keys, "\x00")
}

// stepKey returns a text that is equal for steps of different targets that make the same change. Names,
// reasons and numbers of instances are not part of it.
func stepKey(r *plan.Report, s step.Step) string {
	own := ownNames(r, s)
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %q %t %t %t", s.Verb, s.Resource, s.Held, s.Later, s.Disruptive, s.Instances > 0)
	if s.Drift != nil {
		fmt.Fprintf(&b, " drift %q", s.Drift.Cause)
	}
	for _, ch := range wording.Distinct(s) {
		fmt.Fprintf(&b, "\n%q %q", ch.Field, own.Replace(wording.Whole(s.Verb, ch)))
		if ch.Origin != nil {
			fmt.Fprintf(&b, " %s", wording.FileLine(*ch.Origin))
		}
	}
	return b.String()
}

// ownNames returns a replacer for the names of a step's target and resource, as in diag.List.Fold.
func ownNames(r *plan.Report, s step.Step) *strings.Replacer {
	var pairs []string
	for _, name := range []string{s.Name, s.Pool, s.LaunchConfig, r.Target} {
		if name != "" {
			pairs = append(pairs, name, "*")
		}
	}
	return strings.NewReplacer(pairs...)
}

// gather fills changes: it combines equal steps of all targets of the group.
func (g *group) gather() {
	at := map[string]int{}
	for _, r := range g.reports {
		if r.Plan == nil {
			continue
		}
		for _, s := range r.Plan.Steps {
			key := stepKey(r, s)
			n, known := at[key]
			if !known {
				n, at[key] = len(g.changes), len(g.changes)
				g.changes = append(g.changes, change{})
			}
			g.changes[n].of, g.changes[n].steps = append(g.changes[n].of, r), append(g.changes[n].steps, s)
		}
	}
}

// summary returns the numbers of the group's pools by change, in words. Without pools, SummaryWords counts the
// steps, which are equal in all plans of a group.
func (g *group) summary() string {
	if len(g.reports) == 1 || g.reports[0].Plan == nil {
		return report.SummaryWords(g.reports[0])
	}
	all := plan.Plan{Steps: g.reports[0].Plan.Steps}
	for _, r := range g.reports {
		s := r.Plan.Summary
		all.Summary.Create += s.Create
		all.Summary.Update += s.Update
		all.Summary.Rollout += s.Rollout
		all.Summary.Replace += s.Replace
		all.Summary.Delete += s.Delete
		all.Summary.Unchanged += s.Unchanged
	}
	return report.SummaryWords(&plan.Report{Plan: &all})
}

// fold writes a change and the findings about its targets. The fold is open if it is the only one.
func (c *comment) fold(g *group, only bool) {
	found := c.findingsOf(g)
	if len(g.changes) == 0 && (len(found) == 0 || c.level >= withoutUnchanged && !slices.ContainsFunc(found, finding.isError)) {
		return
	}
	open := ""
	if only {
		open = " open"
	}
	title := "<b>" + wording.HTML(visible.Clip(visible.Line(g.reports[0].Target), longestName)) + "</b>"
	if n := len(g.reports); n > 1 {
		title = fmt.Sprintf("<b>%s</b>", wording.Count(n, "target"))
	}
	fmt.Fprintf(&c.b, "<details%s>\n<summary>%s: %s</summary>\n\n", open, title, g.summary())
	if len(g.reports) > 1 {
		c.paragraph(c.appliesTo(g))
	}
	if len(g.changes) > 0 && c.level < withoutSteps {
		for _, ch := range g.changes {
			c.change(ch)
		}
		c.b.WriteString("\n")
		c.waits(g)
	}
	c.findings(found)
	if d := c.digestOf(g.reports[0]); d != "" && len(g.changes) > 0 && len(g.reports) == 1 && len(c.Reports) > 1 {
		c.paragraph("Digest " + quoted(d))
	}
	c.paragraph("</details>")
}

// appliesTo lists the targets of a group, each with the start of its plan's digest.
func (c *comment) appliesTo(g *group) string {
	var names []string
	for _, r := range g.reports {
		name := escaped(r.Target, longestName)
		if d := c.digestOf(r); len(d) > shortDigest && len(g.changes) > 0 && c.level < withoutFields {
			name += " " + quoted(d[:shortDigest])
		}
		names = append(names, name)
	}
	if c.level >= withoutSteps {
		names = append(names[:min(len(names), mostListed)], "…")[:min(len(names), mostListed+1)]
	}
	text := "Applies to " + strings.Join(names, ", ") + "."
	if c.digestOf(g.reports[0]) != "" && len(g.changes) > 0 && c.level < withoutFields {
		text += " Each name is followed by the start of its digest."
	}
	return text
}

// change writes a step with its fields, or several equal steps.
func (c *comment) change(ch change) {
	r, s := ch.of[0], ch.steps[0]
	fmt.Fprintf(&c.b, "- `%s` **%s** %s %s", wording.Mark(s.Verb), escaped(string(s.Verb), longestName), escaped(string(s.Resource), longestName), quoted(s.Name))
	if more := len(ch.steps) - 1; more > 0 {
		c.b.WriteString(others(ch))
	}
	if reason := ch.reason(); reason != "" {
		c.b.WriteString(": " + escaped(reason, longestText))
	}
	if len(s.Pools) > 0 && len(ch.steps) == 1 {
		c.b.WriteString(", for " + escaped(strings.Join(s.Pools, ", "), longestText))
	}
	if s.Held != "" {
		c.b.WriteString(" **(held: " + escaped(ch.heldText(), longestText) + ")**")
	} else if s.Later {
		c.b.WriteString(" (in a later pass)")
	}
	c.b.WriteString("\n")
	if s.Drift != nil {
		text := "  - corrects a change made outside Git"
		if s.Drift.Cause != "" {
			text += ": " + escaped(s.Drift.Cause, longestText)
		}
		c.b.WriteString(text + "\n")
	}
	if s.Disruptive && s.Instances > 0 {
		c.b.WriteString("  - **" + ch.ends(r) + "**\n")
	}
	c.fields(s)
}

// others lists the further resources of a change.
func others(ch change) string {
	var names []string
	for _, s := range ch.steps[1:min(len(ch.steps), mostNames)] {
		names = append(names, quoted(s.Name))
	}
	text := ""
	if len(names) > 0 {
		text = ", " + strings.Join(names, ", ")
	}
	if n := len(ch.steps) - mostNames; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// reason returns the common reason of all steps of a change, or "" if they differ.
func (ch change) reason() string {
	for _, s := range ch.steps {
		if s.Reason != ch.steps[0].Reason {
			return ""
		}
	}
	return ch.steps[0].Reason
}

func (ch change) heldText() string {
	for _, s := range ch.steps {
		if s.HeldReason != ch.steps[0].HeldReason {
			return wording.Clean(string(s.Held))
		}
	}
	return wording.Held(ch.steps[0])
}

// ends describes the number of machines that a change ends, and the batches if it is a single step.
func (ch change) ends(r *plan.Report) string {
	s := ch.steps[0]
	if len(ch.steps) > 1 {
		s.Instances = 0
		for _, one := range ch.steps {
			s.Instances += one.Instances
		}
		s.Do = nil // each pool has its own batches
	}
	if wording.Replaces(s) {
		return "replaces " + report.RollOf(r, s).Words(true)
	}
	return wording.Ends(s)
}

// waits describes what held steps wait for, a line for each kind of wait.
func (c *comment) waits(g *group) {
	type line struct {
		text    string
		targets int
	}
	at := map[string]int{}
	var lines []line
	for _, r := range g.reports {
		if r.Plan == nil {
			continue
		}
		for _, w := range wording.WaitsOf(r.Target, r.Plan.Steps) {
			key := strings.ReplaceAll(w.Text(), r.Target, "*")
			n, known := at[key]
			if !known {
				n, at[key] = len(lines), len(lines)
				lines = append(lines, line{text: w.Text()})
			}
			lines[n].targets++
		}
	}
	if len(lines) == 0 {
		return
	}
	c.paragraph("**Waiting**") // separates the lists, too
	for _, l := range lines {
		text := "- " + escaped(l.text, longestText)
		if l.targets > 1 {
			text += fmt.Sprintf(" (and the same in %s)", wording.Count(l.targets-1, "more target"))
		}
		c.b.WriteString(text + "\n")
	}
	c.b.WriteString("\n")
}

// finding is a finding and the targets that have it.
type finding struct {
	diag.Folded
	targets []string
}

func (f finding) isError() bool { return f.Severity == diag.Error }

// findingsOf returns the findings of a group that fit and that the base does not also have, the most serious
// first. A finding that several targets share is listed once.
func (c *comment) findingsOf(g *group) (out []finding) {
	targets := map[string][]string{}
	key := func(d diag.Diagnostic) string {
		return fmt.Sprintf("%d %q %q %q %q %s", d.Severity, d.Code, d.Object, d.Summary, d.Detail, wording.FileLine(d.Position))
	}
	var all diag.List
	for _, r := range g.reports {
		for _, d := range c.fresh(r, c.shown(report.Diagnostics(r))) {
			k := key(d)
			if len(targets[k]) == 0 {
				all = append(all, d)
			}
			if !slices.Contains(targets[k], r.Target) {
				targets[k] = append(targets[k], r.Target)
			}
		}
	}
	for _, f := range c.shown(all).Fold() {
		out = append(out, finding{f, targets[key(f.Diagnostic)]})
	}
	return out
}

// findings writes the findings about the targets of a group.
func (c *comment) findings(list []finding) {
	if len(list) == 0 {
		return
	}
	c.paragraph("**Found while planning**") // separates the lists, too
	for _, f := range list {
		c.diagnostic(f.Diagnostic)
		if also := f.Also(); also != "" {
			c.b.WriteString("  - " + escaped(also, longestText) + "\n")
		}
		if n := len(f.targets); n > 1 {
			text := strings.Join(f.targets[:min(n, mostNames)], ", ")
			if n > mostNames {
				text += fmt.Sprintf(" and %d more", n-mostNames)
			}
			c.b.WriteString("  - in " + wording.Count(n, "target") + ": " + escaped(text, longestText) + "\n")
		}
	}
	c.b.WriteString("\n")
}

// standing writes one line about the findings that the base also has.
func (c *comment) standing() {
	counts := map[string]int{}
	var codes []string
	n := 0
	for _, r := range c.Reports {
		for _, d := range report.Diagnostics(r) {
			if d.Severity == diag.Error || !slices.Contains(c.Before[r.Target], report.FindingKey(d)) {
				continue
			}
			n++
			if counts[d.Code]++; counts[d.Code] == 1 {
				codes = append(codes, d.Code)
			}
		}
	}
	if n == 0 {
		return
	}
	slices.Sort(codes)
	var parts []string
	for _, code := range codes[:min(len(codes), mostListed)] {
		part := quoted(code)
		if counts[code] > 1 {
			part += fmt.Sprintf(" %d times", counts[code])
		}
		parts = append(parts, part)
	}
	if len(codes) > mostListed {
		parts = append(parts, "…")
	}
	base := "the base"
	if c.BaseRef != "" {
		base = quoted(c.BaseRef)
	}
	c.paragraph(fmt.Sprintf("%s that already exist in %s: %s.", wording.Count(n, "finding"), base, strings.Join(parts, ", ")))
}
