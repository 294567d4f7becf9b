package current

import (
	"log/slog"
	"maps"
	"slices"

	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/events/kinds"
	"github.com/weir-gitops/weir/status/wording"
)

func logLevel(l kinds.Level) slog.Level {
	switch l {
	case kinds.Error:
		return slog.LevelError
	case kinds.Warning:
		return slog.LevelWarn
	default:
		return slog.LevelInfo
	}
}

// lineLevel returns the log level of an event. The loop that reads a source already logs its failure, so
// the events of the source and of its targets would only repeat it.
func lineLevel(e events.Event) slog.Level {
	if e.Kind == "source-failed" || e.Facts["cause"] == events.SourceCause {
		return slog.LevelDebug
	}
	return logLevel(e.Level)
}

// eventAttrs returns the attributes of an event's line in the log.
func eventAttrs(e events.Event) []any {
	out := []any{"kind", e.Kind}
	for _, a := range []struct{ key, value string }{
		{"target", e.Target}, {"source", e.Source}, {"pool", e.Pool}, {"resource", string(e.Resource)}, {"name", e.Name},
		{"revision", wording.Short(e.Revision)}, {"reason", e.Reason}, {"text", e.Text},
	} {
		if a.value != "" {
			out = append(out, a.key, a.value)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(e.Facts)) {
		out = append(out, key, e.Facts[key])
	}
	if len(e.Changes) > 0 {
		fields := make([]string, len(e.Changes))
		for i, c := range e.Changes {
			fields[i] = c.Field
		}
		out = append(out, "fields", fields)
	}
	return out
}
