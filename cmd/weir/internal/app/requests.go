package app

import (
	"sync"
	"sync/atomic"

	"github.com/weir-gitops/weir/reconciler"
)

// requests contains requests of other parts of the daemon to the conductor. It outlives reloads. Its
// methods never block.
type requests struct {
	// wakeup wakes the conductor. all makes it nudge every scope.
	wakeup signal
	all    atomic.Bool
	// sourcesDue says that a command requests that the sources read Git.
	sourcesDue atomic.Bool

	mu sync.Mutex
	// replay contains the sources that this daemon has just started to own.
	replay map[string]bool
}

func newRequests() *requests { return &requests{wakeup: newSignal(), replay: map[string]bool{}} }

// passAll starts a pass over every scope immediately.
func (r *requests) passAll() {
	r.all.Store(true)
	r.wake()
}

// wake makes the conductor compose the desired state now, and pass over the scopes whose desired state has
// changed.
func (r *requests) wake() { r.wakeup.send() }

// readSources starts a pass over every scope. All sources read Git before it.
func (r *requests) readSources() {
	r.sourcesDue.Store(true)
	r.passAll()
}

// speak makes the conductor replay the reports of a source that this daemon starts to own.
func (r *requests) speak(source string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replay[source] = true
}

// spoken returns the sources that this daemon has started to own since the last call.
func (r *requests) spoken() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.replay
	r.replay = map[string]bool{}
	return out
}

// scopesOf returns the accounts and regions of a target.
func (a *App) scopesOf(target string) (keys []reconciler.ScopeKey) {
	a.passes.read(func(m *memory) { keys = m.scopesOf(target) })
	return keys
}
