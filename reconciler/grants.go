package reconciler

import (
	"context"
	"fmt"

	"github.com/weir-gitops/weir/reconciler/step"
)

// recordGrants records the grants under which a first step is about to run. Without its
// record a plan does not run at all: after a crash in the middle of its steps
// nothing would let the rest follow.
func (ps *passState) recordGrants(ctx context.Context) error {
	for i, r := range ps.reports {
		d := &ps.targets[i]
		if d.Begin == nil || r.Plan == nil || !r.Plan.Granted || !d.Policy.Gates.Grant.Exact || r.Plan.Runnable() == 0 || ctx.Err() != nil {
			continue
		}
		err := d.Begin(r.Plan)
		if err == nil {
			continue
		}
		r.Err = fmt.Errorf("record that the approved plan begins, without which none of it runs: %w", err)
		r.Plan.Granted = false
		for n := range r.Plan.Steps {
			if st := &r.Plan.Steps[n]; st.Held == "" {
				st.Held, st.HeldReason = step.HeldApproval, "the approval could not be recorded as used"
				st.HeldEnds = "weir, once it can write its records"
			}
		}
	}
	return nil
}
