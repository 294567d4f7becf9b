package forecast

import (
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/reconciler/simulate/timeline"
	"github.com/weir-gitops/weir/status/wording"
)

// What a comment has room for.
const (
	mostFolded = 12
	mostWaits  = 6
)

// Elsewhere says where it can be found out what a change would do over time, as a line of
// Markdown.
func Elsewhere(command string) string {
	return "What this would do over time takes longer to be found out than a plan waits: run " + wording.Code(wording.Clean(command)) + ".\n"
}

// Fold is a timeline as a fold of a comment, in Markdown.
func Fold(t *timeline.Timeline) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<details>\n<summary><b>Over time</b>: %s</summary>\n\n", wording.HTML(wording.Shorten(Headline(t), 300)))
	for _, d := range t.Doubts {
		fmt.Fprintf(&b, "- :warning: %s\n", wording.Escape(wording.Shorten(wording.Clean(d), 300)))
	}
	if len(t.Doubts) > 0 {
		b.WriteString("\n")
	}
	if len(t.Milestones) > 0 {
		b.WriteString("| After | What |\n| ---: | --- |\n")
		for _, m := range t.Milestones[:min(len(t.Milestones), mostFolded)] {
			fmt.Fprintf(&b, "| %s | %s |\n", clock(m.At), wording.Escape(wording.Shorten(milestone(m), 160)))
		}
		if left := len(t.Milestones) - mostFolded + t.MilestonesLeft; left > 0 {
			fmt.Fprintf(&b, "| | and %d more |\n", left)
		}
	}
	calls, throttled := 0, 0
	for _, c := range t.Calls {
		calls, throttled = calls+c.Calls, throttled+c.Throttled
	}
	if len(t.Milestones) > 0 {
		b.WriteString("\n")
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
	fmt.Fprintf(&b, "\nAssumed: %s. `weir simulate` takes other assumptions.\n\n</details>\n", strings.Join(said, "; "))
	return b.String()
}
