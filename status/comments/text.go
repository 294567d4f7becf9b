package comments

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/render/visible"
	"github.com/weir-gitops/weir/status/forecast"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/wording"
)

// TextOptions configures the text of a comment.
type TextOptions struct {
	Instance string
	Forge    forge.Profile
	// Limit is the maximum size in bytes; 0 means the forge's limit. A limit below 1,000 counts as 1,000.
	Limit int
}

// The levels of shortening for a comment that would be too long. Each level omits one more part of the
// plan, the least important first.
const (
	wholePlan = iota
	withoutUnchanged
	withoutNotes
	withoutForecast
	withoutOrigins
	withoutFields
	withoutSteps
	tableAlone
)

var leftOut = [...]string{
	withoutUnchanged: "targets without a change",
	withoutNotes:     "notes",
	withoutForecast:  "the simulation",
	withoutOrigins:   "the origins of values",
	withoutFields:    "fields",
	withoutSteps:     "steps and warnings",
	tableAlone:       "everything but the table",
}

const (
	leastLimit = 1000
	// mostListed is the maximum length of lists that are not part of the plan.
	mostListed = 20
	// The maximum lengths of texts, in characters.
	longestHeadline = 600
	longestText     = 600
	longestName     = 256 // the longest name in AWS has 255
)

// Text returns the comment of a pull request as Markdown: the marker, a headline, a table of the targets, a
// fold with steps and diagnostics for each change, and how to approve. Equal pull requests have equal text.
// The text is never longer than the limit.
func Text(p report.Pull, o TextOptions) string {
	c := newComment(p, o)
	limit := max(cmp.Or(o.Limit, o.Forge.Limits.Comment), leastLimit)
	for ; c.level <= tableAlone; c.level++ {
		c.rows = len(p.Reports)
		if text := c.text(); len(text) <= limit {
			return text
		}
	}
	c.level = tableAlone
	// Find the maximum number of rows that fit.
	low, high := 0, len(p.Reports)
	for low < high {
		c.rows = (low + high + 1) / 2
		if len(c.text()) <= limit {
			low = c.rows
		} else {
			high = c.rows - 1
		}
	}
	c.rows = low
	if text := c.text(); len(text) <= limit {
		return text
	}
	// Only the headline fits; shorten it as needed.
	for n := longestHeadline; ; n /= 2 {
		text := c.marker() + c.headline(n) + "\n\n" + c.shortened()
		if len(text) <= limit || n < 10 {
			return text
		}
		c.PageURL = "" // the URL alone may be too long
	}
}

// comment is a comment that is being written.
type comment struct {
	report.Pull
	o     TextOptions
	links forge.Links // of the pull request's repository
	level int         // of shortening, from wholePlan to tableAlone
	rows  int         // of the table
	b     strings.Builder
}

func newComment(p report.Pull, o TextOptions) *comment {
	return &comment{Pull: p, o: o, links: o.Forge.LinksBeside(report.SafeURL(p.WebURL))}
}

func (c *comment) marker() string {
	m := report.PullMarker(c.o.Instance, c.Source)
	if digestForm.MatchString(c.Digest) {
		m += report.DigestMarker(c.Digest)
	}
	return m + "\n"
}

var digestForm = lazyregexp.New(`^[0-9a-f]{64}$`)

// headline returns the first visible line.
func (c *comment) headline(longest int) string {
	lead, more := c.Headline()
	if more == "" {
		return "**" + wording.Escape(lead) + ".**"
	}
	return "**" + wording.Escape(lead) + ":** " + wording.Escape(visible.Clip(visible.Line(more), longest)) + "."
}

// text returns the whole comment at the current level of shortening.
func (c *comment) text() string {
	c.b.Reset()
	c.b.WriteString(c.marker())
	c.paragraph(c.headline(longestHeadline))
	if c.Stale != "" {
		c.paragraph("> **This plan may be out of date:** " + escaped(c.Stale, longestText) + ".")
	}
	c.differences()
	c.table()
	if c.level < tableAlone {
		groups := c.groups()
		for _, g := range groups {
			c.fold(g, len(groups) == 1)
		}
		c.standing()
	}
	c.foreseen()
	c.goneTargets()
	c.footer()
	return strings.TrimRight(c.b.String(), "\n") + "\n"
}

// opening returns the start of the comment of a pull request: its state, without its plan. If the comment
// of an ended pull request already starts with it, weir does not write the comment again, because that
// would remove the plan.
func opening(p report.Pull, o TextOptions) string {
	c := newComment(p, o)
	c.b.WriteString(c.marker())
	c.paragraph(c.headline(longestHeadline))
	c.differences()
	return c.b.String()
}

// paragraph writes a block of text.
func (c *comment) paragraph(text string) { c.b.WriteString(text + "\n\n") }

// escaped returns text from outside, escaped on one line, with at most limit characters.
func escaped(s string, limit int) string { return wording.Escape(visible.Clip(visible.Line(s), limit)) }

