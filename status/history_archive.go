package status

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// Archive keeps history over restarts. It bounds what it keeps by itself. Its
// methods may be called by several goroutines.
type Archive interface {
	// Append adds a record, all of it or nothing, and it is on the disk then.
	Append(Record) error
	// Events and Runs return what a filter wants, newest first.
	Events(Filter) ([]Event, error)
	Runs(Filter) ([]Run, error)
	// Told returns what was told, by what it was told of.
	Told() (map[string]Told, error)
}

// Record is what is added to an archive at once, in the order of time.
type Record struct {
	Events []Event
	Runs   []Run
	// Told replaces what was told of some targets and sources.
	Told map[string]Told
}

func (r *Record) empty() bool { return len(r.Events)+len(r.Runs)+len(r.Told) == 0 }

// Filter says which events or runs are wanted. Its zero value wants the newest
// DefaultLimit of all.
type Filter struct {
	// About are targets and pools, these as namespace/name or name; any if empty.
	About []string
	// Kinds are events' kinds, any if empty. Runs have none.
	Kinds []string
	// Levels are events' levels, any if empty. Runs have none.
	Levels []Level
	// Target and Pool, where they are set, must both be those of an event; Pool is
	// namespace/name. Of a run the target alone counts.
	Target, Pool string
	// Since leaves out what was before, if it is not zero, and Until what was after.
	Since, Until time.Time
	// Skip leaves out as many of the newest that are wanted; MaxSkip at most.
	Skip int
	// Limit is how many at most; 0 stands for DefaultLimit.
	Limit int
}

// Limits of a Filter.
const (
	DefaultLimit = 100
	MaxLimit     = 2000
	MaxSkip      = 100_000
)

// Most is the limit that holds.
func (f Filter) Most() int {
	if f.Limit <= 0 {
		return DefaultLimit
	}
	return min(f.Limit, MaxLimit)
}

// WantsEvent reports whether the filter wants an event, whatever its limit.
func (f Filter) WantsEvent(e Event) bool {
	if len(f.Kinds) > 0 && !slices.Contains(f.Kinds, e.Kind) || len(f.Levels) > 0 && !slices.Contains(f.Levels, cmp.Or(e.Level, levelOf(e.Kind))) ||
		f.Target != "" && e.Target != f.Target || f.Pool != "" && e.Pool != f.Pool || !f.within(e.Time) {
		return false
	}
	_, pool, _ := strings.Cut(e.Pool, "/")
	return len(f.About) == 0 || slices.ContainsFunc(f.About, func(name string) bool {
		return name != "" && (name == e.Target || name == e.Pool || name == pool)
	})
}

// WantsRun reports whether the filter wants a run, whatever its limit and kinds.
func (f Filter) WantsRun(r Run) bool {
	return f.within(r.Time) && (f.Target == "" || r.Target == f.Target) && (len(f.About) == 0 || slices.Contains(f.About, r.Target))
}

// within reports whether a moment is in the filter's time.
func (f Filter) within(t time.Time) bool {
	return !t.Before(f.Since) && (f.Until.IsZero() || !t.After(f.Until))
}

// some returns what a filter wants of values, the newest first.
func some[T any](values []T, f Filter, wanted func(T) bool) []T {
	out, skip := []T{}, f.Skip
	for _, v := range values {
		if len(out) == f.Most() {
			break
		}
		if !wanted(v) {
			continue
		}
		if skip--; skip < 0 {
			out = append(out, v)
		}
	}
	return out
}

// gather is how long the recorder waits for more before it writes: a pass over
// many targets is then a few writes, and a process that is killed loses no more
// than this of its history.
const gather = 100 * time.Millisecond

// maxPending bounds what waits for an archive that cannot be written.
const maxPending = 10_000

// recorder writes history behind the back of the passes.
type recorder struct {
	archive Archive
	log     *slog.Logger
	bell    chan struct{}

	mu      sync.Mutex
	pending Record
	writing sync.Mutex
	failing bool // guarded by writing: the last write failed, and that was said
}

func newRecorder(a Archive, log *slog.Logger) *recorder {
	return &recorder{archive: a, log: log, bell: make(chan struct{}, 1)}
}

// add has a record written soon. It never blocks on the disk; nil does nothing.
func (r *recorder) add(rec Record) {
	if r == nil || rec.empty() {
		return
	}
	r.mu.Lock()
	r.pending = join(r.pending, rec)
	r.mu.Unlock()
	select {
	case r.bell <- struct{}{}:
	default:
	}
}

// join puts one record after another. Of what is too much the oldest goes.
func join(a, b Record) Record {
	a.Events = append(a.Events, b.Events...)
	a.Runs = append(a.Runs, b.Runs...)
	a.Events = a.Events[max(0, len(a.Events)-maxPending):]
	a.Runs = a.Runs[max(0, len(a.Runs)-maxPending):]
	if a.Told == nil {
		a.Told = map[string]Told{}
	}
	for k, v := range b.Told {
		a.Told[k] = v
	}
	return a
}

// run writes until ctx ends, and what is left then.
func (r *recorder) run(ctx context.Context) error {
	for {
		select {
		case <-r.bell:
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

// flush writes what waits. What cannot be written waits on.
func (r *recorder) flush() error {
	r.writing.Lock()
	defer r.writing.Unlock()
	r.mu.Lock()
	rec := r.pending
	r.pending = Record{}
	r.mu.Unlock()
	if rec.empty() {
		return nil
	}
	err := r.archive.Append(rec)
	if err != nil {
		r.mu.Lock()
		r.pending = join(rec, r.pending)
		r.mu.Unlock()
		if !r.failing {
			r.log.Error("history cannot be written and is kept in memory", "error", err)
		}
	} else if r.failing {
		r.log.Info("history can be written again")
	}
	r.failing = err != nil
	return err
}
