package current

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/events/kinds"
	"github.com/weir-gitops/weir/status/history"
	"github.com/weir-gitops/weir/status/live"
	"github.com/weir-gitops/weir/status/report"
)

// The history in memory is bounded. It suffices for a page, and memory does not grow with the uptime of the
// daemon.
const (
	keptRuns   = 200
	keptEvents = 500
)

// Activity contains the last events and passes. It writes them to the log and to the archive, and passes
// events to Options.Notify.
type Activity struct {
	redact report.Redact
	now    func() time.Time
	notify func([]events.Event)
	log    *slog.Logger
	pages  *live.Watchers
	// recorder is nil if there is no archive.
	recorder *recorder

	mu     sync.RWMutex
	runs   ring[history.Run]
	events ring[events.Event]
	known  announcements
}

func newActivity(o Options, pages *live.Watchers) *Activity {
	a := &Activity{
		redact: o.Redact, now: o.Now, notify: o.Notify, log: o.Logger, pages: pages,
		runs: ring[history.Run]{max: keptRuns}, events: ring[events.Event]{max: keptEvents}, known: announcements{last: map[string]events.Known{}},
	}
	if o.Archive != nil {
		a.recorder = newRecorder(o.Archive, o.Logger)
		if err := a.restore(o.Archive); err != nil {
			o.Logger.Error("cannot read the history of earlier processes", "error", err)
		}
	}
	return a
}

// restore reads the newest events and passes of earlier processes, and the announcements, from the archive.
func (a *Activity) restore(from Archive) error {
	events, err := from.Events(history.Filter{Limit: keptEvents})
	if err != nil {
		return err
	}
	runs, err := from.Runs(history.Filter{Limit: keptRuns})
	if err != nil {
		return err
	}
	known, err := from.Known()
	if err != nil {
		return err
	}
	for _, e := range slices.Backward(events) {
		a.events.add(e)
	}
	for _, r := range slices.Backward(runs) {
		a.runs.add(r)
	}
	a.known.restore(known)
	return nil
}

// Run writes history to the archive until ctx ends. When it returns, everything that was added
// before is on the disk.
func (a *Activity) Run(ctx context.Context) error {
	if a.recorder == nil {
		<-ctx.Done()
		return nil
	}
	return a.recorder.run(ctx)
}

// Add adds an event that is not based on a report, such as a reloaded configuration.
func (a *Activity) Add(e events.Event) {
	a.publish([]events.Event{e}, nil, nil)
	a.pages.Changed(e.Target)
}

// publish adds events in the order of time, passes, and the states that the events announce. An event
// without a time gets the current time.
func (a *Activity) publish(list []events.Event, runs []history.Run, known map[string]events.Known) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, e := range list {
		if e.Time.IsZero() {
			e.Time = a.now()
		}
		e = events.Redacted(a.redact, e)
		e.Level = cmp.Or(e.Level, kinds.LevelOf(e.Kind))
		list[i] = e
		a.events.add(e)
		a.log.Log(context.Background(), lineLevel(e), "event", eventAttrs(e)...)
	}
	if a.notify != nil && len(list) > 0 {
		a.notify(list)
	}
	for _, r := range runs {
		a.runs.add(r)
	}
	a.recorder.add(history.Record{Events: list, Runs: runs, Known: a.known.update(known)})
}

// announced returns the last announced state of a target or source.
func (a *Activity) announced(key string) events.Known {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.known.last[key]
}

// setAnnounced sets the state that another daemon has announced for a target or source. The archive does
// not get it.
func (a *Activity) setAnnounced(key string, known events.Known) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known.last[key] = known
}

// configure notes which of the announced targets and sources are no longer configured.
func (a *Activity) configure(sources []Source, targets []Target) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known.configure(sources, targets, a.now())
}

// ForgetRemoved forgets the announced states of targets and sources that were removed long ago, in
// the archive too.
func (a *Activity) ForgetRemoved() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if gone := a.known.forget(a.now()); len(gone) > 0 {
		a.recorder.add(history.Record{Known: gone})
	}
}

// Runs returns the last passes that did something, failed, or changed the state of a target, newest
// first.
func (a *Activity) Runs() []history.Run {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.runs.newestFirst()
}

// Events returns the last events, newest first.
func (a *Activity) Events() []events.Event {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.events.newestFirst()
}

// QueryEvents returns the events that match a filter, newest first. With an archive, these include
// events of earlier processes.
func (a *Activity) QueryEvents(f history.Filter) ([]events.Event, error) {
	if a.recorder == nil {
		return history.Some(a.Events(), f, f.WantsEvent), nil
	}
	if err := a.recorder.flush(); err != nil {
		return nil, err
	}
	return a.recorder.archive.Events(f)
}

// QueryRuns returns the passes that match a filter, newest first. With an archive, these include
// passes of earlier processes.
func (a *Activity) QueryRuns(f history.Filter) ([]history.Run, error) {
	if a.recorder == nil {
		return history.Some(a.Runs(), f, f.WantsRun), nil
	}
	if err := a.recorder.flush(); err != nil {
		return nil, err
	}
	return a.recorder.archive.Runs(f)
}

// Unwritten returns the number of events and passes that are not in the archive yet.
func (a *Activity) Unwritten() int { return a.recorder.waiting() }

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
