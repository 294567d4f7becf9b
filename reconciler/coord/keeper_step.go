package coord

import (
	"context"
	"errors"
	"time"
)

// round joins if necessary, ends leases, and takes keys or hands them over.
func (k *Keeper) round(ctx context.Context) {
	now, replaced := k.o.Mirror.state()
	if age, ever := k.o.Mirror.Age(); !ever || age > k.o.TTL {
		return // a member that cannot read takes nothing; its leases expire
	}
	k.assignment.start(k.clock.Now(), k.o.TTL)
	if replaced != k.replaced {
		k.replaced = replaced
		k.registration.end() // leases are not valid in another engine
	}
	held := k.registration.current()
	if held != nil && held.session.Left() <= FenceCut {
		k.registration.end()
		held = nil
	}
	if held == nil {
		var err error
		if held, err = k.registration.join(ctx, replaced); err != nil {
			k.refusals.report("", err)
			return
		}
		k.refusals.accepted("")
	}
	scopes := k.o.Scopes()
	k.placement.update(now, scopes)
	k.endLeases(now, held, scopes)
	k.resume(ctx, now, held)
	for _, scope := range scopes {
		if ctx.Err() != nil {
			return
		}
		k.consider(ctx, now, held, scope.Key)
	}
}

// endLeases ends three kinds of leases: the engine names another owner, no member needs to own the key, or
// the work is stuck.
func (k *Keeper) endLeases(now *Snapshot, held *holdings, scopes []Scope) {
	wanted := map[string]bool{}
	for _, scope := range scopes {
		wanted[scope.Key] = true
	}
	instant := k.clock.Now()
	k.stuck.read(now, instant)
	for _, l := range held.all() {
		switch key := l.Owner.Key; {
		case l.refutedBy(now.Owner(key)):
			held.remove(l, false)
			l.end()
			k.o.Tell(Event{Kind: Lost, Key: key, Owner: l.Owner})
		case !wanted[key]:
			k.workers.stop(l, Event{Kind: Released})
		case l.stuck(instant) > StuckAfter && !k.stuck.everywhere(now, key, instant):
			k.avoided.add(key, instant)
			note := k.stuck.note(key)
			k.workers.running.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), attempt)
				defer cancel()
				_, _ = held.session.Write(ctx, Write{Ops: []Op{note}}) // without the record, the key only goes around once more
			})
			k.workers.stop(l, Event{Kind: Stuck})
		}
	}
}

// resume works on keys that the session owns according to the engine, but has no lease of: the answer to a
// taking or to a release was lost. A release that still arrives would let another member start at once, so
// resume first makes sure that it has no effect any more.
func (k *Keeper) resume(ctx context.Context, now *Snapshot, held *holdings) {
	for _, o := range now.Owners {
		if !held.unused(o) {
			continue
		}
		if err := held.session.resolveDoubts(ctx); err != nil {
			k.refusals.report(o.Key, err)
			return // the next step tries again
		}
		k.workers.start(held, o, Owner{}, k.o.TTL+Quiet)
	}
}

// consider takes a key or hands it over, if it is time.
func (k *Keeper) consider(ctx context.Context, now *Snapshot, held *holdings, key string) {
	instant := k.clock.Now()
	o, l := now.Owner(key), held.get(key)
	to := k.placement.owners[key]
	s := situation{
		draining: k.registration.self().Draining, avoided: k.avoided.has(key, instant),
		pinned: to != "" && k.placement.pins[key] == to,
	}
	switch {
	case l != nil && l.isStopping():
		s.owner = stoppingHere
	case l != nil:
		s.owner, s.ownedFor = ownedHere, instant.AtLeast(l.taken)
	case o.Known() && !o.Released && now.Lives(o.Session):
		s.owner = ownedElsewhere
	default:
		s.owner = vacant
	}
	switch decide(k.assignment.observe(s, o, to, instant)) {
	case handOver:
		k.assignment.gaveUp(key)
		k.workers.stop(l, Event{Kind: HandedOver, To: to})
	case pollSooner:
		k.o.Mirror.Hurry(2 * PollEvery)
	case take:
		k.acquire(ctx, held, o)
	case leave:
	}
}

// acquire takes a key that has no living owner. seen is its last owner.
func (k *Keeper) acquire(ctx context.Context, held *holdings, seen Owner) {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	owner, err := held.session.Take(ctx, seen.Key, seen)
	if err != nil {
		if !errors.Is(err, ErrConflict) && !errors.Is(err, ErrHeld) { // another member was first, which is normal
			k.refusals.report(seen.Key, err)
		}
		return
	}
	k.refusals.accepted(seen.Key)
	quiet := quietAfter(owner, seen, k.clock.Now().AtLeast(k.assignment.vacant[seen.Key].since), k.o.TTL)
	k.assignment.took(seen.Key)
	k.workers.start(held, owner, seen, quiet)
}

// quietAfter returns the waiting time of a new owner before it starts to work. It does not wait after a
// release. After the end of a session it waits for Quiet, less the time for which the key has been vacant. If
// the engine may have forgotten an owner, it waits for the length of a lease as well.
func quietAfter(owner, seen Owner, vacantFor, ttl time.Duration) time.Duration {
	switch {
	case !seen.Known() || seen.Epoch.Engine != owner.Epoch.Engine:
		return ttl + Quiet
	case seen.Released:
		return 0
	default:
		return Quiet - vacantFor
	}
}
