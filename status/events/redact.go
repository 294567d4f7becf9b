package events

import (
	"maps"
	"slices"

	"github.com/weir-gitops/weir/status/report"
)

// Redacted is an event of which everything may be shown.
func Redacted(f report.Redact, e Event) Event {
	e.Reason, e.Text = f.Text(e.Reason), f.Text(e.Text)
	e.Changes = slices.Clone(e.Changes)
	for i, c := range e.Changes {
		e.Changes[i].From, e.Changes[i].To, e.Changes[i].Words = f.Value(c.From), f.Value(c.To), f.Text(c.Words)
	}
	e.Facts = maps.Clone(e.Facts)
	for k, v := range e.Facts {
		e.Facts[k] = f.Text(v)
	}
	return e
}
