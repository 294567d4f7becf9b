package reconciler

import (
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan/basis"
)

// settledElsewhere starts the memory of what pools wanted when they last had
// converged with that of targets of which nothing is known in this pass.
func (s *Scope) settledElsewhere(targets []Desired) map[string]basis.Settled {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := make(map[string]basis.Settled, len(s.memory.Settled))
	for _, t := range targets {
		if t.Set != nil {
			continue
		}
		for key, then := range s.memory.Settled {
			if strings.HasPrefix(key, basis.SettledKey(t.Policy.Target, "")) {
				next[key] = then
			}
		}
	}
	return next
}

func (s *Scope) keepSettled(next map[string]basis.Settled) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory.Settled = next
}
