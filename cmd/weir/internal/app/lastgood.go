package app

import (
	"fmt"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/plan/lastgood"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/state"
)

// goodRevisions has the last good revisions, by target.
var goodRevisions = state.Bucket[lastgood.Record]{Name: "last-good"}

// good reads the last good revisions.
type good struct{ app *App }

// Record implements fleet.Good.
func (g good) Record(target string) (out lastgood.Record, err error) {
	err = g.app.store.View(func(tx *state.Tx) error {
		out, _, err = goodRevisions.Get(tx, target)
		return err
	})
	return out, err
}

// marks write the last good revisions of the targets of a scope, while this daemon owns it.
type marks struct {
	app *App
	// place names the lease that must be owned; empty if this daemon is alone.
	place string
	// known caches the records that were read or written under this ownership, so that a pass
	// without changes neither writes nor reads.
	known map[string]lastgood.Record
}

// marksOf returns the marks of a loop, for as long as it runs. Only its passes use them.
func (p *passes) marksOf(l *loop) reconciler.Marks {
	if l.marks == nil {
		l.marks = &marks{app: p.app, known: map[string]lastgood.Record{}}
		if l.lease != nil {
			l.marks.place = l.lease.Owner.Key
		}
	}
	return l.marks
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

// record returns the stored record of a target and reads it only once.
func (m *marks) record(target string) (lastgood.Record, error) {
	had, known := m.known[target]
	if known {
		return had, nil
	}
	had, err := (good{m.app}).Record(target)
	if err == nil {
		m.known[target] = had
	}
	return had, err
}

func (m *marks) change(target string, next func(lastgood.Record) lastgood.Record) error {
	had, err := m.record(target)
	if err != nil {
		return err
	}
	now := next(had)
	if !now.Same(had) {
		store := m.app.store
		if m.place != "" {
			if store = m.app.crew.Held(m.place); store == nil {
				return fmt.Errorf("record the last good revision: %w", coord.ErrLost)
			}
		}
		if err := store.Update(func(tx *state.Tx) error { return goodRevisions.Put(tx, target, now) }); err != nil {
			return err
		}
	}
	m.known[target] = now
	return nil
}

// verdicts returns the verdicts in the last reports on revisions to which targets may be held.
func (p *passes) verdicts() map[string]fleet.Judged {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[string]fleet.Judged{}
	for name, r := range p.memory.before.Reports {
		j := fleet.Judged{Head: r.Revision, Wanted: r.Wanted, Pools: map[string]fleet.JudgedPool{}}
		if h := r.Holds; h != nil {
			j.Revision, j.Verdict = h.Revision, h.Verdict
		}
		for pool, h := range r.HeldPools {
			j.Pools[pool] = fleet.JudgedPool{Revision: h.Revision, Verdict: h.Verdict}
		}
		if j.Revision != "" || len(j.Pools) > 0 {
			out[name] = j
		}
	}
	return out
}

// marksBad adds to a held target those of its launches that were found bad.
func (p *passes) marksBad(d *reconciler.Desired, records map[string]*rollout.Record) {
	if d.Set == nil || d.Policy.Held == nil && len(d.Policy.HeldPools) == 0 {
		return
	}
	bad, unread := p.badOf(d, records)
	mark := func(h basis.Held) *basis.Held {
		h.Bad, h.Unread = bad, unread
		return &h
	}
	if d.Policy.Held != nil {
		d.Policy.Held = mark(*d.Policy.Held)
	}
	pools := make(map[string]*basis.Held, len(d.Policy.HeldPools))
	for pool, h := range d.Policy.HeldPools {
		pools[pool] = mark(*h)
	}
	d.Policy.HeldPools = pools
}

// badOf are the launches of a target that were found bad, by pool, or why they cannot be
// read.
func (p *passes) badOf(d *reconciler.Desired, records map[string]*rollout.Record) (bad map[string][]string, unread string) {
	record, read := records[d.Source]
	if !read {
		var err error
		if record, err = p.app.rollouts.ledger.Read(d.Source); err != nil {
			p.app.log.Error("the record of rollouts cannot be read", "source", d.Source, "error", err)
			return nil, "the record of rollouts cannot be read: see weir's log"
		}
		records[d.Source] = record
	}
	bad = map[string][]string{}
	for _, b := range record.Bad {
		if b.Target == d.Policy.Target {
			bad[b.Pool] = append(bad[b.Pool], b.Hash)
		}
	}
	return bad, ""
}
