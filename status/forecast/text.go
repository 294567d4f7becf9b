// Package forecast presents a timeline.Timeline, the effect of a change over time, with the same words as
// text, as Markdown for a comment, and as a picture.
package forecast

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/simulate/timeline"
	"github.com/weir-gitops/weir/status/wording"
)

// The maximum numbers of items in a text.
const (
	mostRows       = 14
	mostMilestones = 40
	mostBuckets    = 12
	barWidth       = 40
)

// clock formats a time, such as 4m30s or 1d 2h0m0s.
func clock(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second)).Round(time.Second)
	if days := d / (24 * time.Hour); days > 0 {
		return fmt.Sprintf("%dd %s", days, compact(d-days*24*time.Hour))
	}
	return compact(d)
}

// compact formats a duration without zero units, such as 1h or 4m30s.
func compact(d time.Duration) string {
	text := d.String()
	for _, end := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, end) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// Headline summarizes a timeline in one sentence.
func Headline(t *timeline.Timeline) string {
	if t.Changed == 0 && t.Outcome == timeline.Converged {
		return "nothing changes"
	}
	said := fmt.Sprintf("%s, %s", wording.Count(t.Changed, "pool")+" changed", wording.Count(t.Launched, "machine")+" started")
	if t.MostAbove > 0 {
		said += fmt.Sprintf(", at most %d more than desired (after %s)", t.MostAbove, clock(t.AboveAt))
	}
	switch t.Outcome {
	case timeline.Converged:
		return "done after " + clock(t.End) + ": " + said
	case timeline.Waits:
		if t.Changed == 0 {
			return "nothing changes until somebody acts: " + waitLine(t)
		}
		return "changes that need no action are done after " + clock(t.End) + ": " + said
	case timeline.Failed:
		return "it fails: " + said + " by " + clock(t.End)
	}
	return "incomplete (" + wording.Clean(t.Why) + "): until then " + said
}

func waitLine(t *timeline.Timeline) string {
	for _, w := range t.Waiting {
		if w.Until == 0 {
			return wait(t, w)
		}
	}
	return ""
}

// wait describes what waits, for what and until when.
func wait(t *timeline.Timeline, w timeline.Wait) string {
	text := fmt.Sprintf("target %s: %s (%s)", wording.Clean(w.Target), wording.Count(w.Pools, "pool")+" held", wording.Clean(w.Hold))
	if w.Why != "" {
		text += ": " + wording.Clean(w.Why)
	}
	switch {
	case w.Until > 0:
		text += fmt.Sprintf("; from %s to %s", clock(w.From), clock(w.Until))
		if !t.Began.IsZero() {
			text += " (" + moment(t, w.Until) + ")"
		}
	case w.Person:
		text += "; until somebody releases it"
	}
	return text
}

// moment returns the time of day of a point in the timeline.
func moment(t *timeline.Timeline, seconds float64) string {
	return t.Began.Add(time.Duration(seconds * float64(time.Second))).UTC().Format("Mon 2 Jan 15:04 MST")
}

