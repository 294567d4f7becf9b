package pulls

import (
	"fmt"
	"testing"

	"github.com/weir-gitops/weir/reconciler/plan"
)

// Targets that come and go, and commits, leave nothing behind.
func TestWhatIsGoneIsForgotten(t *testing.T) {
	b := newBench(t, "", "")
	for i := range 300 {
		name := fmt.Sprint("t", i)
		for _, digest := range []string{"one", "two"} { // it moves
			b.w.Reported(&plan.Report{Source: "s", Target: name, Revision: fmt.Sprint(i), Touched: true, Err: fmt.Errorf("%s", digest)})
			b.w.Reported(&plan.Report{Source: "s", Target: name, Revision: fmt.Sprint(i)})
		}
		b.w.Forget(name)
	}
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	if n := len(b.w.live) + len(b.w.moved); n > 0 {
		t.Errorf("%d targets are remembered", n)
	}
	if len(b.w.commits) > remembered || len(b.w.order) > remembered {
		t.Errorf("%d commits are remembered", len(b.w.commits))
	}
}
