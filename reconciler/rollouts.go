package reconciler

import (
	"context"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/refusals"
	"github.com/weir-gitops/weir/reconciler/step"
)

// limitRollouts holds rollouts that exceed the smallest limit of the targets, and remembers the
// waiting ones. A rollout that AWS would refuse takes no slot.
func (ps *passState) limitRollouts(context.Context) error {
	targets, limit := ps.batch.Targets, 0
	for _, t := range targets {
		if n := t.Policy.MaxRollouts; n > 0 && (limit == 0 || n < limit) {
			limit = n
		}
	}
	if limit == 0 {
		ps.memory.waiting = nil
		return nil
	}
	moving := plan.RolloutsMoving(ps.state, targets[0].Policy.Instance)
	ps.memory.waiting = plan.LimitRollouts(ps.plans, limit, moving, ps.memory.waiting, refusedRollouts(ps.plans, &ps.memory.refusals, ps.now()))
	return nil
}

// refusedRollouts returns the owners whose steps AWS refused a short while ago.
func refusedRollouts(plans []*plan.Plan, record *refusals.Record, now time.Time) map[plan.Waiting]bool {
	refused := map[plan.Waiting]bool{}
	for _, p := range plans {
		if p == nil {
			continue
		}
		for _, positions := range byOwner(p.Steps) {
			var own []step.Step
			for _, i := range positions {
				own = append(own, p.Steps[i])
			}
			key := refusals.Key{Target: p.Target, Owner: own[0].Owner()}
			if record.Refused(key, requestOf(own), now) != nil {
				refused[plan.Waiting{Target: p.Target, Owner: key.Owner}] = true
			}
		}
	}
	return refused
}

// heldPools returns the pools whose steps are all held.
func heldPools(p *plan.Plan) map[string]bool {
	held := map[string]bool{}
	if p == nil {
		return held
	}
	for _, st := range p.Steps {
		if before, known := held[st.Pool]; st.Pool != "" && (before || !known) {
			held[st.Pool] = st.Held != ""
		}
	}
	return held
}
