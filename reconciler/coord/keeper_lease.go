package coord

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// renew renews the session there is.
func (k *Keeper) renew(ctx context.Context) {
	told, failing := time.Now(), false
	for every := RenewEvery; sleep(ctx, every); {
		every = RenewEvery
		s := k.current()
		if s == nil {
			continue
		}
		start := time.Now()
		var err error
		// An engine that takes no writes may renew leases all the same, as etcd does when it is full. Its owners could neither record what they do nor
		// hand anything over, and nobody could hold them: so a lease goes on only where a write shows that it may.
		if _, refuses := k.o.Engine.Refuses(); refuses != nil || start.Sub(told) >= announceEvery {
			if err = s.Announce(ctx, k.self()); err == nil {
				told = start
			}
		} else {
			err = s.Renew(ctx)
		}
		every = max(0, RenewEvery-time.Since(start))
		if err != nil {
			every = min(every, 500*time.Millisecond)
			if !failing {
				k.o.Tell(Event{Kind: Refused, Err: err})
			}
			if errors.Is(err, ErrLost) {
				k.wake()
			}
		}
		failing = err != nil
	}
}

// watch ends all leases when the session's end is near, whatever hangs elsewhere, and when nobody could read the records for as long as a lease
// lasts: such an owner may write nothing, and would keep others from doing so.
func (k *Keeper) watch(ctx context.Context) {
	for every := PollEvery; sleep(ctx, every); {
		every = PollEvery
		s := k.current()
		if s == nil {
			continue
		}
		left := s.Left()
		if age, _ := k.o.Mirror.Age(); left <= FenceCut || age > k.o.TTL {
			k.lose()
			k.wake()
			continue
		}
		every = min(every, left-FenceCut)
	}
}

// lose ends every lease and the session.
func (k *Keeper) lose() {
	k.mu.Lock()
	s, leases := k.session, slices.Collect(maps.Values(k.leases))
	k.session = nil
	clear(k.leases)
	k.mu.Unlock()
	if s == nil {
		return
	}
	s.end()
	for _, l := range leases {
		l.end()
	}
	k.o.Tell(Event{Kind: Lost, Err: k.Trouble()})
}

// Trouble is why the engine could not be relied on when it was asked last, nil if it could.
func (k *Keeper) Trouble() error {
	if _, err := k.o.Engine.Refuses(); err != nil {
		return err
	}
	return k.o.Mirror.Err()
}

// complain tells a refusal once a minute while it goes on, for each key. Only the goroutine that steps calls it.
func (k *Keeper) complain(key string, err error) {
	now := k.clock.Now()
	if last, told := k.complained[key]; told && now.AtLeast(last) < complainEvery {
		return
	}
	k.complained[key] = now
	k.o.Tell(Event{Kind: Refused, Key: key, Err: err})
}

// resume works on keys that this session took, or did not release, but the answer was lost. A release that is still on its way would let another member
// begin at once, so it is excluded first.
func (k *Keeper) resume(ctx context.Context, now *Snapshot, s *Session) {
	for _, o := range now.Owners {
		k.mu.Lock()
		ours := o.Session == s.id && !o.Released && k.leases[o.Key] == nil && o.Epoch.N > k.released[o.Key]
		k.mu.Unlock()
		if !ours {
			continue
		}
		if err := s.settle(ctx); err != nil {
			k.complain(o.Key, err)
			return // the next step tries again
		}
		k.startLease(s, o, Owner{}, k.o.TTL+Quiet)
	}
}
