// Package slot distributes a few slots among callers. A caller waits in a queue for a slot. Callers of a
// higher class come first. Within a class the sources take turns. So a source with much work delays other
// sources only until its running work is finished.
package slot

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// Class orders callers. A lower one comes first.
type Class int

// Classes of callers, highest first.
const (
	// Followed is work for a commit that weir applies.
	Followed Class = iota
	// Earlier is the search for an earlier commit, for a target whose followed commit cannot be applied.
	Earlier
	// Proposed is work for a pull request or a draft.
	Proposed
)

// ErrPreempted is the cause with which the context of a slot ends if a caller of a
// higher class needs the slot.
var ErrPreempted = errors.New("other work comes first")

// Caller identifies the user of a slot.
type Caller struct {
	// Source takes turns with other sources. Commands without sources leave it empty.
	Source string
	Class  Class
}

// Queue distributes slots. New creates one.
type Queue struct {
	o Options

	mu      sync.Mutex
	running []*Slot
	waiting []*Slot // in order of arrival
	// turns counts the granted slots. last has the count of each source's most recent slot.
	turns int
	last  map[string]int
}

// Options of a Queue.
type Options struct {
	// Slots bounds the callers that run concurrently.
	Slots int
	// Reserved is the number of slots that the class Proposed cannot get.
	Reserved int
	// PerSource limits the slots of a source. 0 means no limit.
	PerSource int
	// Preempt ends the context of a Proposed slot if a caller of a higher class has to wait.
	Preempt bool
}

// New returns a queue with all slots free.
func New(o Options) *Queue { return &Queue{o: o, last: map[string]int{}} }

// Slot is the right to run, until Leave.
type Slot struct {
	queue   *Queue
	caller  Caller
	given   chan struct{}
	end     context.CancelCauseFunc
	evicted bool
}

// Enter waits for a slot or the end of ctx. The returned context ends with ctx, with Leave, or with the cause
// ErrPreempted.
func (q *Queue) Enter(ctx context.Context, c Caller) (context.Context, *Slot, error) {
	own, s := q.slot(ctx, c)
	q.mu.Lock()
	q.waiting = append(q.waiting, s)
	q.share()
	q.mu.Unlock()
	select {
	case <-s.given:
		return own, s, nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	q.waiting = slices.DeleteFunc(q.waiting, func(w *Slot) bool { return w == s })
	q.mu.Unlock()
	s.Leave() // the slot may have been granted meanwhile
	return nil, nil, context.Cause(ctx)
}

// TryEnter takes a slot if one is free and no caller waits for it; otherwise it returns nil.
func (q *Queue) TryEnter(ctx context.Context, c Caller) (context.Context, *Slot) {
	own, s := q.slot(ctx, c)
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) > 0 || !q.fits(s) {
		s.end(nil)
		return nil, nil
	}
	q.give(s)
	return own, s
}

func (q *Queue) slot(ctx context.Context, c Caller) (context.Context, *Slot) {
	own, end := context.WithCancelCause(ctx)
	return own, &Slot{queue: q, caller: c, given: make(chan struct{}), end: end}
}

// Leave returns the slot. Further calls do nothing.
func (s *Slot) Leave() {
	q := s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	s.end(nil)
	q.running = slices.DeleteFunc(q.running, func(r *Slot) bool { return r == s })
	q.share()
}

// Running returns the number of callers that have a slot.
func (q *Queue) Running() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.running)
}

// Waiting returns the number of callers that wait.
func (q *Queue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// share grants free slots to waiting callers. The caller holds mu.
func (q *Queue) share() {
	for {
		next := q.next()
		if next == nil {
			break
		}
		q.waiting = slices.DeleteFunc(q.waiting, func(w *Slot) bool { return w == next })
		q.give(next)
	}
	if q.o.Preempt {
		q.preempt()
	}
}

func (q *Queue) give(s *Slot) {
	q.turns++
	q.last[s.caller.Source] = q.turns
	q.running = append(q.running, s)
	close(s.given)
}

// next returns the waiting caller that gets the next slot, or nil if none can.
func (q *Queue) next() *Slot {
	var best *Slot
	for _, s := range q.waiting {
		if q.fits(s) && (best == nil || q.before(s, best)) {
			best = s
		}
	}
	return best
}

// before reports whether s has priority over a caller that arrived earlier.
func (q *Queue) before(s, earlier *Slot) bool {
	if s.caller.Class != earlier.caller.Class {
		return s.caller.Class < earlier.caller.Class
	}
	return q.last[s.caller.Source] < q.last[earlier.caller.Source]
}

// fits reports whether a slot is free that s may have.
func (q *Queue) fits(s *Slot) bool {
	proposed, own := 0, 0
	for _, r := range q.running {
		if r.caller.Class == Proposed {
			proposed++
		}
		if r.caller.Source == s.caller.Source {
			own++
		}
	}
	return len(q.running) < q.o.Slots &&
		(s.caller.Class != Proposed || proposed < q.o.Slots-q.o.Reserved) &&
		(q.o.PerSource == 0 || own < q.o.PerSource)
}

// preempt ends as many Proposed slots as callers of other classes wait for. Slots that are already ending
// count. The caller holds the lock.
func (q *Queue) preempt() {
	need := 0
	for _, s := range q.waiting {
		if s.caller.Class != Proposed {
			need++
		}
	}
	for _, r := range q.running {
		if r.evicted {
			need--
		}
	}
	for _, r := range q.running {
		if need > 0 && r.caller.Class == Proposed && !r.evicted {
			r.evicted = true
			r.end(ErrPreempted)
			need--
		}
	}
}
