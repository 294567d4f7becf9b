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

// Fold is a timeline as a fold of a comment, in Markdown.
func Fold(t *timeline.Timeline) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<details><summary>What this would do over time: %s</summary>\n\n", wording.HTML(wording.Shorten(Headline(t), 300)))
	for _, d := range t.Doubts {
		fmt.Fprintf(&b, "- :warning: %s\n", wording.Escape(wording.Shorten(wording.Clean(d), 300)))
	}
	if len(t.Milestones) > 0 {
		b.WriteString("\n| After | What |\n| ---: | --- |\n")
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
	fmt.Fprintf(&b, "\n%s to AWS, %d throttled.\n", wording.Count(calls, "call"), throttled)
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
