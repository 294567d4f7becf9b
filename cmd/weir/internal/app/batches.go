package app

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weir-gitops/weir/cmd/weir/internal/membership"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/accounts"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/rollout/ledger"
	"github.com/weir-gitops/weir/reconciler/state"
)

// gated returns the batch of a scope with its account and guard. Its steps are restricted by user requests,
// windows and waves. The caller holds handing.
func (p *passes) gated(l *loop, access accounts.Access) reconciler.Batch {
	records := p.records(l.key)
	p.loss(records.Lost)
	kept := p.kept()
	p.mu.Lock()
	defer p.mu.Unlock()
	l.DesiredTaken()
	l.scope = access.Scope
	l.records = records
	b, wanted := p.memory.batches[l.key]
	if !wanted {
		return reconciler.Batch{} // a new composition will follow
	}
	b.Targets = slices.Clone(b.Targets)
	access.Attach(&b)
	p.attachRecords(&b, l)
	b.BeforeWrite = beforeWrite(p.store, p.member != nil, access.Account, l.key)
	p.accounts.Guard(&b, func(yield func(reconciler.ScopeKey) bool) {
		for key := range p.memory.batches {
			if key != l.key && !yield(key) {
				return
			}
		}
	})
	batches := []reconciler.Batch{b}
	pending := gates.Pending{Ready: p.memory.pending(records), Begin: func(g gates.Grant) error { return p.startGrant(l, g) }}
	gates.Gate(batches, p.memory.conditions, records, p.memory.before, pending, p.clock.Moment())
	b = batches[0]
	l.permits = map[string][]rollout.Permit{}
	gating := newGating(p.ledger, p.memory.specs, p.log)
	for i := range b.Targets {
		d := &b.Targets[i]
		d.Policy.Prune.Kept, d.Policy.Disputed = kept, kept
		if d.Tokens != nil {
			d.Tokens = fencedTokens{d.Tokens, p, l.key}
		}
		if d.Drains != nil {
			d.Drains = fencedDrains{d.Drains, p, l.key}
		}
		if rolls := gating.restrict(&b, d); len(rolls) > 0 {
			l.permits[d.Source] = append(l.permits[d.Source], rolls...)
		}
		if fresh := p.memory.fresh[d.Policy.Target]; fresh.After(b.Fresh) {
			b.Fresh = fresh
		}
		l.targets = append(l.targets, d.Policy.Target)
		if p.loops.elsewhere(l, d.Policy.Target) {
			d.Policy.Gates.Waits = "waits for a pass to end that uses another role, region or endpoint"
		}
	}
	return b
}

// attachRecords adds the records of failed attempts, if this daemon is one of several, and the records of
// last good revisions.
func (p *passes) attachRecords(b *reconciler.Batch, l *loop) {
	writes := func() state.Store { return p.store }
	if l.lease != nil {
		place := l.lease.Owner.Key
		writes = func() state.Store { return p.member.Held(place) }
		b.Attempts = tries{p.store, writes, place + "\x00" + l.key.RoleARN + "\x00", p.redact}
	}
	if l.marks == nil {
		l.marks = newMarks(p.store, writes)
	}
	b.Marks = l.marks
}

// startGrant records that a pass starts an approved plan.
func (p *passes) startGrant(l *loop, g gates.Grant) error {
	if err := p.approvals.recorder.Begin(g); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	l.records.Grants = append(slices.DeleteFunc(slices.Clone(l.records.Grants), func(old gates.Grant) bool { return old.Target == g.Target }), g)
	return nil
}

// records returns the requests of users. Before that, it writes the changes that are due before a pass over
// a scope: it splits approvals of several plans, and ends grants for resources that are no longer desired.
// It writes without mu, so that mu never waits for an engine.
func (p *passes) records(key reconciler.ScopeKey) gates.Records {
	records := p.approvals.recorder.Read()
	var split []severalPlans
	p.mu.Lock()
	ended := gates.Superseded(p.memory.batches[key].Targets, p.memory.conditions, records)
	for _, approval := range records.Approvals {
		if ready := gates.Approved(approval, p.memory.before); together(approval, ready) {
			split = append(split, severalPlans{approval, ready})
		}
	}
	said := p.memory.unused
	p.mu.Unlock()
	unused := p.approvals.split(split, said)
	if len(ended) > 0 {
		if err := p.approvals.supersede(ended); err != nil {
			p.log.Error("cannot end the approval of an earlier commit; until it ends, the same plan cannot be approved again", "error", err)
		}
	}
	p.mu.Lock()
	p.memory.unused = unused
	p.mu.Unlock()
	if len(ended)+len(split) > 0 {
		records = p.approvals.recorder.Read()
	}
	return records
}

