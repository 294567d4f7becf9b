package fleet

import (
	"testing"

	"github.com/weir-gitops/weir/reconciler/targetspec"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/slot"
)

// Renders wait as what they are for: a proposal's behind all others, and each in its source's turn.
func TestRendersSayForWhomTheyAre(t *testing.T) {
	of := &targetspec.Target{Source: "fleet"}
	for name, c := range map[string]struct {
		it   item
		want slot.Class
	}{
		"followed":           {item{target: of}, slot.Followed},
		"an earlier commit":  {item{target: of, earlier: true}, slot.Earlier},
		"a pull request":     {item{target: of, proposed: true}, slot.Proposed},
		"a held one's draft": {item{target: of, proposed: true, earlier: true}, slot.Proposed},
	} {
		c.it.budget = newBudget(targetspec.Limits{}.WithDefaults(), render.NewShared(nil))
		if got := c.it.options().For; got != (slot.Caller{Source: "fleet", Class: c.want}) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
