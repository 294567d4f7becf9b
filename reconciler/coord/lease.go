package coord

import (
	"context"
	"sync"
	"time"
)

// Lease is a member's right to a key. The keeper hands it to the work on the key once nobody else can be writing.
type Lease struct {
	Owner Owner
	// Before is the previous owner, the zero one if unknown.
	Before Owner
	Fence  *Fence

	session *Session
	clock   Clock
	ctx     context.Context
	cancel  context.CancelFunc
	done    chan struct{} // closed when the work has ended

	mu       sync.Mutex
	taken    Instant
	progress *Instant // nil until somebody works on it
	stopping bool
}

// Context ends when the work must end: the keeper hands the key over, or has lost the lease. Calls under way may then finish, as long as the Fence
// lets them.
func (l *Lease) Context() context.Context { return l.ctx }

// Progress says that the work goes on. Without it for StuckAfter the Keeper gives up the key.
func (l *Lease) Progress() {
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.progress = &now
}

// Write writes results, as the owner. See Session.Write.
func (l *Lease) Write(ctx context.Context, ops ...Op) (version int64, err error) {
	return l.session.Write(ctx, Write{Held: []Owner{l.Owner}, Ops: ops})
}

// stuck is the time since the last Progress.
func (l *Lease) stuck(now Instant) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.progress == nil {
		return 0
	}
	return now.AtLeast(*l.progress)
}

// stop begins to stop; it returns false if that had begun.
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
