package coord

import (
	"context"
	"sync"
	"time"
)

// workers run the work on the keys that a member owns. They start it after a quiet time, stop it, and release
// the key afterwards.
type workers struct {
	clock   Clock
	run     func(*Lease)
	tell    func(Event)
	avoided *avoidance
	// draining reports whether the member must own nothing. wake starts the next step of the keeper.
	draining func() bool
	wake     func()

	running sync.WaitGroup
	// last has the last lease of each key. Its work may still be running after the lease has ended. Only the
	// goroutine of the steps uses it.
	last map[string]*Lease
}

// start makes a lease of a key, and starts the work on it after a quiet time. before is the previous owner,
// if known.
func (w *workers) start(held *holdings, owner, before Owner, quiet time.Duration) {
	l := &Lease{Owner: owner, Before: before, Fence: newFence(owner.Key, held), held: held, clock: w.clock, taken: w.clock.Now(), done: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	if !held.add(l) {
		l.end()
		return
	}
	earlier := w.last[owner.Key]
	w.last[owner.Key] = l
	if w.draining() {
		defer w.stop(l, Event{Kind: HandedOver})
	}
	w.running.Go(func() {
		defer w.stop(l, Event{Kind: Released})
		defer close(l.done)
		if w.waitFor(l, earlier, quiet) {
			w.runWork(l)
		}
	})
}

// waitFor waits for the quiet time, and then for the end of the work under the key's earlier lease, if any.
// It returns false if the lease ended first.
func (w *workers) waitFor(l, earlier *Lease, quiet time.Duration) bool {
	for left := quiet; left > 0; left = quiet - w.clock.Now().AtLeast(l.taken) {
		if !sleep(l.ctx, left) {
			return false
		}
	}
	if earlier != nil {
		select {
		case <-earlier.done:
		case <-l.ctx.Done():
		}
	}
	return l.ctx.Err() == nil
}

// runWork works on a key. If the work returns before the lease ends, the member leaves the key to other
// members for a while.
func (w *workers) runWork(l *Lease) {
	w.tell(Event{Kind: Took, Key: l.Owner.Key, Owner: l.Owner, Before: l.Before})
	l.Progress()
	w.run(l)
	if l.ctx.Err() == nil {
		w.avoided.add(l.Owner.Key, w.clock.Now())
	}
}

// stop stops the work on a key, waits for its end, and releases the key. It reports e when it has done so. It
// returns at once, and does nothing if the lease is stopping already.
func (w *workers) stop(l *Lease, e Event) {
	if !l.stop() {
		return
	}
	w.running.Go(func() {
		began := w.clock.Now()
		l.cancel()
		timer := time.NewTimer(StopWithin)
		defer timer.Stop()
		select {
		case <-l.done:
			l.Fence.end()
			if w.clock.Now().AtLeast(began) >= SlowStop { // requests may still be on their way
				sleep(context.Background(), Quiet)
			}
		case <-timer.C:
			l.Fence.end() // hanging work can start no more writes
			sleep(context.Background(), Quiet)
		case <-l.Fence.cut.Done(): // the lease ends soon, and running writes are cut off
		}
		e.Key, e.Owner = l.Owner.Key, l.Owner
		e.Err = l.release(e.To)
		w.tell(e)
		w.wake()
	})
}

// avoidance has the keys that a member leaves to other members for a while, because its own work on them was
// stuck or gave up.
type avoidance struct {
	mu    sync.Mutex
	since map[string]Instant
}

func (a *avoidance) add(key string, now Instant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.since[key] = now
}

func (a *avoidance) has(key string, now Instant) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	since, ok := a.since[key]
	return ok && now.AtLeast(since) < avoidFor
}
