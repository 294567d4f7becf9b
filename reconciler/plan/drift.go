package plan

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// RememberConverged adds to next the desired state of the target's pools that have converged after a pass with
// the plan p and the statuses. A pool that has not followed an image yet has not converged. Neither
// has a pool that something else may have been applied to, even after Git takes that back: a
// difference that weir itself has written is no drift.
func RememberConverged(next, old map[string]model.LastConverged, in model.Input, p *Plan, statuses []PoolStatus) {
	if in.Policy.Adoption.Asked {
		return // only part of the pools was planned
	}
	for i := range in.Set.Pools {
		pool := &in.Set.Pools[i]
		key := model.ConvergedKey(in.Policy.Target, pool.Key.String())
		known := p.pools.Of(pool.Key)
		left := known != nil && (known.Behind || known.Undone)
		stands := statuses[i].Converged || statuses[i].Ready().Reason == ReasonHeld
		if stands && !left {
			next[key] = model.LastConverged{Pool: pool, Answers: in.Answers}
		} else if s, ok := old[key]; ok && (in.Earlier(pool.Key.String()) != nil || in.Policy.ReportOnly || s.Of(pool)) {
			next[key] = s
		}
	}
}

// markDrift marks and reports the steps that correct changes from outside Git. If sizes or machines
// differ, it requests the cause from AWS.
func (c *computation) markDrift() {
	if len(c.Steps) == 0 {
		return
	}
	pools := make(map[string]*intent.Pool, len(c.in.Set.Pools))
	for i := range c.in.Set.Pools {
		pools[c.in.Set.Pools[i].Key.String()] = &c.in.Set.Pools[i]
	}
	listed := map[string]bool{}
	var order []string
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Verb == step.Adopt || s.Verb == step.Delete || s.Verb == step.PruneVersion || s.Held == step.HeldStopped || s.Held == step.HeldWaiting || s.Held == step.HeldControlPlane || s.Held == step.HeldWave || s.Held == step.HeldGate || model.TakesAdopted(*s) || !c.drifted(*s, pools) {
			continue
		}
		d := c.cause(s)
		s.Drift = &d
		if s.Pool != "" && !listed[s.Pool] {
			listed[s.Pool] = true
			order = append(order, s.Pool)
		}
	}
	for _, key := range order {
		c.reportDrift(pools[key])
	}
}

// drifted reports whether the step is due although Git has not changed.
func (c *computation) drifted(s step.Step, pools map[string]*intent.Pool) bool {
	owners := s.Pools
	if s.Pool != "" {
		owners = []string{s.Pool}
	}
	for _, key := range owners {
		pool := pools[key]
		if pool == nil {
			return false
		}
		drifts, known := c.in.Drifts(pool)
		if known && !drifts || !known && (!c.in.Policy.ReportOnly || !wasMade(c.in, pool)) {
			return false
		}
	}
	return len(owners) > 0
}

// wasMade reports whether AWS has, or had, resources of the pool. A pool that was never created
// cannot drift.
func wasMade(in model.Input, pool *intent.Pool) bool {
	t := pool.LaunchTemplate
	return in.Exists(pool) || t != nil && pool.LaunchConfig == nil && in.State.Templates[t.Name].Tags[observed.TagPool] == pool.Key.String()
}

// reportDrift reports the differences of a pool, once for all of its steps.
func (c *computation) reportDrift(pool *intent.Pool) {
	var words []string
	for _, s := range c.Steps {
		if s.Drift == nil || s.Pool != pool.Key.String() {
			continue
		}
		text := "the " + string(s.Resource) + " " + s.Name + ": "
		if what := model.ChangeWords(s.Changes); what != "" && s.Verb != step.Create {
			text += what
		} else {
			text += s.Reason
		}
		if s.Drift.Cause != "" {
			text += " (" + s.Drift.Cause + ")"
		}
		words = append(words, text)
	}
	sev, what := diag.Info, "AWS differs, although Git did not change; weir corrects it: "
	_, known := c.in.Memory.Converged[model.ConvergedKey(c.in.Policy.Target, pool.Key.String())]
	switch {
	case c.in.Policy.ReportOnly && !known:
		sev, what = diag.Warning, "AWS differs from Git, and the target is in report mode: "
	case c.in.Policy.ReportOnly:
		sev, what = diag.Warning, "AWS differs, although Git did not change, and the target is in report mode: "
	case c.in.HoldOf(pool) != "":
		sev, what = diag.Warning, "AWS differs, although Git did not change, and the pool is "+string(c.in.HoldOf(pool))+": "
	}
	c.Note(sev, pool, nil, "drift", what+strings.Join(words, "; "), "")
}

// cause looks for the cause of different sizes or machines in the group's scaling activities.
func (c *computation) cause(s *step.Step) step.Drift {
	if p := c.pools.Named(s.Pool); p != nil && p.Moved != "" && s.Verb == step.Rollout {
		return step.Drift{Cause: p.Moved}
	}
	action, explained := s.Do.(step.Explained)
	if !explained {
		return step.Drift{}
	}
	matches := action.Explained(c.in.State.Groups[s.Name])
	if matches == nil {
		return step.Drift{}
	}
	q := observed.ActivityQuery{Group: s.Name, Finding: string(content.Canonical(s.Changes))}
	have, read := c.in.State.Activities[q]
	if !read {
		c.Needs.Activities = append(c.Needs.Activities, q)
		return step.Drift{}
	}
	if i := slices.IndexFunc(have.List, matches); i >= 0 {
		return step.Drift{At: have.List[i].At, Cause: content.Printable(have.List[i].Cause)}
	}
	return step.Drift{Cause: have.Refused}
}

// withDrift adds the condition Drifted to a pool with drift.
func (f findings) withDrift(conditions []Condition, pool *intent.Pool) []Condition {
	if len(f.drifts) == 0 {
		return conditions
	}
	d := f.drifts[pool.Infrastructure.String()]
	if d == nil {
		return conditions
	}
	return append(conditions, Condition{Type: "Drifted", Status: "True", Severity: "Warning", Reason: "Drift", Message: d.Summary})
}
