package terminal

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/history"
	"github.com/weir-gitops/weir/status/wording"
)

// Events prints a table of events, in their order.
func (p Printer) Events(events []events.Event) {
	if len(events) == 0 {
		p.line("No events.")
		return
	}
	var rows [][]tableCell
	for _, e := range events {
		rows = append(rows, cells(p.moment(e.Time), wording.Clean(e.Kind), cell(cmp.Or(e.Target, e.Source)), cell(e.Pool), cell(wording.Short(e.Revision)), wording.Clean(e.Text)))
	}
	p.table([]column{{"TIME", 0}, {"EVENT", 1}, {"TARGET", 2}, {"POOL", 0}, {"COMMIT", 0}, {"WHAT", 0}}, rows)
}

// Passes prints a table of passes, in their order.
func (p Printer) Passes(passes []history.Run) {
	if len(passes) == 0 {
		p.line("No passes.")
		return
	}
	var rows [][]tableCell
	for _, r := range passes {
		rows = append(rows, cells(p.moment(r.Time), cell(r.Target), string(r.Phase), cell(wording.Short(r.Revision)), stepCounts(r.Steps),
			time.Duration(r.Duration).Round(time.Millisecond).String(), wording.Clean(r.Text)))
	}
	p.table([]column{{"TIME", 0}, {"TARGET", 0}, {"STATE", 0}, {"COMMIT", 0}, {"STEPS", 1}, {"TOOK", 2}, {"WHAT", 0}}, rows)
}

func cells(texts ...string) (out []tableCell) {
	for _, t := range texts {
		out = append(out, plain(t))
	}
	return out
}

// moment formats a time in UTC. It is shortened if the terminal is too narrow for the full time, the pool
// and the commit.
func (p Printer) moment(t time.Time) string {
	if p.Width > 0 && p.Width < 120 && !p.Full {
		return t.UTC().Format("01-02 15:04:05")
	}
	return t.UTC().Format("2006-01-02T15:04:05Z")
}

func cell(s string) string { return cmp.Or(wording.Clean(s), "-") }

func stepCounts(c history.StepCounts) string {
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
