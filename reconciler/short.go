package reconciler

import (
	"context"
	"fmt"

	"github.com/weir-gitops/weir/reconciler/plan"
)

// tellShort has AWS tell why machines of pools do not come that lack some. Nothing is
// planned by it.
func (s *Scope) tellShort(ctx context.Context, inputs []plan.Input, state plan.State) (plan.State, error) {
	short := plan.Short(inputs)
	if len(short) == 0 {
		return state, nil
	}
	told, err := s.Cloud.Fill(ctx, state, plan.Needs{Short: short})
	if err != nil {
		return state, fmt.Errorf("observe: %w", err)
	}
	return told, nil
}
