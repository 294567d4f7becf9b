package world

import (
	"slices"
	"sync"
)

// Script is a list of armed faults of one kind. It is safe for concurrent use.
type Script[F any] struct {
	mu    sync.Mutex
	armed []*F
}

// Add arms a fault and returns a function that removes it.
func (s *Script[F]) Add(fault F) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	armed := &fault
	s.armed = append(slices.Clip(s.armed), armed)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.armed = slices.DeleteFunc(slices.Clone(s.armed), func(f *F) bool { return f == armed })
	}
}

// Replace replaces all faults by the given ones.
func (s *Script[F]) Replace(faults []F) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = nil
	for i := range faults {
		s.armed = append(s.armed, &faults[i])
	}
}

// List returns the armed faults, in the order in which they were added.
func (s *Script[F]) List() []*F {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.armed
}
