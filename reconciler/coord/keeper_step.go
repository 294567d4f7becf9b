package coord

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"
)

// step does what is due: join, take, hand over.
func (k *Keeper) step(ctx context.Context) {
	now, replaced := k.o.Mirror.state()
	if age, ever := k.o.Mirror.Age(); !ever || age > k.o.TTL {
		return // a member that cannot read takes nothing; leases end by themselves
	}
	instant := k.clock.Now()
	if instant.Longest(k.looked) >= k.o.TTL {
		clear(k.unowned) // who owned what meanwhile, and until when, is not known
	}
	k.looked = instant
	if replaced != k.replaced {
		k.replaced = replaced
		k.lose() // no lease counts in another engine
	}
	s := k.current()
	if s != nil && s.Left() <= FenceCut {
		k.lose()
		s = nil
	}
	if s == nil {
		if s = k.join(ctx); s == nil {
			return
		}
	}
	scopes := k.propose(now)
	k.check(ctx, now, s, scopes)
	for _, scope := range scopes {
		if ctx.Err() != nil {
			return
		}
		k.consider(ctx, now, s, scope.Key)
	}
}

func (k *Keeper) join(ctx context.Context) *Session {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	s, err := k.o.Engine.Join(ctx, k.self(), k.o.TTL)
	if err != nil {
		k.complain("", err)
		return nil
	}
	delete(k.complained, "")
	k.mu.Lock()
	k.session = s
	k.mu.Unlock()
	k.o.Tell(Event{Kind: Joined})
	return s
}

// propose places the keys, if its input changed.
func (k *Keeper) propose(now *Snapshot) []Scope {
	scopes := k.o.Scopes()
	if now == k.basis.now && slices.Equal(scopes, k.basis.scopes) {
		return scopes
	}
	k.basis = basis{now, slices.Clone(scopes)}
	var members []string
	for _, a := range now.Alive {
		if !a.Member.Draining {
			members = append(members, a.Member.Name)
		}
	}
	chosen := pinned(now)
	placed := slices.Clone(scopes)
	for i, s := range placed {
		o := now.Owner(s.Key)
		if placed[i].Owner, placed[i].Pinned = o.Member, chosen[s.Key]; o.Released {
			placed[i].Owner = o.For
		}
	}
	proposed := Place(placed, members)
	k.mu.Lock()
	k.proposed = proposed
	k.mu.Unlock()
	return scopes
}

// check ends leases that the engine does not confirm, or that nobody wants.
func (k *Keeper) check(ctx context.Context, now *Snapshot, s *Session, scopes []Scope) {
	wanted := map[string]bool{}
	for _, scope := range scopes {
		wanted[scope.Key] = true
	}
	instant := k.clock.Now()
	k.seeStuck(now, instant)
	k.mu.Lock()
	var lost, over, stuck []*Lease
	for key, l := range k.leases {
		o := now.Owner(key)
		switch {
		case o.Epoch.N > l.Owner.Epoch.N || o.Epoch == l.Owner.Epoch && (o.Session != l.Owner.Session || o.Released && !l.isStopping()):
			lost = append(lost, l)
			delete(k.leases, key)
		case !wanted[key]:
			over = append(over, l)
		case l.stuck(instant) > StuckAfter && !k.hopeless(now, key, instant):
			stuck = append(stuck, l)
			k.avoided[key] = instant
		}
	}
	k.mu.Unlock()
	for _, l := range lost {
		l.end()
		k.o.Tell(Event{Kind: Lost, Key: l.Owner.Key, Owner: l.Owner})
	}
	for _, l := range over {
		k.stop(l, Event{Kind: Released})
	}
	for _, l := range stuck {
		op := Op{Key: stuckKeys + l.Owner.Key + "/" + url.PathEscape(k.o.Member.Name), If: Any}
		k.work.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), attempt)
			defer cancel()
			_, _ = s.Write(ctx, Write{Ops: []Op{op}}) // else the key goes round once more
		})
		k.stop(l, Event{Kind: Stuck})
	}
	k.resume(ctx, now, s)
}

