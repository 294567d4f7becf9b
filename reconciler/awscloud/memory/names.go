package memory

import (
	"maps"
	"sync"
	"time"
)

// settling is the time that AWS may take until another service sees the result of a call: a new
// launch template by Auto Scaling, for example.
// Assumed of AWS: visible-in-two-minutes.
const settling = 120 * time.Second

// forgotten is the time after its last refusal when a name that AWS does not know counts as new
// again. It is longer than such a step stays parked.
const forgotten = time.Hour

// UnknownNames remembers since when AWS does not know names that weir did not make.
type UnknownNames struct {
	now func() time.Time

	mu    sync.Mutex
	names map[string]unknownName
}

type unknownName struct{ first, last time.Time }

// Young notes a refusal, and reports whether the name may still be on its way.
func (u *UnknownNames) Young(name string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	maps.DeleteFunc(u.names, func(_ string, at unknownName) bool { return now.Sub(at.last) >= forgotten })
	at, ok := u.names[name]
	if !ok {
		at.first = now
	}
	at.last = now
	u.names[name] = at
	return now.Sub(at.first) < settling
}

// MadeNames remembers names and ids of what weir made a moment ago. If AWS does not
// find such a resource, that passes by itself.
type MadeNames struct {
	now func() time.Time

	mu   sync.Mutex
	made map[string]time.Time
}

// Add notes that something was made now.
func (m *MadeNames) Add(names ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	m.sweep(now)
	for _, n := range names {
		if n != "" {
			m.made[n] = now
		}
	}
}

// Sweep forgets what was made long enough ago.
func (m *MadeNames) Sweep() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep(m.now())
}

func (m *MadeNames) sweep(now time.Time) {
	maps.DeleteFunc(m.made, func(_ string, at time.Time) bool { return now.Sub(at) >= settling })
}

// Drop forgets what was deleted.
func (m *MadeNames) Drop(names ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range names {
		delete(m.made, n)
	}
}

// Any reports whether one of the names was made a moment ago.
func (m *MadeNames) Any(names ...string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for _, n := range names {
		if at, ok := m.made[n]; ok && n != "" && now.Sub(at) < settling {
			return true
		}
	}
	return false
}
