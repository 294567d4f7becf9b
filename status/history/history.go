// Package history stores the past: passes as runs, the filter for runs and events, and the archive. The
// archive keeps the newest runs and events, bounded by age and by number, and the announced state of each
// target.
package history

import (
	"reflect"
	"time"

	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/events"
)

// Options bounds the archive. Zero values mean the defaults.
type Options struct {
	MaxAge    time.Duration
	MaxEvents int
	MaxPasses int
	Now       func() time.Time
}

// The defaults of Options.
const (
	defaultMaxAge    = 30 * 24 * time.Hour
	defaultMaxEvents = 10_000
	defaultMaxPasses = 2_000
)

var (
	eventLog = state.Log[events.Event]{Name: "events", At: func(e events.Event) time.Time { return e.Time }}
	runLog   = state.Log[Run]{Name: "passes", At: func(r Run) time.Time { return r.Time }}
	// knownBucket has the announced states, by target or source.
	knownBucket = state.Bucket[events.Known]{Name: "told"}
)

// Logs holds the names of the stored logs.
var Logs = []string{eventLog.Name, runLog.Name}

// Archive is a current.Archive in a store.
type Archive struct {
	db state.Store
	o  Options
}

// New returns an archive in db. If db was opened read-only, the archive supports queries but no additions.
func New(db state.Store, o Options) *Archive {
	if o.MaxAge <= 0 {
		o.MaxAge = defaultMaxAge
	}
	if o.MaxEvents <= 0 {
		o.MaxEvents = defaultMaxEvents
	}
	if o.MaxPasses <= 0 {
		o.MaxPasses = defaultMaxPasses
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Archive{db: db, o: o}
}

// Append implements current.Archive. It uses one transaction, which also removes entries that are too old
// or exceed the maximum number.
func (a *Archive) Append(r Record) error {
	return a.db.Update(func(tx *state.Tx) error {
		oldest := a.o.Now().Add(-a.o.MaxAge)
		if err := eventLog.Add(tx, r.Events, state.Keep{Most: a.o.MaxEvents, Since: oldest}); err != nil {
			return err
		}
		if err := runLog.Add(tx, r.Runs, state.Keep{Most: a.o.MaxPasses, Since: oldest}); err != nil {
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

// Events implements current.Archive.
func (a *Archive) Events(f Filter) ([]events.Event, error) {
	return read(a.db, eventLog, f, f.WantsEvent)
}

// Runs implements current.Archive.
func (a *Archive) Runs(f Filter) ([]Run, error) {
	return read(a.db, runLog, f, f.WantsRun)
}

// slack bounds the difference between the order of insertion and the order of times. They differ because
// passes over several accounts end in parallel, and because clocks are set.
const slack = time.Hour

// read returns the newest entries that wanted selects, after the first f.Skip of them. The log is only roughly
// sorted by time, so it reads slack further back than f.Since.
func read[T any](db state.Store, log state.Log[T], f Filter, wanted func(T) bool) (out []T, err error) {
	err = db.View(func(tx *state.Tx) error {
		skip := f.Skip
		out = []T{}
		return log.Newest(tx, func(v T) error {
			if len(out) == f.Most() || log.At(v).Before(f.Since.Add(-slack)) {
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

// Known implements current.Archive.
func (a *Archive) Known() (map[string]events.Known, error) {
	var out map[string]events.Known
	err := a.db.View(func(tx *state.Tx) error {
		out = map[string]events.Known{}
		return knownBucket.ForEach(tx, "", func(about string, t events.Known) error {
			out[about] = t
			return nil
		})
	})
	return out, err
}
