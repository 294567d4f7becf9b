package current

import "time"

// DefaultStaleAfter is the default for the longest time without a sign of life from the reconciler.
const DefaultStaleAfter = 10 * time.Minute

// Silence returns the time since the reconciler's last sign of life. It also reports whether that
// time is at most what the last sign allowed, or patience if that is more. Before the first sign,
// the time counts from since.
func (b *State) Silence(since time.Time, patience time.Duration) (silent time.Duration, alive bool) {
	if patience <= 0 {
		patience = DefaultStaleAfter
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	if !b.heartbeat.IsZero() {
		since = b.heartbeat
	}
	silent = b.Now().Sub(since)
	return silent, silent <= max(b.within, patience)
}
