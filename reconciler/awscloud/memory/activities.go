package memory

import (
	"maps"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
)

const (
	// findingsKept bounds the number of remembered findings. findingsUnusedFor is the time after which a
	// finding that no plan needs is forgotten.
	findingsKept      = 1000
	findingsUnusedFor = time.Hour
)

// Activities remembers the scaling activities for findings, so that a lasting finding does not cost a call
// in each pass.
type Activities struct {
	mu    sync.Mutex
	known map[observed.ActivityQuery]activities
}

type activities struct {
	observed.Activities
	used time.Time
}

// Get returns the activities for a finding.
func (l *Activities) Get(q observed.ActivityQuery, now time.Time) (observed.Activities, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, ok := l.known[q]
	if ok {
		a.used = now
		l.known[q] = a
	}
	return a.Activities, ok
}

// Put remembers the activities for a finding.
func (l *Activities) Put(q observed.ActivityQuery, a observed.Activities, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.known) >= findingsKept {
		clear(l.known)
	}
	l.known[q] = activities{a, now}
}

// Sweep forgets findings that no plan has needed recently.
func (l *Activities) Sweep(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.known, func(_ observed.ActivityQuery, a activities) bool { return now.Sub(a.used) >= findingsUnusedFor })
}
