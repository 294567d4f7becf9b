package reconciler

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/workload"
)

// budgetCluster answers about disruption budgets, and counts the questions.
type budgetCluster struct {
	Workload
	err   error
	asked int
}

func (c *budgetCluster) DisruptionBudgets(context.Context) ([]workload.DisruptionBudget, error) {
	c.asked++
	return nil, c.err
}

// A cluster that refuses to answer is asked less often, and an interrupted read does not count.
func TestBudgetsAreReadAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		err         error
		interrupted bool
		kept        time.Duration
	}{
		"an answer":   {kept: time.Minute},
		"a refusal":   {err: &workload.Error{Kind: workload.Forbidden}, kept: 5 * time.Minute},
		"a failure":   {err: &workload.Error{}, kept: time.Minute},
		"interrupted": {interrupted: true, kept: 0},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tc.interrupted {
				cancel()
			}
			var m budgetMemory
			c := &budgetCluster{err: tc.err}
			read := func(after time.Duration) int {
				m.forget(noon.Add(after))
				var wg sync.WaitGroup
				m.read(ctx, c, noon.Add(after), &wg)
				m.read(ctx, c, noon.Add(after), &wg) // of another target of the cluster
				wg.Wait()
				return c.asked
			}
			if n := read(0); n != 1 || m.of(c) == nil {
				t.Fatalf("asked %d times", n)
			}
			if tc.kept > 0 && read(tc.kept-1) != 1 {
				t.Error("asked again too early")
			}
			if n := read(tc.kept); n != 2 {
				t.Errorf("asked %d times in the end", n)
			}
			if m.of(&budgetCluster{}) != nil {
				t.Error("an answer of a cluster that was not asked")
			}
		})
	}
}
