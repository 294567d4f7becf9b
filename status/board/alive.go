package board

import "time"

// DefaultStaleAfter is how long the reconciler may show no sign of life.
const DefaultStaleAfter = 10 * time.Minute

// Silence is how long the reconciler has shown no sign of life, and whether that is no
// longer than its last one allowed, or than patience where that is more. Before the first
// one, since is the time.
func (b *Board) Silence(since time.Time, patience time.Duration) (silent time.Duration, alive bool) {
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