// seeStuck notes when this member first saw what others say of keys on which they were stuck: their clocks may differ.
func (k *Keeper) seeStuck(now *Snapshot, instant Instant) {
	seen := map[string]mark{}
	for _, r := range now.List(stuckKeys) {
		m := mark{r.Version, instant}
		if old := k.stuck[r.Key]; old.version == r.Version {
			m = old
		}
		seen[r.Key] = m
	}
	k.stuck = seen
}

// hopeless reports whether every other member was stuck on a key a short while ago, as when a Git server is down: to move it round and round helps
// nobody.
func (k *Keeper) hopeless(now *Snapshot, key string, instant Instant) bool {
	others := 0
	for _, a := range now.Alive {
		if a.Member.Draining || a.Member.Name == k.o.Member.Name {
			continue
		}
		others++
		if m, was := k.stuck[stuckKeys+key+"/"+url.PathEscape(a.Member.Name)]; !was || instant.AtLeast(m.since) > avoidFor {
			return false
		}
	}
	return others > 0
}

// consider takes a key or hands it over, if it is time.
func (k *Keeper) consider(ctx context.Context, now *Snapshot, s *Session, key string) {
	name := k.o.Member.Name
	to, instant := k.proposed[key], k.clock.Now()
	if l := k.Lease(key); l != nil {
		k.considerOwn(now, l, key, instant)
		return
	}
	k.mu.Lock()
	held, draining := k.leases[key] != nil, k.draining
	avoided, avoid := k.avoided[key]
	k.mu.Unlock()
	o := now.Owner(key)
	if held || o.Known() && !o.Released && now.Lives(o.Session) {
		delete(k.unowned, key)
		k.expect(key, to == name && !held && !draining, instant)
		return
	}
	free := k.unowned[key]
	if free.since == (Instant{}) || !free.last.Is(o) {
		free = unowned{o, instant}
		k.unowned[key] = free
	}
	grace := Grace + time.Duration(k.o.Random(int64(PollEvery)))
	if to == name {
		grace = 0
	}
	if avoid && instant.AtLeast(avoided) < avoidFor {
		grace = avoidGrace
	}
	if draining || instant.AtLeast(free.since) < grace {
		return
	}
	k.acquire(ctx, s, o, free.since)
}

// considerOwn hands over a key of this member once another is proposed for it long enough.
func (k *Keeper) considerOwn(now *Snapshot, l *Lease, key string, instant Instant) {
	to := k.proposed[key]
	delete(k.unowned, key)
	switch {
	case to == "" || to == k.o.Member.Name:
		delete(k.moved, key)
	case k.moved[key].to != to:
		k.moved[key] = move{to, instant}
	case instant.AtLeast(k.moved[key].since) >= Steady && (instant.AtLeast(l.taken) >= Settle || pinned(now)[key] == to):
		delete(k.moved, key)
		k.stop(l, Event{Kind: HandedOver, To: to})
	}
}

// expect makes the mirror poll more often while another member is about to hand over to this one.
func (k *Keeper) expect(key string, expected bool, now Instant) {
	if !expected {
		delete(k.moved, key)
		return
	}
	if k.moved[key].to != k.o.Member.Name {
		k.moved[key] = move{k.o.Member.Name, now}
	}
	if now.AtLeast(k.moved[key].since) < Steady+StopWithin {
		k.o.Mirror.Hurry(2 * PollEvery)
	}
}

// acquire takes a key that nobody has owned since an instant.
func (k *Keeper) acquire(ctx context.Context, s *Session, seen Owner, since Instant) {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	owner, err := s.Take(ctx, seen.Key, seen)
	if err != nil {
		if !errors.Is(err, ErrConflict) && !errors.Is(err, ErrHeld) { // somebody else was first: as it should be
			k.complain(seen.Key, err)
		}
		return
	}
	delete(k.complained, seen.Key)
	delete(k.unowned, seen.Key)
	k.startLease(s, owner, seen, k.quiet(owner, seen, since))
}

