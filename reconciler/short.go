package reconciler

import (
	"context"
	"fmt"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/plan/launch"
)

// explainShortages asks AWS why machines do not come, for the pools that lack some, and which launches failed, where gates ask. Nothing is
// planned by it.
func (s *Scope) explainShortages(ctx context.Context, inputs []basis.Input, state observed.State) (observed.State, error) {
	short, watched := launch.Short(inputs), launch.Watched(inputs)
	if len(short)+len(watched) == 0 {
		return state, nil
	}
	explained, err := s.Cloud.Fill(ctx, state, observed.Needs{Short: short, Failures: watched})
	if err != nil {
		return state, fmt.Errorf("observe: %w", err)
	}
	return explained, nil
}
