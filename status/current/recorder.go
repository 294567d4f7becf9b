package current

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/history"
)

// Archive keeps history over restarts. It bounds its size by itself. Its methods may be called by
// several goroutines.
type Archive interface {
	// Append adds a record, all of it or nothing, and it is on the disk then.
	Append(history.Record) error
	// Events and Runs return what a filter wants, newest first.
	Events(history.Filter) ([]events.Event, error)
	Runs(history.Filter) ([]history.Run, error)
	// Known returns what was announced, by target or source.
	Known() (map[string]events.Known, error)
}

// gather is the time that the recorder waits for more before it writes: a pass over many targets is
// then a few writes, and a process that is killed loses no more than this of its history.
const gather = 100 * time.Millisecond

// maxPending bounds what waits for an archive that cannot be written.
const maxPending = 10_000

// recorder writes history behind the back of the passes.
type recorder struct {
	archive Archive
	log     *slog.Logger
	wake    chan struct{}

	mu      sync.Mutex
	pending history.Record
	writing sync.Mutex
	failing bool // guarded by writing: the last write failed, and that was said
}

func newRecorder(a Archive, log *slog.Logger) *recorder {
	return &recorder{archive: a, log: log, wake: make(chan struct{}, 1)}
}

// add queues a record, to be written soon. It never blocks on the disk; nil does
// nothing.
func (r *recorder) add(rec history.Record) {
	if r == nil || rec.Empty() {
		return
	}
	r.mu.Lock()
	r.pending = join(r.pending, rec)
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// join puts one record after another. Where they are too many, the oldest go.
func join(a, b history.Record) history.Record {
	a.Events = append(a.Events, b.Events...)
	a.Runs = append(a.Runs, b.Runs...)
	a.Events = a.Events[max(0, len(a.Events)-maxPending):]
	a.Runs = a.Runs[max(0, len(a.Runs)-maxPending):]
	if a.Known == nil {
		a.Known = map[string]events.Known{}
	}
	for k, v := range b.Known {
		a.Known[k] = v
	}
	return a
}

// run writes until ctx ends, and then the remaining records.
func (r *recorder) run(ctx context.Context) error {
	for {
		select {
		case <-r.wake:
		case <-ctx.Done():
			return r.flush()
		}
		timer := time.NewTimer(gather)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return r.flush()
		}
		_ = r.flush() // said in the log, and tried again with what comes next
	}
}

// flush writes the waiting records. Records that cannot be written stay in the queue.
func (r *recorder) flush() error {
	r.writing.Lock()
	defer r.writing.Unlock()
	r.mu.Lock()
	rec := r.pending
	r.pending = history.Record{}
	r.mu.Unlock()
	if rec.Empty() {
		return nil
	}
	err := r.archive.Append(rec)
	if err != nil {
		r.mu.Lock()
		r.pending = join(rec, r.pending)
		r.mu.Unlock()
		if !r.failing {
			r.log.Error("cannot write history, keeping it in memory", "error", err)
		}
	} else if r.failing {
		r.log.Info("history is written again")
	}
	r.failing = err != nil
	return err
}

// QueryEvents returns the events that a filter wants, newest first, with those of
// earlier runs where there is an archive.
func (b *State) QueryEvents(f history.Filter) ([]events.Event, error) {
	if b.recorder == nil {
		return history.Some(b.Events(), f, f.WantsEvent), nil
	}
	if err := b.recorder.flush(); err != nil {
		return nil, err
	}
	return b.recorder.archive.Events(f)
}

// QueryRuns is QueryEvents for passes.
func (b *State) QueryRuns(f history.Filter) ([]history.Run, error) {
	if b.recorder == nil {
		return history.Some(b.Runs(), f, f.WantsRun), nil
	}
	if err := b.recorder.flush(); err != nil {
		return nil, err
	}
	return b.recorder.archive.Runs(f)
}

// Unwritten counts the events and passes that are not in the archive yet.
func (b *State) Unwritten() int {
	r := b.recorder
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pending.Events) + len(r.pending.Runs)
}
