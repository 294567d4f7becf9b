package status

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"time"
)

// remember takes in the history of earlier runs.
func (b *Board) remember(a Archive) error {
	events, err := a.Events(Filter{Limit: keptEvents})
	if err != nil {
		return err
	}
	runs, err := a.Runs(Filter{Limit: keptRuns})
	if err != nil {
		return err
	}
	told, err := a.Told()
	if err != nil {
		return err
	}
	for _, e := range slices.Backward(events) {
		b.events.add(e)
	}
	for _, r := range slices.Backward(runs) {
		b.runs.add(r)
	}
	maps.Copy(b.told, told)
	return nil
}

// Run writes history to the archive until ctx ends. What was told before it
// returns is on the disk then.
func (b *Board) Run(ctx context.Context) error {
	if b.recorder == nil {
		<-ctx.Done()
		return nil
	}
	return b.recorder.run(ctx)
}

// tell takes in events, in the order of time, and what has been told with them.
// The board is locked.
func (b *Board) tell(events []Event, runs []Run, told map[string]Told) {
	for i, e := range events {
		e = b.redact.event(e)
		e.Level = cmp.Or(e.Level, levelOf(e.Kind))
		events[i] = e
		b.events.add(e)
		b.log.Log(context.Background(), logLevel(e.Level), "event", eventAttrs(e)...)
	}
	if b.notify != nil && len(events) > 0 {
		b.notify(events)
	}
	for _, r := range runs {
		b.runs.add(r)
	}
	for key, now := range told {
		if reflect.DeepEqual(b.told[key], now) {
			delete(told, key)
			continue
		}
		b.told[key] = now
	}
	b.recorder.add(Record{Events: events, Runs: runs, Told: told})
}

// tellSource tells what has become of a source. The board is locked.
func (b *Board) tellSource(s Source) {
	var events []Event
	told := b.told[toldOfSource(s.Name)]
	fault := ""
	if s.Error != "" {
		fault = shortHash(s.Error)
	}
	switch {
	case fault != "" && fault != told.Fault:
		events = append(events, Event{Kind: "source-failed", Text: s.Error})
	case fault == "" && told.Fault != "":
		events = append(events, Event{Kind: "source-recovered", Text: "reachable again"})
	}
	if s.Revision != told.Revision && s.Revision != "" && fault == "" {
		// Without the commit's subject: what a fetch brings may name a secret that
		// is known as one only once the commit is rendered, and an event stays.
		events = append(events, Event{Kind: "revision-seen", Revision: s.Revision, Text: "a new commit is there"})
		told.Revision = s.Revision
	}
	told.Fault = fault
	for i := range events {
		events[i].Time, events[i].Source = b.now(), s.Name
	}
	b.tell(events, nil, map[string]Told{toldOfSource(s.Name): told})
}

// toldFor is how long it is remembered what was told of a target or source that is
// gone: one that comes back soon, as after a fault of the configuration, is no news.
const toldFor = time.Hour

// miss notes what is gone of what something was told of. The board is locked.
func (b *Board) miss() {
	absent := map[string]time.Time{}
	for key := range b.told {
		absent[key] = b.now()
		if since, known := b.absent[key]; known {
			absent[key] = since
		}
	}
	for name := range b.targets {
		delete(absent, toldOfTarget(name))
	}
	for name := range b.sources {
		delete(absent, toldOfSource(name))
	}
	b.absent = absent
}

// forgetTold forgets what was told of what has been gone for long, in the archive too.
// The board is locked.
func (b *Board) forgetTold() {
	gone := map[string]Told{}
	for key, since := range b.absent {
		if b.now().Sub(since) >= toldFor {
			gone[key] = Told{}
			delete(b.told, key)
			delete(b.absent, key)
		}
	}
	if len(gone) > 0 {
		b.recorder.add(Record{Told: gone})
	}
}

func toldOfTarget(name string) string { return "target " + name }

func toldOfSource(name string) string { return "source " + name }

func logLevel(l Level) slog.Level {
	switch l {
	case LevelError:
		return slog.LevelError
	case LevelWarning:
		return slog.LevelWarn
	default:
		return slog.LevelInfo
	}
}

// eventAttrs are an event as a line of the log has it.
func eventAttrs(e Event) []any {
	out := []any{"kind", e.Kind}
	for _, a := range []struct{ key, value string }{
		{"target", e.Target}, {"source", e.Source}, {"pool", e.Pool}, {"resource", string(e.Resource)}, {"name", e.Name},
		{"revision", short(e.Revision)}, {"reason", e.Reason}, {"text", e.Text},
	} {
		if a.value != "" {
			out = append(out, a.key, a.value)
		}
	}
	for _, key := range sortedKeys(e.Facts) {
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
func (b *Board) Event(e Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.Time.IsZero() {
		e.Time = b.now()
	}
	b.tell([]Event{e}, nil, nil)
	b.watchers.changed(e.Target)
}

// Runs returns the last passes that did something, failed, or changed how a
// target stands, newest first.
func (b *Board) Runs() []Run {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.runs.newestFirst()
}

// Events returns the last events, newest first.
func (b *Board) Events() []Event {
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
