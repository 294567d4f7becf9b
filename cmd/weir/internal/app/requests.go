package app

import (
	"sync"
	"sync/atomic"
)

// requests are requests of other parts of the daemon to the conductor. They outlive reloads. Making
// a request never blocks.
type requests struct {
	// wakeup wakes the conductor; all makes it nudge every scope.
	wakeup signal
	all    atomic.Bool
	// sourcesDue says that a command wants the sources to look at Git.
	sourcesDue atomic.Bool

	mu sync.Mutex
	// replay lists the sources for which this daemon has begun to speak.
	replay map[string]bool
}

func newRequests() *requests { return &requests{wakeup: newSignal(), replay: map[string]bool{}} }

// passAll starts a pass over every scope now.
func (r *requests) passAll() {
	r.all.Store(true)
	r.wake()
}

// wake makes the conductor compose now what Git wants, and pass over the scopes of
// which something else is wanted than before.
func (r *requests) wake() { r.wakeup.send() }

// readSources starts a pass over every scope, before which all sources read Git.
func (r *requests) readSources() {
	r.sourcesDue.Store(true)
	r.passAll()
}

// speak makes the conductor replay the reports of a source, for which this daemon begins to speak.
func (r *requests) speak(source string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replay[source] = true
}

// spoken returns the sources for which this daemon has begun to speak, once.
func (r *requests) spoken() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.replay
	r.replay = map[string]bool{}
	return out
}
