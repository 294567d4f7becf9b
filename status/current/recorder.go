package current

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/history"
)

// Archive stores history across restarts. It bounds its own size, and is safe for concurrent use.
type Archive interface {
	// Append adds a record atomically. When it returns, the record is on the disk.
	Append(history.Record) error
	// Events and Runs return the events and passes that match a filter, newest first.
	Events(history.Filter) ([]events.Event, error)
	Runs(history.Filter) ([]history.Run, error)
	// Known returns the last announced states, by target or source.
	Known() (map[string]events.Known, error)
}

// gather is the time that the recorder waits for more records before it writes. A pass over many targets
// then causes only a few writes, and a killed process loses at most this much history.
const gather = 100 * time.Millisecond

// maxPending bounds the records that wait while the archive cannot be written.
const maxPending = 10_000

// recorder writes history to an archive in the background, so that no pass waits for the disk.
type recorder struct {
	archive Archive
	log     *slog.Logger
	wake    chan struct{}

	mu      sync.Mutex
	pending history.Record
	writing sync.Mutex
	failing bool // guarded by writing: the last write failed, and the log says so
}

func newRecorder(a Archive, log *slog.Logger) *recorder {
	return &recorder{archive: a, log: log, wake: make(chan struct{}, 1)}
}

// add queues a record for the next write. It never waits for the disk. A nil recorder does nothing.
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

// join appends one record to another. If there are too many, it drops the oldest.
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
		_ = r.flush() // it logs a failure, and keeps the records for the next flush
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

// waiting returns the number of events and passes that are not in the archive yet. Without an
// archive, r is nil and the number is 0.
func (r *recorder) waiting() int {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pending.Events) + len(r.pending.Runs)
}
