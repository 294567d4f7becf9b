package current

import (
	"sync"
	"time"
)

// DefaultStaleAfter is the default for the longest time without a heartbeat from the reconciler.
const DefaultStaleAfter = 10 * time.Minute

// Heartbeat contains the last heartbeat of the reconciler's loop.
type Heartbeat struct {
	now func() time.Time

	mu sync.RWMutex
	at time.Time
	// within is the time within which the next heartbeat must follow.
	within time.Duration
}

// Beat records that the reconciler's loop is running, and that its next heartbeat may take as long as
// within. Reports do not count as heartbeats, because the loop runs even if a pass takes long.
func (h *Heartbeat) Beat(within time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at, h.within = h.now(), within
}

// Silence returns the time since the reconciler's last heartbeat. It also reports whether that time is at
// most the one that the last heartbeat allowed, or patience if that is longer. Before the first heartbeat,
// the time counts from since.
func (h *Heartbeat) Silence(since time.Time, patience time.Duration) (silent time.Duration, alive bool) {
	if patience <= 0 {
		patience = DefaultStaleAfter
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	if !h.at.IsZero() {
		since = h.at
	}
	silent = h.now().Sub(since)
	return silent, silent <= max(h.within, patience)
}
