package reconciler_test

import (
	"sync"
	"testing"

	"github.com/weir-gitops/weir/reconciler"
)

// Pull requests of two sources are planned in one scope at the same time: passes
// over it wait for each other. The race detector tells if they do not.
func TestPassesOverOneScopeAtTheSameTime(t *testing.T) {
	w := newWorld(t)
	wanted := target("t", groupPool("a", "m5.large", 1))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 3 {
				if _, err := w.scope.Pass(t.Context(), []reconciler.Desired{wanted}, reconciler.PlanOnly); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
