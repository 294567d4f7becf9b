package outbox

import (
	"context"
	"iter"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Delays are the times between tries of one entry.
type Delays struct {
	// First doubles with each try, up to Longest.
	First, Longest time.Duration
	// Slow is the delay once an entry had Many tries; without Many it never comes.
	Many int
	Slow time.Duration
}

// firstDenied doubles with each denial of the token, up to Delays.Slow.
const firstDenied = 2 * time.Second

func (d Delays) after(tries int) time.Duration {
	if d.Many > 0 && tries >= d.Many {
		return d.Slow
	}
	return doubled(d.First, tries, d.Longest)
}

// doubled is d after n-1 doublings, at most limit.
func doubled(d time.Duration, n int, limit time.Duration) time.Duration {
	for range n - 1 {
		if d *= 2; d >= limit {
			return limit
		}
	}
	return d
}

// Outbox is the way to one destination. It is safe for concurrent use.
type Outbox struct {
	delays Delays
	limit  *rate.Limiter
	now    func() time.Time
	wake   chan struct{}

	mu sync.Mutex
	// notBefore is the time until which the destination refuses requests, as it said itself. denied
	// counts its denials of the token in a row, and deniedUntil is the time at which the token is
	// tried again.
	notBefore, deniedUntil time.Time
	denied                 int
}

// New returns the way to a destination that takes so many requests in a minute, half of
// them at once; 0 is without limit.
func New(delays Delays, perMinute int, now func() time.Time) *Outbox {
	limit := rate.NewLimiter(rate.Inf, 1)
	if perMinute > 0 {
		limit = rate.NewLimiter(rate.Limit(float64(perMinute)/60), max(1, perMinute/2))
	}
	return &Outbox{delays: delays, limit: limit, now: now, wake: make(chan struct{}, 1)}
}

// Beside returns another way to the same destination, which shares the limit.
func (o *Outbox) Beside() *Outbox {
	return &Outbox{delays: o.delays, limit: o.limit, now: o.now, wake: make(chan struct{}, 1)}
}

// Nudge says that there may be something to write. It never blocks.
func (o *Outbox) Nudge() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// Wait waits until the limit allows a request.
func (o *Outbox) Wait(ctx context.Context) error { return o.limit.Wait(ctx) }

// Work writes what next gives until ctx ends; when draining, until nothing is left, or
// nothing that ctx has time for. Where next has nothing, it says how long until there
// will be, 0 for nothing at all. A write that ctx ended is not counted.
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
			wait = time.Minute // for changes by time alone
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

// Pick returns the first of the entries that may be tried now, ordered by before. Without one, wait
// is the time until the next may be tried, 0 if no entry is open.
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

// Entry is the memory of the tries of one thing to write. Its zero value had none. Its
// owner guards it.
type Entry struct {
	tries     int
	notBefore time.Time
	gaveUp    bool
}

// Reset makes an entry look as if it was never tried.
func (e *Entry) Reset() { *e = Entry{} }

// Delay puts off the next try until a time.
func (e *Entry) Delay(until time.Time) { *e = Entry{notBefore: until} }

// Tries counts the failed tries.
func (e *Entry) Tries() int { return e.tries }

// GaveUp reports whether it is not tried any more.
func (e *Entry) GaveUp() bool { return e.gaveUp }

// Failure describes a failed write.
type Failure struct {
	// After is the wait that the destination requests, 0 if it did not say.
	After time.Duration
	// Denied says that it does not accept the token, for any text.
	Denied bool
	// Final says that it will never take this.
	Final bool
	// Most bounds the tries; 0 for no bound.
	Most int
}

// Outcome is the consequence of a failure.
type Outcome int

// The consequences of a failure.
const (
	// Superseded says that another text has to be written now.
	Superseded Outcome = iota
	// Denied says that the token is tried again later; it was denied before.
	Denied
	// FirstDenied is Denied for the first time in a row.
	FirstDenied
	// Again says that it is tried again.
	Again
	// FirstAgain is Again for the first time.
	FirstAgain
	GivenUp
)

// Failed notes how a write failed, for the destination and for its entry, which is nil if another
// text has to be written now.
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

// Succeeded notes that the destination took a write, and reports whether it had denied the
// token until then.
func (o *Outbox) Succeeded() (acceptedAgain bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	acceptedAgain = o.denied > 0
	o.denied, o.deniedUntil = 0, time.Time{}
	return acceptedAgain
}

// TryToken tries a denied token at once: it, or its rights, may have changed.
func (o *Outbox) TryToken() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.denied, o.deniedUntil = 0, time.Time{}
	o.Nudge()
}
