package app

import (
	"fmt"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/plan/lastgood"
	"github.com/weir-gitops/weir/reconciler/state"
)

// goodRevisions contains the last good revisions, by target.
var goodRevisions = state.Bucket[lastgood.Record]{Name: "last-good"}

// good reads the last good revisions.
type good struct{ store state.Store }

// Record implements fleet.Good.
func (g good) Record(target string) (out lastgood.Record, err error) {
	err = g.store.View(func(tx *state.Tx) error {
		out, _, err = goodRevisions.Get(tx, target)
		return err
	})
	return out, err
}

// marks writes the last good revisions of the targets of a scope, while this daemon owns it.
type marks struct {
	good good
	// writes returns the store to write to; nil when this daemon no longer owns the scope.
	writes func() state.Store
	// known caches the records that were read or written during this ownership, so that a pass without
	// changes neither writes nor reads.
	known map[string]lastgood.Record
}

func newMarks(store state.Store, writes func() state.Store) *marks {
	return &marks{good: good{store}, writes: writes, known: map[string]lastgood.Record{}}
}

// Begin implements reconciler.Marks.
func (m *marks) Begin(target string, mark lastgood.Mark) error {
	return m.change(target, func(r lastgood.Record) lastgood.Record { return r.Begin(mark) })
}

// Reach implements reconciler.Marks.
func (m *marks) Reach(target string, mark lastgood.Mark) error {
	return m.change(target, func(r lastgood.Record) lastgood.Record { return r.Reach(mark) })
}

// Cancel implements reconciler.Marks.
func (m *marks) Cancel(target string, refreshes map[string]string, present func(group string) bool) error {
	return m.change(target, func(r lastgood.Record) lastgood.Record { return r.Cancel(refreshes, present) })
}

// Cancelled implements reconciler.Marks.
func (m *marks) Cancelled(target string) (map[string]string, error) {
	r, err := m.record(target)
	return r.Cancelled, err
}

// record returns the stored record of a target. It reads each record only once.
func (m *marks) record(target string) (lastgood.Record, error) {
	had, known := m.known[target]
	if known {
		return had, nil
	}
	had, err := m.good.Record(target)
	if err == nil {
		m.known[target] = had
	}
	return had, err
}

// change replaces the record of a target by the result of next, and stores it if it differs. It
// fails if this process must not write.
func (m *marks) change(target string, next func(lastgood.Record) lastgood.Record) error {
	had, err := m.record(target)
	if err != nil {
		return err
	}
	now := next(had)
	if !now.Same(had) {
		store := m.writes()
		if store == nil {
			return fmt.Errorf("record the last good revision: %w", coord.ErrLost)
		}
		if err := store.Update(func(tx *state.Tx) error { return goodRevisions.Put(tx, target, now) }); err != nil {
			return err
		}
	}
	m.known[target] = now
	return nil
}