// Text writes a timeline for readers. It shows only the first milestones and buckets; the JSON contains all
// of them.
func Text(out io.Writer, t *timeline.Timeline) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", Headline(t))
	for _, d := range t.Doubts {
		fmt.Fprintf(&b, "! %s\n", wording.Clean(d))
	}
	if len(t.Milestones) > 0 {
		fmt.Fprintf(&b, "\nmilestones\n")
		for _, m := range t.Milestones[:min(len(t.Milestones), mostMilestones)] {
			fmt.Fprintf(&b, "  %10s  %s\n", clock(m.At), milestone(m))
		}
		if left := len(t.Milestones) - mostMilestones; left > 0 {
			fmt.Fprintf(&b, "  %10s  and %d more: -o json has them\n", "", left+t.MilestonesLeft)
		}
	}
	if rows := rows(t.Points); len(rows) > 0 && t.Changed > 0 {
		most := int32(1)
		for _, p := range rows {
			most = max(most, p.Old+p.New+p.Starting+p.Ending)
		}
		fmt.Fprintf(&b, "\nmachines of these pools: # as before, = new, + starting, - ending\n")
		for _, p := range rows {
			fmt.Fprintf(&b, "  %10s  %-*s %s\n", clock(p.At), barWidth+1, bar(p, most), counts(p))
		}
	}
	if len(t.Calls) > 0 && t.Changed > 0 {
		fmt.Fprintf(&b, "\ncalls to AWS, by its rate limits\n")
		for _, c := range t.Calls[:min(len(t.Calls), mostBuckets)] {
			fmt.Fprintf(&b, "  %s %-42s calls: %5d, writes: %4d, throttled: %d\n", wording.Clean(c.Region), wording.Clean(c.Name), c.Calls, c.Writes, c.Throttled)
		}
		if left := len(t.Calls) - mostBuckets; left > 0 {
			fmt.Fprintf(&b, "  and %d more limits: -o json has them\n", left)
		}
		if t.RateWait > 0 {
			fmt.Fprintf(&b, "  calls wait %s for these limits\n", clock(t.RateWait))
		}
	}
	if len(t.Waiting) > 0 {
		fmt.Fprintf(&b, "\nwaits\n")
		for _, w := range t.Waiting {
			fmt.Fprintf(&b, "  %s\n", wait(t, w))
		}
	}
	fmt.Fprintf(&b, "\nassumed\n")
	for _, a := range t.Assumptions {
		fmt.Fprintf(&b, "  %s\n", assumption(a))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func assumption(a timeline.Assumption) string {
	text := a.What
	if a.Value != "" {
		text += " " + a.Value
	}
	if a.Flag != "" {
		text += " (" + a.Flag + ")"
	}
	return text
}

func milestone(m timeline.Milestone) string {
	who := wording.Clean(strings.TrimSpace(m.Target + " " + m.Pool))
	if who == "" {
		return wording.Clean(m.Text)
	}
	return who + ": " + wording.Clean(m.Text)
}

// Milestones returns the first milestones of a timeline as lines, and the number of further ones.
func Milestones(t *timeline.Timeline) (lines []string, more int) {
	for _, m := range t.Milestones[:min(len(t.Milestones), mostMilestones)] {
		lines = append(lines, clock(m.At)+"  "+milestone(m))
	}
	return lines, len(t.Milestones) - len(lines) + t.MilestonesLeft
}

// Waits describes what waits, one line each.
func Waits(t *timeline.Timeline) (lines []string) {
	for _, w := range t.Waiting {
		lines = append(lines, wait(t, w))
	}
	return lines
}

// Assumed returns the assumptions, one line each.
func Assumed(t *timeline.Timeline) (lines []string) {
	for _, a := range t.Assumptions {
		lines = append(lines, assumption(a))
	}
	return lines
}

// rows selects some points, evenly spread, including the first and the last.
func rows(points []timeline.Point) (out []timeline.Point) {
	if len(points) <= mostRows {
		return points
	}
	for i := range mostRows {
		out = append(out, points[i*(len(points)-1)/(mostRows-1)])
	}
	return out
}

func bar(p timeline.Point, most int32) string {
	var b strings.Builder
	sum, drawn := int32(0), 0
	for _, part := range []struct {
		n    int32
		sign string
	}{{p.Old, "#"}, {p.New, "="}, {p.Starting, "+"}, {p.Ending, "-"}} {
		sum += part.n
		to := int(int64(barWidth) * int64(sum) / int64(most))
		b.WriteString(strings.Repeat(part.sign, to-drawn))
		drawn = to
	}
	return b.String()
}

// counts returns the non-zero counts of a point.
func counts(p timeline.Point) string {
	var out []string
	for _, part := range []struct {
		n    int32
		what string
	}{{p.Old, "before"}, {p.New, "new"}, {p.Starting, "starting"}, {p.Ending, "ending"}} {
		if part.n > 0 {
			out = append(out, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}
