package reconciler

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/disruption"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/workload"
)

// The times for which an answer about disruption budgets is reused. Budgets change by the second,
// and a waiting rollout is planned in every pass. weir queries a cluster that refuses or does not
// answer less often, so that it does not delay every pass.
const (
	budgetsFor   = time.Minute
	noBudgetsFor = 5 * time.Minute
)

// budgetMemory keeps the answers of clusters about their disruption budgets.
type budgetMemory struct {
	answers map[Workload]*budgetAnswer
}

type budgetAnswer struct {
	disruption.Answer
	until time.Time
}

// read reads the budgets of a cluster in a goroutine of wg, unless an answer is kept or being read.
func (m *budgetMemory) read(ctx context.Context, w Workload, now time.Time, wg *sync.WaitGroup) {
	if m.answers[w] != nil {
		return
	}
	if m.answers == nil {
		m.answers = map[Workload]*budgetAnswer{}
	}
	a := &budgetAnswer{}
	m.answers[w] = a
	wg.Go(func() {
		a.Answer = budgetsOf(ctx, w)
		switch a.until = now.Add(budgetsFor); {
		case ctx.Err() != nil:
			a.until = now // the next caller reads it again
		case errors.Is(a.Err, errSlow), workload.KindOf(a.Err) == workload.Forbidden:
			a.until = now.Add(noBudgetsFor)
		}
	})
}

// forget drops the answers that are too old.
func (m *budgetMemory) forget(now time.Time) {
	maps.DeleteFunc(m.answers, func(_ Workload, a *budgetAnswer) bool { return !now.Before(a.until) })
}

// of returns the answer of a cluster, nil if it was not queried.
func (m *budgetMemory) of(w Workload) *disruption.Answer {
	if a := m.answers[w]; a != nil {
		return &a.Answer
	}
	return nil
}

// readBudgets reads the budgets of clusters of targets in which a rollout is due, each cluster
// once. It returns a function that waits for the answers and adds to the plans the reasons why a
// rollout is blocked.
func (ps *passState) readBudgets(ctx context.Context) (add func()) {
	now, budgets := ps.now(), &ps.memory.budgets
	budgets.forget(now)
	var wg sync.WaitGroup
	due := make([]bool, len(ps.targets))
	for i := range ps.targets {
		t := &ps.targets[i]
		due[i] = ps.plans[i] != nil && !t.Policy.Adoption.Asked && disruption.Due(ps.plans[i], ps.inputs[i])
		if due[i] && t.Workload != nil {
			budgets.read(ctx, t.Workload, now, &wg)
		}
	}
	return func() {
		wg.Wait()
		for i := range ps.targets {
			if due[i] {
				addBudgets(&ps.targets[i], ps.plans[i], ps.inputs[i], budgets.of(ps.targets[i].Workload))
			}
		}
	}
}

// addBudgets adds to a plan the reasons why its rollouts are blocked. answer is nil if weir has no
// access to the cluster.
func addBudgets(t *Desired, p *plan.Plan, in model.Input, answer *disruption.Answer) {
	if answer == nil && t.Policy.JoinTokens.Prefix == "" { // no access to the cluster is configured
		p.Diagnostics = append(p.Diagnostics, disruption.Undrained(p, in)...)
		return
	}
	p.Diagnostics = append(p.Diagnostics, disruption.Of(p, in, answer)...)
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
