package app

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/membership"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/accounts"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/partition"
	"github.com/weir-gitops/weir/reconciler/state"
)

// If several daemons share the work of an instance, each one composes the desired state of everything from
// Git. It passes only over the scopes that it owns, and writes statuses only for the sources that it owns.

// placeOf returns the key of a scope's account and region. It returns false while the account is unknown.
func placeOf(a *accounts.Set, key reconciler.ScopeKey) (string, bool) {
	account := a.Probably(key)
	if account == "" || key.Region == "" {
		return "", false
	}
	return membership.ScopeKey(partition.Of(key.Region).ID, account, key.Region, key.Endpoint), true
}

// shares contains the work of each account and region that should be owned. passes.mu guards it.
type shares struct {
	// weights contains the number of pools of each place.
	weights map[string]int
	// finding contains the scopes whose account is being requested from AWS, and unfound the scopes for
	// which the last request failed. kept contains the places whose leases are kept during the first
	// request for a scope, because the scope may be in one of them.
	finding, unfound map[reconciler.ScopeKey]bool
	kept             map[string]reconciler.ScopeKey
}

// weigh counts the work of each place. It returns the scopes with an unknown account.
func (w *shares) weigh(batches map[reconciler.ScopeKey]reconciler.Batch, placeOf func(reconciler.ScopeKey) (string, bool)) (unknown []reconciler.ScopeKey) {
	before, found := slices.AppendSeq(slices.Collect(maps.Keys(w.weights)), maps.Keys(w.kept)), w.unfound
	w.weights, w.kept, w.unfound = map[string]int{}, map[string]reconciler.ScopeKey{}, map[reconciler.ScopeKey]bool{}
	for key, b := range batches {
		place, known := placeOf(key)
		if !known {
			if w.unfound[key] = found[key]; !found[key] {
				w.keep(before, key)
			}
			unknown = append(unknown, key)
			continue
		}
		for i := range b.Targets {
			if set := b.Targets[i].Set; set != nil {
				w.weights[place] += len(set.Pools)
			}
		}
		w.weights[place] += 0 // even if nothing is rendered
	}
	return unknown
}

// keep keeps the leases of places in which a scope may be. New credentials may replace a role for the same
// account. While AWS is asked for their account, the places are not released, and no other member takes
// them.
func (w *shares) keep(places []string, key reconciler.ScopeKey) {
	for _, place := range places {
		if words := strings.Split(place, "/"); len(words) > 2 && membership.ScopeKey(partition.Of(key.Region).ID, words[2], key.Region, key.Endpoint) == place {
			w.kept[place] = key
		}
	}
}

// searched records the end of a request for the account of a scope.
func (w *shares) searched(key reconciler.ScopeKey, found bool) {
	delete(w.finding, key)
	if !found {
		w.unfound[key] = true
		maps.DeleteFunc(w.kept, func(_ string, of reconciler.ScopeKey) bool { return of == key })
	}
}

// weigh counts the work of each account and region, and requests unknown accounts from AWS. The caller
// holds mu.
func (p *passes) weigh() {
	if p.member == nil {
		return
	}
	for _, key := range p.work.weigh(p.memory.batches, func(key reconciler.ScopeKey) (string, bool) { return placeOf(p.accounts, key) }) {
		p.find(key)
	}
}

// find requests a scope's account from AWS, and wakes the conductor when it is known. The caller holds mu.
func (p *passes) find(key reconciler.ScopeKey) {
	if p.work.finding[key] || key.Region == "" {
		return
	}
	p.work.finding[key] = true
	p.seeking.Go(func() {
		ctx, cancel := context.WithTimeout(p.ctx, findWithin)
		defer cancel()
		access := p.accounts.Open(ctx, key)
		p.mu.Lock()
		p.work.searched(key, access.Account != "")
		if !p.needs(key) && p.memory.batches != nil {
			p.accounts.Forget(key)
		}
		p.mu.Unlock()
		if access.Account != "" {
			p.wake()
			return
		}
		if access.Err != nil && ctx.Err() == nil {
			p.log.Warn("cannot open an account, so no member can own it", "region", key.Region, "role", key.RoleARN, "error", access.Err)
		}
	})
}

const findWithin = 30 * time.Second

// addWeights adds the accounts and regions that should be owned to weights.
func (p *passes) addWeights(weights map[string]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, pools := range p.work.weights {
		weights[key] += max(1, pools)
	}
	for place := range p.work.kept {
		weights[place] = max(1, weights[place])
	}
}

// inPlaces calls f for every target whose place is known.
func (p *passes) inPlaces(f func(place string, d *reconciler.Desired)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, b := range p.memory.batches {
		place, known := placeOf(p.accounts, key)
		for i := range b.Targets {
			if known {
				f(place, &b.Targets[i])
			}
		}
	}
}

// own starts the loops of an account and region that this daemon now owns.
func (p *passes) own(place string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key := range p.memory.batches {
		if at, known := placeOf(p.accounts, key); known && at == place && p.loops.of[key] == nil {
			p.startLoop(key)
		}
	}
}

// use returns a loop's lease. ok says that the loop may start. The caller calls done when it has ended.
func (p *passes) use(key reconciler.ScopeKey) (l *coord.Lease, done func(), ok bool) {
	if p.member == nil {
		return nil, func() {}, true
	}
	place, known := placeOf(p.accounts, key)
	if !known {
		return nil, nil, false
	}
	l, done = p.member.Leases.Use(place)
	return l, done, l != nil
}

// noAnswer is the time without a response from AWS after which a pass counts as stuck.
const noAnswer = 15 * time.Second

// progresses reports whether no pass of an account and region is stuck.
func (p *passes) progresses(place string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, l := range p.loops.of {
		if l.lease == nil || l.lease.Owner.Key != place {
			continue
		}
		began := l.Began()
		if answered := p.accounts.Answered(key); answered.After(began) {
			began = answered
		}
		if !l.Began().IsZero() && now.Sub(began) > noAnswer {
			return false
		}
	}
	return true
}

// beforeWrite returns the check for lost records that runs before the first write in an account and region.
// account is its number as reported by AWS.
func beforeWrite(store state.Store, shared bool, account string, key reconciler.ScopeKey) func(holds bool) error {
	return func(holds bool) error {
		err := state.CheckLoss(store, account+"/"+key.Region+key.Endpoint, holds)
		if !shared {
			return err
		}
		return passing(err)
	}
}

// passing marks an error as temporary if an engine does not answer, or if another daemon now owns the
// account and region: the commit has not failed.
func passing(err error) error {
	var loss *state.LossError
	if err == nil || errors.As(err, &loss) {
		return err
	}
	kind := observed.Transient
	if errors.Is(err, coord.ErrLost) {
		kind = observed.Fenced
	}
	return &observed.Error{Service: "coordination", Operation: "write", Code: "NotStored", Message: err.Error(), Kind: kind, Err: err}
}
