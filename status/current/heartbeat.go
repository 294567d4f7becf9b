package current

import (
	"sync"
	"time"
)

// DefaultStaleAfter is the default for the longest time without a sign of life from the reconciler.
const DefaultStaleAfter = 10 * time.Minute

// Heartbeat holds the last sign of life of the reconciler's loop.
type Heartbeat struct {
	now func() time.Time

	mu sync.RWMutex
	at time.Time
	// within is the time within which the next sign of life must follow.
	within time.Duration
}

// Beat records that the reconciler's loop is running, and that its next sign of life may take as
// long as within. Reports are no signs of life: the loop runs even if a pass takes long.
func (h *Heartbeat) Beat(within time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at, h.within = h.now(), within
}

// Silence returns the time since the reconciler's last sign of life. It also reports whether that
// time is at most what the last sign allowed, or patience if that is more. Before the first sign,
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
