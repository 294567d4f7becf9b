package reconciler

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/disruption"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/workload"
)

// How long an answer about disruption budgets is kept: they change by the second, and a
// rollout that waits is planned in each pass. A cluster that refuses or does not answer is
// asked less often, so that it holds up one pass and not each.
const (
	budgetsFor   = time.Minute
	noBudgetsFor = 5 * time.Minute
)

// budgetAnswer is an answer that is kept.
type budgetAnswer struct {
	disruption.Answer
	until time.Time
}

// budgets asks the clusters of targets in which a rollout is due, each once, and adds to
// their plans what gets in the way. What it returns waits for the answers.
func (s *Scope) budgets(ctx context.Context, targets []Desired, inputs []basis.Input, plans []*plan.Plan) func() {
	now := s.now()
	maps.DeleteFunc(s.disruptions, func(_ Workload, a *budgetAnswer) bool { return !now.Before(a.until) })
	var wg sync.WaitGroup
	due := make([]bool, len(targets))
	for i := range targets {
		t := &targets[i]
		due[i] = plans[i] != nil && !t.Policy.Adoption.Asked && disruption.Due(plans[i], inputs[i])
		if !due[i] || t.Workload == nil || s.disruptions[t.Workload] != nil {
			continue
		}
		if s.disruptions == nil {
			s.disruptions = map[Workload]*budgetAnswer{}
		}
		a := &budgetAnswer{}
		s.disruptions[t.Workload] = a
		wg.Go(func() {
			a.Answer = budgetsOf(ctx, t.Workload)
			switch a.until = now.Add(budgetsFor); {
			case ctx.Err() != nil:
				a.until = now // the next caller reads it again
			case errors.Is(a.Err, errSlow), workload.KindOf(a.Err) == workload.Forbidden:
				a.until = now.Add(noBudgetsFor)
			}
		})
	}
	return func() {
		wg.Wait()
		for i := range targets {
			if !due[i] {
				continue
			}
			var answer *disruption.Answer
			switch a := s.disruptions[targets[i].Workload]; {
			case a != nil:
				answer = &a.Answer
			case targets[i].Policy.JoinTokens.Prefix == "": // nothing says how to reach the cluster
				plans[i].Diagnostics = append(plans[i].Diagnostics, disruption.Undrained(plans[i], inputs[i])...)
				continue
			}
			plans[i].Diagnostics = append(plans[i].Diagnostics, disruption.Of(plans[i], inputs[i], answer)...)
		}
	}
}

func budgetsOf(ctx context.Context, w Workload) disruption.Answer {
	ctx, cancel := context.WithTimeoutCause(ctx, nodesTimeout, errSlow)
	defer cancel()
	a := disruption.Read(ctx, w)
	if a.Err != nil && errors.Is(context.Cause(ctx), errSlow) {
		a.Err = errSlow
	}
	return a
}
