package events

import (
	"encoding/json"

	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/wording"
)

// Change is a field with its old and new value, as JSON values, null if absent. At is the file:line:column
// of its new value, empty if unknown. Words describes the values if they are IDs.
type Change struct {
	Field string `json:"field"`
	From  any    `json:"from"`
	To    any    `json:"to"`
	At    string `json:"at,omitempty"`
	Words string `json:"words,omitempty"`
}

// changesOf returns the changes of steps, shortened for an event.
func changesOf(steps []step.Step) []Change {
	var out []Change
	for _, s := range steps {
		for _, c := range s.Changes {
			if len(out) == EventChanges {
				return out
			}
			e := Change{Field: c.Field, From: bounded(c.From), To: bounded(c.To), Words: wording.Shorten(wording.Clean(c.Words), report.LongestValue)}
			if c.Origin != nil {
				e.At = c.Origin.String()
			}
			out = append(out, e)
		}
	}
	return out
}

// bounded returns a JSON value, converted to truncated text if it is long.
func bounded(v any) any {
	if raw, err := json.Marshal(v); err != nil || len(raw) > report.LongestValue {
		return report.Value(v)
	}
	return v
}
