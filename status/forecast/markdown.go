package forecast

import (
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/reconciler/simulate/timeline"
	"github.com/weir-gitops/weir/status/wording"
)

// The limits of a comment.
const (
	mostFolded = 12
	mostWaits  = 6
)

// Elsewhere returns a line of Markdown that replaces a missing timeline. It gives the reason, including
// failed, and the command that shows the timeline.
func Elsewhere(command, failed string) string {
	if failed != "" {
		return ":warning: **Over time**: the simulation failed: " + wording.Escape(wording.Shorten(wording.Clean(failed), 300)) + ". Run " + wording.Code(wording.Clean(command)) + " to try again.\n"
	}
	return "The simulation takes longer than a plan may wait. To see what this change does over time, run " + wording.Code(wording.Clean(command)) + ".\n"
}

// writeSteps writes the actions of pools as a table, and problems and waits below it.
func writeSteps(b *strings.Builder, t *timeline.Timeline) {
	list := actions(t)
	if len(list) > 0 {
		b.WriteString("| From | To | What | Machines |\n| ---: | ---: | --- | --- |\n")
	}
	for _, a := range list[:min(len(list), mostFolded)] {
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", clock(a.begins), a.until(), wording.Escape(wording.Shorten(a.text(), 300)), a.counted())
	}
	if left := len(list) - mostFolded; left > 0 {
		fmt.Fprintf(b, "| | | and %d more | |\n", left)
	}
	if len(list) > 0 {
		b.WriteString("\n")
	}
	told := 0
	for _, m := range t.Milestones {
		if m.Kind != "pool-fails" && m.Kind != "rollout" || told == mostFolded {
			continue
		}
		told++
		fmt.Fprintf(b, "- after %s: %s\n", clock(m.At), wording.Escape(wording.Shorten(milestone(m), 160)))
	}
	if told > 0 {
		b.WriteString("\n")
	}
}

// Fold returns a timeline as a fold for a comment, in Markdown.
func Fold(t *timeline.Timeline) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<details>\n<summary><b>Over time</b>: %s</summary>\n\n", wording.HTML(wording.Shorten(Headline(t), 300)))
	for _, d := range t.Doubts {
		fmt.Fprintf(&b, "- :warning: %s\n", wording.Escape(wording.Shorten(wording.Clean(d), 300)))
	}
	if len(t.Doubts) > 0 {
		b.WriteString("\n")
	}
	writeSteps(&b, t)
	calls, throttled := 0, 0
	for _, c := range t.Calls {
		calls, throttled = calls+c.Calls, throttled+c.Throttled
	}
	fmt.Fprintf(&b, "Calls to AWS: %d, throttled: %d.\n", calls, throttled)
	if len(t.Waiting) > 0 {
		b.WriteString("\n")
	}
	for _, w := range t.Waiting[:min(len(t.Waiting), mostWaits)] {
		fmt.Fprintf(&b, "- %s\n", wording.Escape(wording.Shorten(wait(t, w), 300)))
	}
	var said []string
	for _, a := range t.Assumptions {
		said = append(said, wording.Escape(strings.TrimSpace(a.What+" "+a.Value)))
	}
	fmt.Fprintf(&b, "\nAssumed: %s. Run `weir simulate` to change these assumptions.\n\n</details>\n", strings.Join(said, "; "))
	return b.String()
}
