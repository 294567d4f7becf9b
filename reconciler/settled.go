package reconciler

import (
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan"
)

// settledElsewhere starts the memory of what pools wanted when they last had
// converged with that of targets of which nothing is known in this pass.
func (s *Scope) settledElsewhere(targets []Desired) map[string]plan.Settled {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := make(map[string]plan.Settled, len(s.memory.Settled))
	for _, t := range targets {
		if t.Set != nil {
			continue
		}
		for key, then := range s.memory.Settled {
			if strings.HasPrefix(key, plan.SettledKey(t.Policy.Target, "")) {
				next[key] = then
			}
		}
	}
	return next
}

func (s *Scope) keepSettled(next map[string]plan.Settled) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory.Settled = next
}
