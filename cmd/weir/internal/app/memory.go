package app

import (
	"maps"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/status/waves"
)

// memory stores the results of passes for the next pass and for commands. It outlives reloads of the
// configuration. passes.mu guards it.
type memory struct {
	before gates.Before
	// conditions contains the conditions of the existing targets.
	conditions map[string]gates.Conditions
	// blank contains the targets that have no render yet.
	blank map[string]bool
	// batches contains the batches of the last composition; nil during a reload.
	batches map[reconciler.ScopeKey]reconciler.Batch
	// scopes maps the name of a target to the scopes of its batches, because each report needs them.
	scopes map[string][]reconciler.ScopeKey
	// waiting maps the name of a target to the scopes with targets that wait for it.
	waiting map[string][]reconciler.ScopeKey
	// fresh contains, by target, the minimum time of AWS's answers for its next pass, because a later target
	// has seen newer facts.
	fresh map[string]time.Time
	// unused contains the reasons why the last pass could not use approvals. Each is reported once.
	unused map[string]bool
	// specs contains the FleetRollouts of each source.
	specs map[string]fleetSpecs
	// busy contains the targets that have something to end when they converge.
	busy map[string]bool
}

// store stores a composition.
func (m *memory) store(c *fleet.Composition) {
	m.conditions, m.batches, m.waiting = c.Conditions, map[reconciler.ScopeKey]reconciler.Batch{}, map[string][]reconciler.ScopeKey{}
	m.blank, m.scopes = map[string]bool{}, map[string][]reconciler.ScopeKey{}
	for _, r := range c.Rendering {
		m.blank[r.Target] = r.Blank
	}
	for _, b := range c.Batches {
		m.batches[b.Key] = b
		for i := range b.Targets {
			own := b.Targets[i].Policy.Target
			m.scopes[own] = append(m.scopes[own], b.Key)
			for _, name := range c.Conditions[b.Targets[i].Policy.Target].DependsOn {
				if keys := m.waiting[name]; len(keys) == 0 || keys[len(keys)-1] != b.Key {
					m.waiting[name] = append(keys, b.Key)
				}
			}
		}
	}
	m.specs = specsOf(m.batches)
	m.before.Keep(c.Conditions)
	maps.DeleteFunc(m.fresh, func(name string, _ time.Time) bool { _, is := c.Conditions[name]; return !is })
}

// scopesOf returns the scopes of a target.
func (m *memory) scopesOf(target string) []reconciler.ScopeKey {
	if m.batches == nil {
		return nil
	}
	return m.scopes[target]
}

// verdicts returns the verdicts in the last reports on revisions at which targets may be held.
func (m *memory) verdicts() map[string]fleet.Judged {
	out := map[string]fleet.Judged{}
	for name, r := range m.before.Reports {
		j := fleet.Judged{Head: r.Revision, Wanted: r.Wanted, Pools: map[string]fleet.JudgedPool{}}
		if h := r.Fallback; h != nil {
			j.Revision, j.Verdict = h.Revision, h.Verdict
		}
		for pool, h := range r.FallbackPools {
			j.Pools[pool] = fleet.JudgedPool{Revision: h.Revision, Verdict: h.Verdict}
		}
		if j.Revision != "" || len(j.Pools) > 0 {
			out[name] = j
		}
	}
	return out
}

// planned returns the current plans with a digest. behind lists the targets that have a newer commit. ended
// lists the partly applied approvals of earlier commits of these targets.
func (m *memory) planned(digest string, records gates.Records) (plans []gates.Grant, behind []string, ended []gates.Grant) {
	plans = gates.Approved(gates.Approval{Digest: digest}, m.before)
	for _, g := range plans {
		for _, key := range m.scopesOf(g.Target) {
			targets := m.batches[key].Targets
			ended = append(ended, gates.Superseded(targets, m.conditions, gates.Records{Grants: slices.DeleteFunc(slices.Clone(records.Grants), func(o gates.Grant) bool { return o.Target != g.Target })})...)
			if slices.ContainsFunc(targets, func(t reconciler.Desired) bool {
				return t.Policy.Target == g.Target && t.Commit.Revision != m.before.Reports[g.Target].Revision
			}) && !slices.Contains(behind, g.Target) {
				behind = append(behind, g.Target)
			}
		}
	}
	return plans, behind, ended
}

// pending returns the steps that unused approvals permit.
func (m *memory) pending(records gates.Records) map[string]gates.Grant {
	m.busy = map[string]bool{}
	out := map[string]gates.Grant{}
	for _, approval := range records.Approvals {
		ready := gates.Approved(approval, m.before)
		if together(approval, ready) {
			continue // it waits to be split; nothing else waits with it
		}
		for _, g := range ready {
			out[g.Target], m.busy[g.Target] = g, true
		}
	}
	for _, g := range records.Grants {
		m.busy[g.Target] = true
	}
	for _, o := range records.Overrides {
		m.busy[o.Target] = true
	}
	return out
}

// note stores a report, and returns the scopes whose passes may now be able to continue, except scopes that
// wait for an approval. first says that the plan differs from the plan in the previous report.
func (m *memory) note(r *plan.Report) (next []reconciler.ScopeKey, first bool) {
	stood, last := m.before.Standings[r.Target], m.before.Reports[r.Target]
	m.before.Note(r)
	first = r.Plan != nil && len(r.Plan.Steps) > 0 && (last == nil || last.Plan == nil || last.Plan.Digest() != r.Plan.Digest())
	if m.before.Standings[r.Target].Opens(stood) {
		next = append(next, m.waiting[r.Target]...)
	}
	for name, fresh := range gates.Renewals(r.Target, m.conditions, m.before) {
		if fresh.After(m.fresh[name]) {
			if m.fresh == nil {
				m.fresh = map[string]time.Time{}
			}
			m.fresh[name] = fresh
			next = append(next, m.scopesOf(name)...)
		}
	}
	return next, first
}

// moved reports whether a report is about another account or region than its target has now. Such a report
// is from a pass that ended after a reload, or from a member that has not reloaded yet. accountOf returns
// the account of a scope, if it is known.
func (m *memory) moved(r *plan.Report, accountOf func(reconciler.ScopeKey) string) bool {
	keys := m.scopesOf(r.Target)
	return len(keys) > 0 && !slices.ContainsFunc(keys, func(key reconciler.ScopeKey) bool {
		account := accountOf(key)
		return key.Region == "" || key.Region == r.Region && (account == r.Account || account == "" || r.Account == "")
	})
}

// reports returns the last reports of all targets.
func (m *memory) reports() []*plan.Report { return slices.Collect(maps.Values(m.before.Reports)) }

// takesTurns reports whether any target depends on another one, or limits concurrent rollouts.
func (m *memory) takesTurns() bool {
	for _, c := range m.conditions {
		if len(c.DependsOn) > 0 {
			return true
		}
	}
	for _, b := range m.batches {
		if slices.ContainsFunc(b.Targets, func(d reconciler.Desired) bool { return d.Policy.MaxRollouts > 0 }) {
			return true
		}
	}
	return false
}

// governed returns the governed pools as last seen.
func (m *memory) governed() map[rollout.ID]rollout.Pool {
	out := map[rollout.ID]rollout.Pool{}
	for _, report := range m.before.Reports {
		out = waves.AddPools(out, report.Governed)
	}
	return out
}

// together reports whether an approval is for several plans.
func together(approval gates.Approval, ready []gates.Grant) bool {
	return slices.ContainsFunc(ready, func(g gates.Grant) bool { return g.Digest != approval.Digest })
}
