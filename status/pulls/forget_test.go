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
	if n := len(b.w.standings.live) + len(b.w.standings.moved); n > 0 {
		t.Errorf("%d targets are remembered", n)
	}
	if len(b.w.commits.known) > remembered || len(b.w.commits.order) > remembered {
		t.Errorf("%d commits are remembered", len(b.w.commits.known))
	}
}
