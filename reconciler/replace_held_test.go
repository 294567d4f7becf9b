package reconciler_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan/model"
)

// A replacement that is half done when the target comes to be held stays so: neither half goes
// on, whether the revision that it is held to wants the new nodegroup or the old one.
func TestAHeldReplacementStaysHalfDone(t *testing.T) {
	for passes := range 3 {
		for _, capacity := range []string{"SPOT", "ON_DEMAND"} {
			t.Run(fmt.Sprint(capacity, " after ", passes+1), func(t *testing.T) {
				w := newWorld(t)
				w.settle(target("blue", spotPool("ng", "ON_DEMAND", 1)))
				after := target("blue", spotPool("ng", "SPOT", 1))
				for range passes + 1 {
					w.must(reconciler.Apply, after)
					w.clock.Advance(2 * time.Second)
				}
				w.srv.ResetCalls()
				held := target("blue", spotPool("ng", capacity, 1))
				held.Policy.Fallback = &model.Fallback{Revision: strings.Repeat("1", 40), Recorded: true}
				for range 6 {
					if p := w.must(reconciler.Apply, held)[0].Plan; p != nil && len(p.Steps) > 0 { // it has none where it is only observed
						t.Errorf("planned: %v", p.Steps)
					}
					w.clock.Advance(time.Minute)
				}
				if _, writes := w.calls(); writes != 0 {
					t.Errorf("calls %v", w.srv.CallCounts())
				}
				if got := w.nodegroups(); len(got) == 0 || passes < 2 && len(got) != 2 {
					t.Errorf("nodegroups are %v", got)
				}
				w.settle(after) // and a commit that can be rendered takes it to its end
				w.only("SPOT", "ng-")
			})
		}
	}
}
