package outbox

import (
	"context"
	"iter"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Delays are the times between attempts for one entry.
type Delays struct {
	// First is the first delay. It doubles with each attempt, up to Longest.
	First, Longest time.Duration
	// Slow is the delay after Many attempts. If Many is 0, Slow is not used.
	Many int
	Slow time.Duration
}

// firstDenied is the delay after the token was denied. It doubles with each denial, up to Delays.Slow.
const firstDenied = 2 * time.Second

func (d Delays) after(tries int) time.Duration {
	if d.Many > 0 && tries >= d.Many {
		return d.Slow
	}
	return doubled(d.First, tries, d.Longest)
}

// doubled returns d doubled n-1 times, at most limit.
func doubled(d time.Duration, n int, limit time.Duration) time.Duration {
	for range n - 1 {
		if d *= 2; d >= limit {
			return limit
		}
	}
	return d
}

// Outbox manages the writes to one destination. It is safe for concurrent use.
type Outbox struct {
	delays Delays
	limit  *rate.Limiter
	now    func() time.Time
	wake   chan struct{}

	mu sync.Mutex
	// notBefore is the time until which the destination asked weir not to send requests. denied counts its
	// consecutive denials of the token, and deniedUntil is the time of the next attempt with the token.
	notBefore, deniedUntil time.Time
	denied                 int
}

// New returns an Outbox for a destination that accepts perMinute requests in a minute, half of them in a
// burst. 0 means no limit.
func New(delays Delays, perMinute int, now func() time.Time) *Outbox {
	limit := rate.NewLimiter(rate.Inf, 1)
	if perMinute > 0 {
		limit = rate.NewLimiter(rate.Limit(float64(perMinute)/60), max(1, perMinute/2))
	}
	return &Outbox{delays: delays, limit: limit, now: now, wake: make(chan struct{}, 1)}
}

// Beside returns another Outbox for the same destination. Both share the rate limit.
func (o *Outbox) Beside() *Outbox {
	return &Outbox{delays: o.delays, limit: o.limit, now: o.now, wake: make(chan struct{}, 1)}
}

// Nudge wakes the worker, because there may be something to write. It never blocks.
func (o *Outbox) Nudge() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// Wait waits until the limit allows a request.
func (o *Outbox) Wait(ctx context.Context) error { return o.limit.Wait(ctx) }

// Work writes the entries that next returns until ctx ends. When draining, it ends when nothing is left, or
// nothing that can be written before the deadline of ctx. If next has no entry that may be tried now, it
// returns the time until there is one, 0 for no entry at all. A write that failed because ctx ended does
// not count as an attempt.
func Work[T any](ctx context.Context, o *Outbox, drain bool, next func() (T, time.Duration, bool), write func(context.Context, T)) {
	for ctx.Err() == nil {
		entry, wait, ok := next()
		if ok {
			write(ctx, entry)
			continue
		}
		if deadline, bound := ctx.Deadline(); drain && (wait == 0 || bound && wait > time.Until(deadline)) {
			return
		}
		if wait <= 0 {
			wait = time.Minute // some entries become due only because time passes
		}
		o.pause(ctx, wait)
	}
}

// pause waits for d, for a nudge, or for ctx.
func (o *Outbox) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-o.wake:
	case <-timer.C:
	}
}

// Pick returns the first entry, in the order of before, that may be tried now. If it finds none, wait is
// the time until the next entry may be tried, 0 if no entry is open.
func Pick[T any](o *Outbox, entries iter.Seq2[*Entry, T], before func(a, b T) bool) (found T, wait time.Duration, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.now()
	for e, value := range entries {
		if e.gaveUp {
			continue
		}
		due := e.notBefore
		for _, t := range []time.Time{o.notBefore, o.deniedUntil} {
			if t.After(due) {
				due = t
			}
		}
		switch delay := due.Sub(now); {
		case delay > 0:
			if wait == 0 || delay < wait {
				wait = delay
			}
		case !ok || before(value, found):
			found, ok = value, true
		}
	}
	return found, wait, ok
}

// Entry is the retry state of one thing to write. The zero value means no attempt so far. Its owner must
// synchronize access.
type Entry struct {
	tries     int
	notBefore time.Time
	gaveUp    bool
}

// Reset forgets all attempts.
func (e *Entry) Reset() { *e = Entry{} }

// Delay postpones the next attempt until a time.
func (e *Entry) Delay(until time.Time) { *e = Entry{notBefore: until} }

// Tries returns the number of failed attempts.
func (e *Entry) Tries() int { return e.tries }

// GaveUp reports whether no further attempt is made.
func (e *Entry) GaveUp() bool { return e.gaveUp }

// Failure describes a failed write.
type Failure struct {
	// After is the wait that the destination requested, 0 if it requested none.
	After time.Duration
	// Denied says that the destination does not accept the token, for any text.
	Denied bool
	// Final says that the destination will never accept this text.
	Final bool
	// Most bounds the attempts; 0 means no bound.
	Most int
}

// Outcome is the consequence of a failed write.
type Outcome int

// The consequences of a failed write.
const (
	// Superseded means that a newer text must be written instead.
	Superseded Outcome = iota
	// Denied means that the token is tried again later, and was denied before.
	Denied
	// FirstDenied means Denied for the first time in a row.
	FirstDenied
	// Again means that the entry is tried again.
	Again
	// FirstAgain means Again for the first time.
	FirstAgain
	GivenUp
)

// Failed records a failed write for the destination and for its entry. e is nil if a newer text must be
// written instead.
func (o *Outbox) Failed(e *Entry, f Failure) Outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.now()
	if f.After > 0 {
		o.notBefore = now.Add(f.After)
	}
	if f.Denied {
		o.denied++
		o.deniedUntil = now.Add(doubled(firstDenied, o.denied, o.delays.Slow))
		if o.denied == 1 {
			return FirstDenied
		}
		return Denied
	}
	if e == nil {
		return Superseded
	}
	e.tries++
	if f.Final || f.Most > 0 && e.tries >= f.Most {
		e.gaveUp = true
		return GivenUp
	}
	e.notBefore = now.Add(o.delays.after(e.tries))
	if e.tries == 1 {
		return FirstAgain
	}
	return Again
}

// Succeeded records that the destination accepted a write. It reports whether the destination had denied
// the token until then.
func (o *Outbox) Succeeded() (acceptedAgain bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	acceptedAgain = o.denied > 0
	o.denied, o.deniedUntil = 0, time.Time{}
	return acceptedAgain
}

// TryToken allows an attempt with a denied token at once, because the token or its rights may have changed.
func (o *Outbox) TryToken() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.denied, o.deniedUntil = 0, time.Time{}
	o.Nudge()
}
