package board

import (
	"time"
)

// Alive reports whether the reconciler has shown a sign of life within the time
// that its last one gave it, and at least within patience: what /healthz says.
// Before the first one, since counts.
func (b *Board) Alive(since time.Time, patience time.Duration) bool {
	if patience <= 0 {
		patience = DefaultStaleAfter
	}
	beat, within := b.LastBeat()
	if beat.IsZero() {
		beat = since
	}
	return b.Now().Sub(beat) <= max(within, patience)
}

const DefaultStaleAfter = 10 * time.Minute
