package show

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/weir-gitops/weir/status"
)

// Events prints a table of events, in their order.
func (p Printer) Events(events []status.Event) {
	if len(events) == 0 {
		p.line("No events.")
		return
	}
	w := tabwriter.NewWriter(p.W, 0, 0, 2, ' ', 0)
	row(w, "TIME", "EVENT", "TARGET", "POOL", "COMMIT", "WHAT")
	for _, e := range events {
		row(w, moment(e.Time), Clean(e.Kind), cell(cmp.Or(e.Target, e.Source)), cell(e.Pool), cell(shortRevision(e.Revision)), Clean(e.Text))
	}
	_ = w.Flush()
}

// Passes prints a table of passes, in their order.
func (p Printer) Passes(passes []status.Run) {
	if len(passes) == 0 {
		p.line("No passes.")
		return
	}
	w := tabwriter.NewWriter(p.W, 0, 0, 2, ' ', 0)
	row(w, "TIME", "TARGET", "STATE", "COMMIT", "STEPS", "TOOK", "WHAT")
	for _, r := range passes {
		row(w, moment(r.Time), cell(r.Target), string(r.Phase), cell(shortRevision(r.Revision)), stepCounts(r.Steps),
			time.Duration(r.Duration).Round(time.Millisecond).String(), Clean(r.Text))
	}
	_ = w.Flush()
}

// row writes the cells of a table. Its error is that of the writer below, which
// the caller learns when it closes standard output.
func row(w *tabwriter.Writer, cells ...string) {
	_, _ = fmt.Fprintln(w, strings.Join(cells, "\t"))
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

func cell(s string) string { return cmp.Or(Clean(s), "-") }

func shortRevision(r string) string { return r[:min(7, len(r))] }

func stepCounts(c status.StepCounts) string {
	var out []string
	for _, n := range []struct {
		count int
		word  string
	}{{c.Done, "done"}, {c.Failed, "failed"}, {c.Skipped, "skipped"}, {c.Held, "held"}} {
		if n.count > 0 {
			out = append(out, fmt.Sprintf("%d %s", n.count, n.word))
		}
	}
	return cmp.Or(strings.Join(out, ", "), "-")
}
