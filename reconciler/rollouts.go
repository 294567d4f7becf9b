package reconciler

import (
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/refusals"
	"github.com/weir-gitops/weir/reconciler/step"
)

// limitRollouts holds what would exceed the smallest limit of the targets, and remembers the
// waiting rollouts.
func (s *Scope) limitRollouts(plans []*plan.Plan, targets []Desired, state *observed.State) {
	limit := 0
	for _, t := range targets {
		if n := t.Policy.MaxRollouts; n > 0 && (limit == 0 || n < limit) {
			limit = n
		}
	}
	if limit == 0 {
		s.waiting = nil
		return
	}
	refused := map[plan.Waiting]bool{}
	for _, p := range plans {
		if p == nil {
			continue
		}
		for _, turn := range turns(p.Steps) {
			var own []step.Step
			for _, i := range turn {
				own = append(own, p.Steps[i])
			}
			key := refusals.Key{Target: p.Target, Owner: own[0].Owner()}
			if s.refusals.Refused(key, requestOf(own), s.now()) != nil {
				refused[plan.Waiting{Target: p.Target, Owner: own[0].Owner()}] = true
			}
		}
	}
	moving := plan.RolloutsMoving(state, targets[0].Policy.Instance)
	s.waiting = plan.LimitRollouts(plans, limit, moving, s.waiting, refused)
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