// retryAsked makes the starting pass retry steps if a user requested that from any member.
func (p *passes) retryAsked(l *loop, access accounts.Access) {
	if l.lease == nil || access.Scope == nil {
		return
	}
	var targets []string
	p.mu.Lock()
	l.scope = access.Scope
	for _, d := range p.memory.batches[l.key].Targets {
		targets = append(targets, d.Policy.Target)
	}
	p.mu.Unlock()
	// Without pools, the failed steps are not known yet.
	targets = slices.DeleteFunc(targets, func(name string) bool { return len(poolsOf(p.targets, name)) == 0 })
	for _, name := range (retryRequests{p.store, p.log}).claim(targets) {
		p.retry(name, poolsOf(p.targets, name))
	}
}

// noted stores a report for targets that wait for this one, and for holds that last until it has converged.
// It returns false if the target no longer exists in that scope, or has nothing to report yet. own says
// that this daemon made the pass.
func (p *passes) noted(r *plan.Report, own bool) bool {
	p.mu.Lock()
	m := &p.memory
	if _, known := m.conditions[r.Target]; !known || m.blank[r.Target] && r.Plan == nil || m.moved(r, p.accounts.Probably) {
		p.mu.Unlock()
		return false
	}
	next, first := m.note(r)
	if first {
		for _, target := range p.loops.awaited(r.Target, m.before) {
			next = append(next, m.scopesOf(target)...)
		}
	}
	p.loops.nudge(next)
	done := own && m.busy[r.Target] && r.Converged()
	if done {
		p.loops.dropGrants(r.Target)
	}
	p.mu.Unlock()
	p.conduct.send()
	if done {
		if err := p.approvals.recorder.Done(r.Target); err != nil {
			p.log.Error("state cannot be written", "error", err)
		}
	}
	return true
}

// fence returns the guard of writes to an account and region.
func (p *passes) fence(key reconciler.ScopeKey) sdk.Fence {
	may := func() error { return p.checkAllowed(key) }
	if p.member == nil {
		return alone(may)
	}
	return membership.Fence{Member: p.member, Key: func() string { place, _ := placeOf(p.accounts, key); return place }, May: may}
}

// checkAllowed returns an error if users have suspended targets of the pass, or withdrawn an approval that it uses,
// since it started.
func (p *passes) checkAllowed(key reconciler.ScopeKey) error {
	now := p.approvals.recorder.Read()
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.loops.of[key]
	if l == nil {
		return errors.New("skipped the passes of an account and region")
	}
	if now.Lost != nil {
		return errors.New(gates.LossText(*now.Lost))
	}
	for _, s := range newSuspensions(l.records, now) {
		if s.Target == "" || slices.Contains(l.targets, s.Target) {
			return fmt.Errorf("%s was suspended after this pass started: %s", orAll(s.Target), s.Text())
		}
	}
	if g := l.withdrawnGrant(now); g != nil {
		return fmt.Errorf("the approval by %s of the plan of %s ended after this pass started", g.By, g.Target)
	}
	return permitted(p.ledger, l.permits)
}

// errWithdrawn prevents a write if the permit that allowed it was withdrawn.
var errWithdrawn = errors.New("a rollout was held after the pass started; starting the pass again")

// permitted returns an error if the permit of a pool has been reduced since the start of the pass.
func permitted(records *ledger.Ledger, began map[string][]rollout.Permit) error {
	for source, permits := range began {
		record, err := records.Read(source)
		if err != nil {
			return err
		}
		for _, had := range permits {
			if now, is := record.PermitOf(had.ID); !is || now.Hash != had.Hash || now.Share < had.Share {
				return errWithdrawn
			}
		}
	}
	return nil
}
