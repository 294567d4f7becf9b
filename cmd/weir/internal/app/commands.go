package app

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/accounts"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/events"
)

// memory keeps the results of passes for the next pass and for commands. It outlives reloads of the
// configuration.
type memory struct {
	before gates.Before
	// conditions holds the conditions of the existing targets.
	conditions map[string]gates.Conditions
	// blank lists the targets that have no render yet.
	blank map[string]bool
	// batches holds the batches of the last composition; nil during a reload.
	batches map[reconciler.ScopeKey]reconciler.Batch
	// scopes holds the scopes of the batches that contain a target, by its name, because each
	// report needs them.
	scopes map[string][]reconciler.ScopeKey
	// waiting are the scopes with targets that wait for a target, by its name.
	waiting map[string][]reconciler.ScopeKey
	// fresh holds the time from which AWS must be read again for what targets follow, by name:
	// later targets know of something newer.
	fresh map[string]time.Time
	// unused says why approvals could not be used by the last pass, so that it is
	// said once.
	unused map[string]bool
	// specs are the FleetRollouts of each source.
	specs map[string]fleetSpecs
	// busy are the targets that have something to end once they converge.
	busy map[string]bool
}

// take stores a composition.
func (m *memory) take(c *fleet.Composition) {
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

// scopesOf are the scopes that a target is in.
func (m *memory) scopesOf(target string) []reconciler.ScopeKey {
	if m.batches == nil {
		return nil
	}
	return m.scopes[target]
}

// nudge starts passes over scopes now. The caller holds mu.
func (p *passes) nudge(keys []reconciler.ScopeKey) {
	for _, key := range keys {
		if l := p.of[key]; l != nil {
			l.Nudge()
		}
	}
}

// gated returns the batch of a scope with its account and guard. Requests of people, windows and
// waves restrict its steps. The caller holds handing.
func (p *passes) gated(l *loop, access accounts.Access) reconciler.Batch {
	records := p.settled(l.key)
	p.app.reportLoss(records.Lost)
	kept := peers{p.app}.kept()
	p.mu.Lock()
	defer p.mu.Unlock()
	l.Taken()
	l.scope = access.Scope
	l.records = records
	b, wanted := p.memory.batches[l.key]
	if !wanted {
		return reconciler.Batch{} // a new composition is on its way
	}
	b.Targets = slices.Clone(b.Targets)
	access.Attach(&b)
	b.Tries, b.Marks = p.triesOf(l), p.marksOf(l)
	b.Witness = p.witness(access.Account, l.key)
	p.app.accounts.Guard(&b, func(yield func(reconciler.ScopeKey) bool) {
		for key := range p.memory.batches {
			if key != l.key && !yield(key) {
				return
			}
		}
	})
	batches := []reconciler.Batch{b}
	gates.Gate(batches, p.memory.conditions, records, p.memory.before, p.pending(l, records), p.app.clock.Moment())
	b = batches[0]
	l.permits = map[string][]rollout.Permit{}
	governors := map[string]*rollout.Governor{}
	ledgers := map[string]*rollout.Record{}
	for i := range b.Targets {
		d := &b.Targets[i]
		d.Policy.Prune.Kept, d.Policy.Disputed = kept, kept
		if d.Tokens != nil {
			d.Tokens = fencedTokens{d.Tokens, p.app, l.key}
		}
		if d.Drains != nil {
			d.Drains = fencedDrains{d.Drains, p.app, l.key}
		}
		p.marksBad(d, ledgers)
		d.Policy.Gates.Rollouts = p.permits(d, governors)
		if g := governors[d.Source]; g != nil && len(d.Policy.Gates.Rollouts) > 0 {
			d.Policy.Gates.Activities = g.Activities()
			if d.Policy.Waves != nil {
				d.Policy.Demand(g.Unmet(d.Policy.Waves.Demand, d.Policy.Target, d.Policy.Gates.Rollouts))
			}
			if since := g.Gathers(d.Policy.Target); since.After(b.Fresh) {
				b.Fresh = since
			}
		}
		for _, permit := range d.Policy.Gates.Rollouts {
			if permit.Watched {
				b.Within = watchEvery
			}
			d.Policy.Gates.Alarms = append(d.Policy.Gates.Alarms, permit.Alarms...)
			if permit.Share > 0 {
				l.permits[d.Source] = append(l.permits[d.Source], permit)
			}
		}
		slices.Sort(d.Policy.Gates.Alarms)
		d.Policy.Gates.Alarms = slices.Compact(d.Policy.Gates.Alarms)
		if fresh := p.memory.fresh[d.Policy.Target]; fresh.After(b.Fresh) {
			b.Fresh = fresh
		}
		l.in = append(l.in, d.Policy.Target)
		if p.elsewhere(l, d.Policy.Target) {
			d.Policy.Gates.Waits = "waits for the end of a pass that reaches it by another role, region or endpoint"
		}
	}
	return b
}

// elsewhere reports whether a target is in the pass that another loop makes now: it
// has come over from there. The caller holds mu.
func (p *passes) elsewhere(l *loop, target string) bool {
	for other := range p.run {
		if other != l && !other.Began().IsZero() && slices.Contains(other.in, target) {
			return true
		}
	}
	return false
}

// pending returns the steps that unused approvals permit. The caller holds mu.
func (p *passes) pending(l *loop, records gates.Records) gates.Pending {
	m := &p.memory
	m.busy = map[string]bool{}
	pending := gates.Pending{Ready: map[string]gates.Grant{}, Begin: func(g gates.Grant) error { return p.begin(l, g) }}
	for _, approval := range records.Approvals {
		ready := gates.Approved(approval, m.before)
		if together(approval, ready) {
			continue // it waits, and nothing else with it
		}
		for _, g := range ready {
			pending.Ready[g.Target], m.busy[g.Target] = g, true
		}
	}
	for _, g := range records.Grants {
		m.busy[g.Target] = true
	}
	for _, o := range records.Overrides {
		m.busy[o.Target] = true
	}
	return pending
}

// begin records that a pass begins an approved plan.
func (p *passes) begin(l *loop, g gates.Grant) error {
	if err := p.app.book.Begin(g); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	l.records.Grants = append(slices.DeleteFunc(slices.Clone(l.records.Grants), func(old gates.Grant) bool { return old.Target == g.Target }), g)
	return nil
}

// together reports whether an approval is for several plans.
func together(approval gates.Approval, ready []gates.Grant) bool {
	return slices.ContainsFunc(ready, func(g gates.Grant) bool { return g.Digest != approval.Digest })
}

// settled returns what people requested, after it has written the changes due before a pass over a
// scope: it splits approvals of several plans, and ends grants for something that is no longer
// desired. It writes without mu, so that mu never waits for an engine.
func (p *passes) settled(key reconciler.ScopeKey) gates.Records {
	records := p.app.book.Read()
	type several struct {
		approval gates.Approval
		ready    []gates.Grant
	}
	var split []several
	p.mu.Lock()
	ended := gates.Superseded(p.memory.batches[key].Targets, p.memory.conditions, records)
	for _, approval := range records.Approvals {
		if ready := gates.Approved(approval, p.memory.before); together(approval, ready) {
			split = append(split, several{approval, ready})
		}
	}
	said := p.memory.unused
	p.mu.Unlock()
	unused := map[string]bool{}
	for _, s := range split {
		if err := p.app.book.Split(s.approval, s.ready); err != nil {
			text := err.Error()
			if !said[text] && !unused[text] {
				p.app.log.Error("an approval waits until it can be written to the state directory", "digest", s.approval.Digest, "error", err)
			}
			unused[text] = true
		}
	}
	if len(ended) > 0 {
		if err := p.supersede(ended); err != nil {
			p.app.log.Error("an approval of an earlier commit cannot be ended: the same plan is not approved anew before it is", "error", err)
		}
	}
	p.mu.Lock()
	p.memory.unused = unused
	p.mu.Unlock()
	if len(ended)+len(split) > 0 {
		records = p.app.book.Read()
	}
	return records
}

// supersede ends approvals that are partly applied, for targets whose desired resources have
// changed.
func (p *passes) supersede(ended []gates.Grant) error {
	if err := p.app.book.Supersede(ended); err != nil {
		return err
	}
	for _, g := range ended {
		p.app.board.Event(events.Event{Kind: "approval-ended", Target: g.Target, Text: fmt.Sprintf(
			"the approval by %s of the plan %.12s at %.12s has ended: the target wants something else by now, and what is left needs an approval of its own", g.By, g.Digest, g.Revision)})
	}
	return nil
}

// reportLoss reports on the page and in the metrics that all writes are held, or no longer held.
func (a *App) reportLoss(lost *state.Loss) {
	why := ""
	if lost != nil {
		why = gates.LossText(*lost)
	}
	a.board.HoldWrites(why)
	a.metrics.StateLost(lost != nil)
}

// moved reports whether a report is of another account or region than its target is in now:
// of a pass that ended after a reload, or of a member that has not reloaded yet. The caller
// holds mu.
func (p *passes) moved(r *plan.Report) bool {
	keys := p.memory.scopesOf(r.Target)
	return len(keys) > 0 && !slices.ContainsFunc(keys, func(key reconciler.ScopeKey) bool {
		account := p.app.accounts.Probably(key)
		return key.Region == "" || key.Region == r.Region && (account == r.Account || account == "" || r.Account == "")
	})
}

// noted stores a report: for targets that wait for this one, and for holds that last until it has
// converged. It returns false if the target no longer exists there, or has nothing to report yet.
// Own says that this daemon made the pass.
func (p *passes) noted(r *plan.Report, own bool) bool {
	p.mu.Lock()
	m := &p.memory
	if _, known := m.conditions[r.Target]; !known || m.blank[r.Target] && r.Plan == nil || p.moved(r) {
		p.mu.Unlock()
		return false
	}
	stood, last := m.before.Standings[r.Target], m.before.Reports[r.Target]
	m.before.Note(r)
	if r.Plan != nil && len(r.Plan.Steps) > 0 && (last == nil || last.Plan == nil || last.Plan.Digest() != r.Plan.Digest()) {
		p.nudge(p.awaited(r.Target))
	}
	if m.before.Standings[r.Target].Opens(stood) {
		p.nudge(m.waiting[r.Target])
	}
	for name, fresh := range gates.Renewals(r.Target, m.conditions, m.before) {
		if fresh.After(m.fresh[name]) {
			if m.fresh == nil {
				m.fresh = map[string]time.Time{}
			}
			m.fresh[name] = fresh
			p.nudge(m.scopesOf(name))
		}
	}
	done := own && m.busy[r.Target] && r.Converged()
	if done {
		for _, l := range p.of { // that it ends now stops no pass
			l.records.Grants = slices.DeleteFunc(slices.Clone(l.records.Grants), func(g gates.Grant) bool { return g.Target == r.Target })
		}
	}
	p.mu.Unlock()
	p.app.rollouts.wake()
	if done {
		if err := p.app.book.Done(r.Target); err != nil {
			p.app.log.Error("state cannot be written", "error", err)
		}
	}
	return true
}

// awaited returns the scopes that an approval lets run now that the plan of a target is known. An
// approval that was given earlier, such as in the pull request, waited for this plan. The caller
// holds mu.
func (p *passes) awaited(target string) (keys []reconciler.ScopeKey) {
	for _, l := range p.of {
		for _, a := range l.records.Approvals {
			ready := gates.Approved(a, p.memory.before)
			if !slices.ContainsFunc(ready, func(g gates.Grant) bool { return g.Target == target }) {
				continue
			}
			for _, g := range ready {
				keys = append(keys, p.memory.scopesOf(g.Target)...)
			}
		}
	}
	return keys
}

// daemon is the app as commands see it.
type daemon struct{ app *App }
