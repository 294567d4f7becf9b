package awscloud

import (
	"maps"
	"sync"
	"time"
)

// settling is how long AWS may take until what one call made is seen by another
// service: a new launch template by Auto Scaling, for example.
// Assumed of AWS: visible-in-two-minutes.
const settling = 120 * time.Second

// forgotten is how long after its last refusal a name that AWS does not know counts
// as new again. It is longer than such a step is left alone.
const forgotten = time.Hour

// refusedNames remembers since when AWS does not know names that weir did not make.
type refusedNames struct {
	now func() time.Time

	mu    sync.Mutex
	names map[string]refusedName
}

type refusedName struct{ first, last time.Time }

// young notes a refusal, and reports whether the name may still be on its way.
func (r *refusedNames) young(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	for n, at := range r.names {
		if now.Sub(at.last) >= forgotten {
			delete(r.names, n)
		}
	}
	at, ok := r.names[name]
	if !ok {
		at.first = now
	}
	at.last = now
	r.names[name] = at
	return now.Sub(at.first) < settling
}

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
	f.sweep(now)
	for _, n := range names {
		if n != "" {
			f.made[n] = now
		}
	}
}

// forget lets go of what is fresh no more.
func (f *freshNames) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sweep(f.now())
}

func (f *freshNames) sweep(now time.Time) {
	maps.DeleteFunc(f.made, func(_ string, at time.Time) bool { return now.Sub(at) >= settling })
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
