// Package history keeps the past: passes as runs, the filter that finds some of them
// and of the events, and the archive that keeps both in the state directory's file, the
// newest of them, bounded by age and by number.
package history

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/events"
)

// Options bound the archive. Zero values stand for the defaults.
type Options struct {
	MaxAge    time.Duration
	MaxEvents int
	MaxPasses int
	Now       func() time.Time
}

// The defaults of Options.
const (
	DefaultMaxAge    = 30 * 24 * time.Hour
	DefaultMaxEvents = 10_000
	DefaultMaxPasses = 2_000
)

// The buckets. Events and passes are in the order in which they were added, what is
// known is by target or source.
var (
	eventBucket = state.Bucket[events.Event]{Name: "events"}
	passBucket  = state.Bucket[Run]{Name: "passes"}
	knownBucket = state.Bucket[events.Known]{Name: "told"}
)

// Archive is a board.Archive in an open file.
type Archive struct {
	db *state.DB
	o  Options
}

// New keeps history in db, which the caller closes. A file that was opened to be
// read gives an archive that can be asked and not added to.
func New(db *state.DB, o Options) *Archive {
	if o.MaxAge <= 0 {
		o.MaxAge = DefaultMaxAge
	}
	if o.MaxEvents <= 0 {
		o.MaxEvents = DefaultMaxEvents
	}
	if o.MaxPasses <= 0 {
		o.MaxPasses = DefaultMaxPasses
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Archive{db: db, o: o}
}

// Append implements board.Archive: one transaction, which also removes old records
// and those above the bound.
func (a *Archive) Append(r Record) error {
	return a.db.Update(func(tx *state.Tx) error {
		oldest := a.o.Now().Add(-a.o.MaxAge)
		if err := add(tx, eventBucket, r.Events, a.o.MaxEvents, oldest, func(e events.Event) time.Time { return e.Time }); err != nil {
			return err
		}
		if err := add(tx, passBucket, r.Runs, a.o.MaxPasses, oldest, func(p Run) time.Time { return p.Time }); err != nil {
			return err
		}
		for about, t := range r.Known {
			if reflect.ValueOf(t).IsZero() {
				if err := knownBucket.Delete(tx, about); err != nil {
					return err
				}
				continue
			}
			if err := knownBucket.Put(tx, about, t); err != nil {
				return err
			}
		}
		return nil
	})
}

// add puts values behind those of a bucket. Their keys are consecutive numbers, so
// the first and the last tell how many there are.
func add[T any](tx *state.Tx, b state.Bucket[T], values []T, most int, oldest time.Time, at func(T) time.Time) error {
	if len(values) == 0 {
		return nil
	}
	raw := state.Bucket[json.RawMessage](b)
	last := uint64(0)
	err := raw.Backwards(tx, func(key string, _ json.RawMessage) (err error) {
		if last, err = parseKey(key); err == nil {
			err = state.ErrStop
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, v := range values {
		last++
		if err := b.Put(tx, formatKey(last), v); err != nil {
			return err
		}
	}
	// The entries that must go are always at the front.
	var gone []string
	err = b.ForEach(tx, "", func(key string, v T) error {
		n, err := parseKey(key)
		if err != nil {
			return err
		}
		if last-n < uint64(most) && !at(v).Before(oldest) { //nolint:gosec // most is positive
			return state.ErrStop
		}
		gone = append(gone, key)
		return nil
	})
	if err != nil {
		return err
	}
	for _, key := range gone {
		if err := b.Delete(tx, key); err != nil {
			return err
		}
	}
	return nil
}

// formatKey keeps the order of numbers in the order of texts.
func formatKey(n uint64) string { return fmt.Sprintf("%016x", n) }

func parseKey(key string) (uint64, error) {
	n, err := strconv.ParseUint(key, 16, 64)
	if err != nil {
		return 0, fmt.Errorf("read history: %w", err)
	}
	return n, nil
}

// Events implements board.Archive.
func (a *Archive) Events(f Filter) ([]events.Event, error) {
	return read(a.db, eventBucket, f, f.WantsEvent, func(e events.Event) time.Time { return e.Time })
}

// Runs implements board.Archive.
func (a *Archive) Runs(f Filter) ([]Run, error) {
	return read(a.db, passBucket, f, f.WantsRun, func(r Run) time.Time { return r.Time })
}

// slack is how far the order in which things were added may be from that of their
// times: passes over several accounts end beside each other, and clocks are set.
const slack = time.Hour

func read[T any](db *state.DB, b state.Bucket[T], f Filter, wanted func(T) bool, at func(T) time.Time) ([]T, error) {
	out, skip := []T{}, f.Skip
	err := db.View(func(tx *state.Tx) error {
		return b.Backwards(tx, func(_ string, v T) error {
			if len(out) == f.Most() || at(v).Before(f.Since.Add(-slack)) {
				return state.ErrStop
			}
			if !wanted(v) {
				return nil
			}
			if skip--; skip < 0 {
				out = append(out, v)
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Known implements board.Archive.
func (a *Archive) Known() (map[string]events.Known, error) {
	out := map[string]events.Known{}
	err := a.db.View(func(tx *state.Tx) error {
		return knownBucket.ForEach(tx, "", func(about string, t events.Known) error {
			out[about] = t
			return nil
		})
	})
	return out, err
}
