package current

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/events/kinds"
	"github.com/weir-gitops/weir/status/history"
	"github.com/weir-gitops/weir/status/wording"
)

// remember takes in the history of earlier runs.
func (b *State) remember(a Archive) error {
	events, err := a.Events(history.Filter{Limit: keptEvents})
	if err != nil {
		return err
	}
	runs, err := a.Runs(history.Filter{Limit: keptRuns})
	if err != nil {
		return err
	}
	known, err := a.Known()
	if err != nil {
		return err
	}
	for _, e := range slices.Backward(events) {
		b.events.add(e)
	}
	for _, r := range slices.Backward(runs) {
		b.runs.add(r)
	}
	maps.Copy(b.known, known)
	return nil
}

// Run writes history to the archive until ctx ends. Once it returns, all that was
// announced before is on the disk.
func (b *State) Run(ctx context.Context) error {
	if b.recorder == nil {
		<-ctx.Done()
		return nil
	}
	return b.recorder.run(ctx)
}

// publish adds events, in the order of time, and what they announced. The state is locked.
func (b *State) publish(list []events.Event, runs []history.Run, known map[string]events.Known) {
	for i, e := range list {
		e = events.Redacted(b.redact, e)
		e.Level = cmp.Or(e.Level, kinds.LevelOf(e.Kind))
		list[i] = e
		b.events.add(e)
		b.log.Log(context.Background(), lineLevel(e), "event", eventAttrs(e)...)
	}
	if b.notify != nil && len(list) > 0 {
		b.notify(list)
	}
	for _, r := range runs {
		b.runs.add(r)
	}
	for key, now := range known {
		if reflect.DeepEqual(b.known[key], now) {
			delete(known, key)
			continue
		}
		b.known[key] = now
	}
	b.recorder.add(history.Record{Events: list, Runs: runs, Known: known})
}

// publishSource announces the change of a source. The state is locked.
func (b *State) publishSource(s Source) {
	var list []events.Event
	known := b.known[sourceKey(s.Name)]
	fault := ""
	if s.Error != "" {
		fault = events.ShortHash(s.Error)
	}
	switch {
	case fault != "" && fault != known.Fault:
		list = append(list, events.Event{Kind: "source-failed", Text: s.Error})
	case fault == "" && known.Fault != "":
		list = append(list, events.Event{Kind: "source-recovered", Text: "reachable again"})
	}
	if s.Revision != known.Revision && s.Revision != "" && fault == "" {
		// Without the commit's subject: what a fetch brings may name a secret that
		// is known as one only once the commit is rendered, and an event stays.
		list = append(list, events.Event{Kind: "revision-seen", Revision: s.Revision, Text: "a new commit was found"})
		known.Revision = s.Revision
	}
	known.Fault = fault
	for i := range list {
		list[i].Time, list[i].Source = b.Now(), s.Name
	}
	b.publish(list, nil, map[string]events.Known{sourceKey(s.Name): known})
}

// knownFor is the time that the state remembers what was announced of a target or source after it
// is gone: if it comes back soon, as after a fault of the configuration, that is no news.
const knownFor = time.Hour

// miss notes which announced targets and sources are gone. The state is locked.
func (b *State) miss() {
	absent := map[string]time.Time{}
	for key := range b.known {
		absent[key] = b.Now()
		if since, known := b.absent[key]; known {
			absent[key] = since
		}
	}
	for name := range b.targets {
		delete(absent, targetKey(name))
	}
	for name := range b.sources {
		delete(absent, sourceKey(name))
	}
	b.absent = absent
}

// forgetGone forgets what was announced of targets and sources that were removed long ago, in the
// archive too. The state is locked.
func (b *State) forgetGone() {
	gone := map[string]events.Known{}
	for key, since := range b.absent {
		if b.Now().Sub(since) >= knownFor {
			gone[key] = events.Known{}
			delete(b.known, key)
			delete(b.absent, key)
		}
	}
	if len(gone) > 0 {
		b.recorder.add(history.Record{Known: gone})
	}
}

func targetKey(name string) string { return "target " + name }

func sourceKey(name string) string { return "source " + name }

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

// lineLevel is the level of an event's line in the log. The loop that reads a source logs its
// failure, which neither the event nor those of the source's targets repeat.
func lineLevel(e events.Event) slog.Level {
	if e.Kind == "source-failed" || e.Facts["cause"] == events.SourceCause {
		return slog.LevelDebug
	}
	return logLevel(e.Level)
}

// eventAttrs are an event in the form of a line of the log.
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

// Event adds an event that no report shows, such as a reloaded configuration.
func (b *State) Event(e events.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.Time.IsZero() {
		e.Time = b.Now()
	}
	b.publish([]events.Event{e}, nil, nil)
	b.watchers.Changed(e.Target)
}

// Runs returns the last passes that did something, failed, or changed how a
// target stands, newest first.
func (b *State) Runs() []history.Run {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.runs.newestFirst()
}

// Events returns the last events, newest first.
func (b *State) Events() []events.Event {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.events.newestFirst()
}

// ring keeps the last max values.
type ring[T any] struct {
	max    int
	values []T
}

func (r *ring[T]) add(v T) {
	if len(r.values) == r.max {
		copy(r.values, r.values[1:])
		r.values[len(r.values)-1] = v
		return
	}
	r.values = append(r.values, v)
}

func (r *ring[T]) newestFirst() []T {
	out := slices.Clone(r.values)
	slices.Reverse(out)
	return out
}
