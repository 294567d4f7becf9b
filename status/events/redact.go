package events

import (
	"maps"
	"slices"

	"github.com/weir-gitops/weir/status/report"
)

// Redacted returns a copy of an event without secrets.
func Redacted(f report.Redact, e Event) Event {
	e.Reason, e.Text = f.Text(e.Reason), f.Text(e.Text)
	e.Changes = slices.Clone(e.Changes)
	for i, c := range e.Changes {
		c.Field, c.From, c.To, c.Words = f.Text(c.Field), f.Value(c.From), f.Value(c.To), f.Text(c.Words)
		e.Changes[i] = c
	}
	e.Facts = maps.Clone(e.Facts)
	for k, v := range e.Facts {
		e.Facts[k] = f.Text(v)
	}
	return e
}
