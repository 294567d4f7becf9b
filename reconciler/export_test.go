package reconciler

import (
	"context"
	"maps"

	"github.com/weir-gitops/weir/reconciler/plan"
)

// Remembered counts what the scope remembers of things that have names.
func (s *Scope) Remembered() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.refusals.Sizes()
	maps.Copy(out, map[string]int{
		"clusters": len(s.clusters), "keepers": len(s.keepers), "left": len(s.left), "unsure": len(s.unsure),
		"started": len(s.memory.Started), "in service": len(s.memory.InService), "settled": len(s.memory.Settled),
		"refreshes": len(s.memory.Refreshes),
	})
	return out
}

// PassBatch makes a pass over a batch that applies.
func (s *Scope) PassBatch(ctx context.Context, b Batch) ([]*plan.Report, error) {
	return s.pass(ctx, b, Apply)
}

// AttachOrigins is for the test of origins.
var AttachOrigins = attachOrigins