// quoted returns text from outside as a code span.
func quoted(s string) string { return wording.Code(visible.Clip(visible.Line(s), longestName)) }

// differences describes how the applied plan differs from the reviewed one.
func (c *comment) differences() {
	if c.State != report.PullMerged {
		return
	}
	switch {
	case len(c.Differs)+len(c.Uncompared) > 0 || c.Digest == "":
	case c.Compared:
		c.paragraph("The plan of the merge matches the reviewed plan.")
	default:
		c.paragraph("The plan of the merge has not been compared with the reviewed plan yet.")
	}
	c.lines(c.Differs)
	if len(c.Differs) > 0 && len(c.Uncompared) > 0 {
		c.paragraph("Not compared:")
	}
	c.lines(c.Uncompared)
}

// lines writes a list of at most mostListed items.
func (c *comment) lines(list []string) {
	for i, line := range list {
		if i == mostListed {
			fmt.Fprintf(&c.b, "- and %d more\n", len(list)-i)
			break
		}
		c.b.WriteString("- " + escaped(line, longestText) + "\n")
	}
	if len(list) > 0 {
		c.b.WriteString("\n")
	}
}

// foreseen writes the forecast of the change over time, in a fold.
func (c *comment) foreseen() {
	switch f := c.Forecast; {
	case f == nil || c.level >= withoutForecast:
	case f.Timeline != nil:
		c.paragraph(strings.TrimRight(forecast.Fold(f.Timeline), "\n"))
	default:
		c.paragraph(strings.TrimRight(forecast.Elsewhere(f.Command, f.Failed), "\n"))
	}
}

func (c *comment) goneTargets() {
	if len(c.Gone) == 0 {
		return
	}
	var names []string
	for _, name := range c.Gone[:min(mostListed, len(c.Gone))] {
		names = append(names, escaped(name, longestName))
	}
	text := "Removed targets: " + strings.Join(names, ", ")
	if n := len(c.Gone) - mostListed; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	c.paragraph(text + ". Their resources in AWS stay, and weir reports them.")
}

// footer writes the commits of the plan, how it is approved, and a link to the whole plan.
func (c *comment) footer() {
	if c.level > wholePlan {
		c.paragraph(c.shortened())
	}
	digest := ""
	if c.State == report.PullPlanned || c.State == report.PullMerged && c.Digest != "" {
		if named := c.approval(); !named {
			digest = c.Digest
		}
	}
	var facts []string
	if c.HeadSHA != "" && c.State != report.PullMerged && c.State != report.PullClosed {
		facts = append(facts, "Commit "+c.commit(c.HeadSHA))
	}
	if c.BaseSHA != "" {
		base := "base " + c.commit(c.BaseSHA)
		if c.BaseRef != "" {
			base += " of " + quoted(c.BaseRef)
		}
		facts = append(facts, base)
	}
	if c.MergeSHA != "" {
		facts = append(facts, "merged as "+c.commit(c.MergeSHA))
	}
	if digest != "" {
		facts = append(facts, "digest "+quoted(digest))
	}
	if page := report.SafeURL(c.PageURL); page != "" {
		facts = append(facts, "[the whole plan]("+page+")")
	}
	if len(facts) > 0 {
		text := strings.Join(facts, ", ")
		c.paragraph(strings.ToUpper(text[:1]) + text[1:] + ".")
	}
}

// approval describes how the plan can be or was approved. It reports whether its text contains the digest.
func (c *comment) approval() (named bool) {
	switch {
	case c.Digest == "":
		c.paragraph("This plan was made without secrets. It has no digest and cannot be approved.")
	case c.State == report.PullMerged && c.AsReviewed && c.Approved == "":
		// Approvals can also be given in other places; only the pass knows all of them.
		c.paragraph("Steps without an approval are held: `weir status` lists them and says how to approve them.")
	case c.State == report.PullMerged:
	case c.Approved != "":
		c.paragraph("Approved by " + escaped(c.Approved, longestName) + ".")
	case c.AsReviewed:
		c.paragraph("**The plan is held until it is approved.** Write the comment `weir approve`, or run " + wording.Code("weir approve "+visible.Line(c.Digest)) + ".")
		return true
	}
	return false
}

// shortened describes the omitted parts, and where to read them.
func (c *comment) shortened() string {
	where := "Run `weir plan` to see the whole plan."
	if page := report.SafeURL(c.PageURL); page != "" {
		where = "[The whole plan](" + page + ") is on weir's page."
	}
	if c.level == tableAlone {
		return "Shortened to fit: " + leftOut[tableAlone] + " is left out. " + where
	}
	var out []string
	for level := withoutUnchanged; level <= c.level; level++ {
		if level != withoutForecast || c.Forecast != nil {
			out = append(out, leftOut[level])
		}
	}
	return "Shortened to fit: " + strings.Join(out, ", ") + " are left out. " + where
}