// quiet is how long a successor waits: not at all after a release, Quiet past the end of a dead session, and a lease longer if the engine may have
// forgotten an owner.
func (k *Keeper) quiet(owner, seen Owner, since Instant) time.Duration {
	switch {
	case !seen.Known() || seen.Epoch.Engine != owner.Epoch.Engine:
		return k.o.TTL + Quiet
	case seen.Released:
		return 0
	default:
		return Quiet - k.clock.Now().AtLeast(since)
	}
}

// startLease starts the lease of a key. Work on it starts after a quiet time.
func (k *Keeper) startLease(s *Session, owner, before Owner, quiet time.Duration) {
	l := &Lease{Owner: owner, Before: before, Fence: newFence(owner.Key, s), session: s, clock: k.clock, taken: k.clock.Now(), done: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	k.mu.Lock()
	earlier := k.working[owner.Key]
	if k.session != s { // lost meanwhile
		k.mu.Unlock()
		l.end()
		return
	}
	k.leases[owner.Key], k.working[owner.Key] = l, l
	draining := k.draining
	k.mu.Unlock()
	if draining {
		defer k.stop(l, Event{Kind: HandedOver})
	}
	k.work.Go(func() {
		defer k.stop(l, Event{Kind: Released})
		defer close(l.done)
		for left := quiet; left > 0; left = quiet - k.clock.Now().AtLeast(l.taken) {
			if !sleep(l.ctx, left) {
				return
			}
		}
		if earlier != nil {
			select {
			case <-earlier.done:
			case <-l.ctx.Done():
				return
			}
		}
		if l.ctx.Err() != nil {
			return
		}
		k.o.Tell(Event{Kind: Took, Key: owner.Key, Owner: owner, Before: before})
		l.Progress()
		k.o.Run(l)
		if l.ctx.Err() == nil { // it gave up
			now := k.clock.Now()
			k.mu.Lock()
			k.avoided[owner.Key] = now
			k.mu.Unlock()
		}
	})
}

// stop ends the work on a key, and then releases it.
func (k *Keeper) stop(l *Lease, e Event) {
	if !l.stop() {
		return
	}
	k.work.Go(func() {
		began := k.clock.Now()
		l.cancel()
		timer := time.NewTimer(StopWithin)
		defer timer.Stop()
		select {
		case <-l.done:
			l.Fence.end()
			if k.clock.Now().AtLeast(began) >= SlowStop {
				sleep(context.Background(), Quiet)
			}
		case <-timer.C:
			l.Fence.end() // work that hangs can begin nothing more
			sleep(context.Background(), Quiet)
		case <-l.Fence.cut.Done():
		}
		e.Key, e.Owner = l.Owner.Key, l.Owner
		e.Err = k.release(l, e.To)
		k.o.Tell(e)
		k.wake()
	})
}

// release gives a key up, for a member if any, while there is a lease.
func (k *Keeper) release(l *Lease, to string) error {
	err := ErrLost
	if left := l.session.Left(); left > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), min(left, TTL))
		defer cancel()
		given := l.Owner
		given.For = to
		err = l.session.Release(ctx, given)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.leases[l.Owner.Key] == l {
		delete(k.leases, l.Owner.Key)
		if err == nil { // else the session still owns it, and finds that
			k.released[l.Owner.Key] = l.Owner.Epoch.N
		}
	}
	return err
}

// View shows a member and what it sees.
type View struct {
	Member   Member
	Session  string
	Left     time.Duration
	Snapshot *Snapshot
	// Age is that of the snapshot, negative without one.
	Age time.Duration
	// Proposed is the placement, by key.
	Proposed map[string]string
	// Works lists the keys that the member works on, in order.
	Works []string
	Err   error
}

// View returns a copy.
func (k *Keeper) View() View {
	v := View{Member: k.self(), Snapshot: k.o.Mirror.Snapshot(), Age: -1, Err: k.o.Mirror.Err()}
	if age, ever := k.o.Mirror.Age(); ever {
		v.Age = age
	}
	if s := k.current(); s != nil {
		v.Session, v.Left = s.ID(), s.Left()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	v.Proposed = k.proposed
	for key, l := range k.leases {
		if !l.isStopping() {
			v.Works = append(v.Works, key)
		}
	}
	slices.SortFunc(v.Works, strings.Compare)
	return v
}
