package awscloud

import (
	"sync"
	"time"
)

// settling is how long AWS may take until what one call made is seen by another
// service: a new launch template by Auto Scaling, for example.
// Assumed of AWS: visible-in-two-minutes.
const settling = 120 * time.Second

// freshNames remembers names and ids of what weir made a moment ago. That such a
// thing is "not found" will pass by itself.
type freshNames struct {
	now func() time.Time

	mu   sync.Mutex
	made map[string]time.Time
}

func newFreshNames(now func() time.Time) *freshNames {
	return &freshNames{now: now, made: map[string]time.Time{}}
}

func (f *freshNames) add(names ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	for name, at := range f.made {
		if now.Sub(at) >= settling {
			delete(f.made, name)
		}
	}
	for _, n := range names {
		if n != "" {
			f.made[n] = now
		}
	}
}

func (f *freshNames) drop(names ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range names {
		delete(f.made, n)
	}
}

// any reports whether one of the names is fresh.
func (f *freshNames) any(names ...string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	for _, n := range names {
		if at, ok := f.made[n]; ok && n != "" && now.Sub(at) < settling {
			return true
		}
	}
	return false
}
