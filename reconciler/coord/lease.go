package coord

import (
	"context"
	"sync"
	"time"
)

// Lease is a member's right to a key. The work on the key gets it once no other member can be writing.
type Lease struct {
	Owner Owner
	// Before is the previous owner, the zero one if unknown.
	Before Owner
	Fence  *Fence

	held   *holdings // the leases of the same session
	clock  Clock
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{} // closed when the work has ended

	mu       sync.Mutex
	taken    Instant
	progress *Instant // nil until somebody works on it
	stopping bool
}

// Context ends when the work must end: the member hands the key over, or has lost the lease. Calls in flight
// may then finish, as long as the Fence allows it.
func (l *Lease) Context() context.Context { return l.ctx }

// Progress reports that the work makes progress. After StuckAfter without a report the member gives up the key.
func (l *Lease) Progress() {
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.progress = &now
}

// Write writes records as the owner of the key. See Session.Write.
func (l *Lease) Write(ctx context.Context, ops ...Op) (version int64, err error) {
	return l.held.session.Write(ctx, Write{Held: []Owner{l.Owner}, Ops: ops})
}

// stuck returns the time since the last report of progress.
func (l *Lease) stuck(now Instant) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.progress == nil {
		return 0
	}
	return now.AtLeast(*l.progress)
}

// stop marks the lease as stopping. It returns false if it was stopping already.
func (l *Lease) stop() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := !l.stopping
	l.stopping = true
	return first
}

func (l *Lease) isStopping() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stopping
}

// end ends the lease at once.
func (l *Lease) end() {
	l.stop()
	l.Fence.end()
	l.cancel()
}

// refutedBy reports whether the engine contradicts the lease: another session has taken the key, or the key
// was released although the work on it is not stopping. current is the key's owner according to the engine,
// which may be older than the lease.
func (l *Lease) refutedBy(current Owner) bool {
	if current.Epoch != l.Owner.Epoch {
		return current.Epoch.N > l.Owner.Epoch.N // a lower epoch is an answer from before this lease
	}
	return current.Session != l.Owner.Session || current.Released && !l.isStopping()
}

// release releases the key, for another member if to names one. It fails if the lease has ended.
func (l *Lease) release(to string) error {
	err := ErrLost
	if left := l.held.session.Left(); left > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), min(left, TTL))
		defer cancel()
		given := l.Owner
		given.For = to
		err = l.held.session.Release(ctx, given)
	}
	l.held.remove(l, err == nil) // after an error the session may still own the key, see Keeper.resume
	return err
}
