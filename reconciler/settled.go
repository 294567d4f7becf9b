package reconciler

import (
	"github.com/weir-gitops/weir/reconciler/plan/basis"
)

// settledElsewhere starts the memory of what pools wanted when they last had converged, with the
// targets that are unknown in this pass.
func (s *Scope) settledElsewhere(targets []Desired) map[string]basis.Settled {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := make(map[string]basis.Settled, len(s.memory.Settled))
	unknown := map[string]bool{}
	for _, t := range targets {
		if t.Set == nil {
			unknown[t.Policy.Target] = true
		}
	}
	for key, then := range s.memory.Settled {
		if basis.SettledOf(key, unknown) {
			next[key] = then
		}
	}
	return next
}

func (s *Scope) keepSettled(next map[string]basis.Settled) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory.Settled = next
}
