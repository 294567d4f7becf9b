package memory

import (
	"maps"
	"sync"
	"time"
)

// settling is the maximum time until the result of a call is visible to another AWS service, such as a new
// launch template to Auto Scaling.
// Assumed of AWS: visible-in-two-minutes.
const settling = 120 * time.Second

// forgotten is the time after its last refusal at which an unknown name counts as new again. It is longer
// than such a step stays parked.
const forgotten = time.Hour

// UnknownNames remembers the names that weir did not make and AWS refuses, each with the time of the first
// refusal.
type UnknownNames struct {
	now func() time.Time

	mu    sync.Mutex
	names map[string]unknownName
}

type unknownName struct{ first, last time.Time }

// Young notes a refusal, and reports whether the name may still become visible.
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

// MadeNames remembers names and ids of resources that weir made recently. If AWS does not find such a
// resource, the error is transient.
type MadeNames struct {
	now func() time.Time

	mu   sync.Mutex
	made map[string]time.Time
}

// Add notes that resources were made now. It does not forget older ones, which would take quadratic time for many new
// pools.
func (m *MadeNames) Add(names ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for _, n := range names {
		if n != "" {
			m.made[n] = now
		}
	}
}

// Sweep forgets resources that were made long enough ago. Each read of AWS calls it once.
func (m *MadeNames) Sweep() {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	maps.DeleteFunc(m.made, func(_ string, at time.Time) bool { return now.Sub(at) >= settling })
}

// Drop forgets deleted resources.
func (m *MadeNames) Drop(names ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range names {
		delete(m.made, n)
	}
}

// Any reports whether one of the names was made recently.
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
