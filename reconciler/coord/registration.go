package coord

import (
	"context"
	"errors"
	"sync"
	"time"
)

// registration is a member's entry in the engine. It joins with a session, renews it, and publishes what
// other members need to know of this one.
type registration struct {
	engine *Engine
	mirror *Mirror
	ttl    time.Duration
	tell   func(Event)
	// wake starts the next step of the keeper.
	wake func()

	mu     sync.Mutex
	member Member    // as other members see it
	held   *holdings // the leases of the current session, nil without a session
}

// join starts a session. replaced is the number of replacements of the engine that the caller knows of.
func (r *registration) join(ctx context.Context, replaced int) (*holdings, error) {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	s, err := r.engine.Join(ctx, r.self(), r.ttl)
	if err != nil {
		return nil, err
	}
	held := newHoldings(s, r.mirror, replaced)
	r.mu.Lock()
	r.held = held
	r.mu.Unlock()
	r.tell(Event{Kind: Joined})
	return held, nil
}

// current returns the leases of the current session, nil without a session.
func (r *registration) current() *holdings {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held
}

// session returns the current session, nil without one.
func (r *registration) session() *Session {
	if held := r.current(); held != nil {
		return held.session
	}
	return nil
}

// count returns the number of leases.
func (r *registration) count() int {
	if held := r.current(); held != nil {
		return len(held.all())
	}
	return 0
}

// end ends the session and all leases of this member at once, and sends the event Lost. It does nothing without a
// session. The engine may report the session as alive until its lease has
// expired.
func (r *registration) end() {
	r.mu.Lock()
	held := r.held
	r.held = nil
	r.mu.Unlock()
	if held == nil {
		return
	}
	held.end()
	r.tell(Event{Kind: Lost, Err: r.trouble()})
}

// trouble returns why the engine refused the last write or could not be read. It returns nil if neither happened.
func (r *registration) trouble() error {
	if _, err := r.engine.Refuses(); err != nil {
		return err
	}
	return r.mirror.Err()
}

// self returns the member as other members should see it.
func (r *registration) self() Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.member
}

func (r *registration) setDraining(draining bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.member.Draining = draining
}

// setConfig sets the description of the member's configuration. It reports whether the description has changed.
func (r *registration) setConfig(config string) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed = r.member.Config != config
	r.member.Config = config
	return changed
}

// announce publishes the member's entry now. Without a session it does nothing: join publishes the entry.
func (r *registration) announce(ctx context.Context) error {
	s := r.session()
	if s == nil {
		return nil
	}
	return s.Announce(ctx, r.self())
}

// renew renews the session until ctx ends.
func (r *registration) renew(ctx context.Context) {
	announced, failing := time.Now(), false
	for every := RenewEvery; sleep(ctx, every); {
		every = RenewEvery
		s := r.session()
		if s == nil {
			continue
		}
		start := time.Now()
		var err error
		// An engine that refuses writes may still renew leases, as etcd does when it is full. Owners could
		// then neither record their actions nor hand anything over, and nobody could suspend their targets.
		// So while the engine refuses writes, only a successful write extends the lease.
		if _, refuses := r.engine.Refuses(); refuses != nil || start.Sub(announced) >= announceEvery {
			if err = s.Announce(ctx, r.self()); err == nil {
				announced = start
			}
		} else {
			err = s.Renew(ctx)
		}
		every = max(0, RenewEvery-time.Since(start))
		if err != nil {
			every = min(every, 500*time.Millisecond)
			if !failing {
				r.tell(Event{Kind: Refused, Err: err})
			}
			if errors.Is(err, ErrLost) {
				r.wake()
			}
		}
		failing = err != nil
	}
}

// watch ends the session shortly before its lease expires, even if everything else hangs. It also ends the
// session if the records could not be read for the length of a lease: such an owner may write nothing, and
// would only keep other members from taking its keys.
func (r *registration) watch(ctx context.Context) {
	for every := PollEvery; sleep(ctx, every); {
		every = PollEvery
		s := r.session()
		if s == nil {
			continue
		}
		left := s.Left()
		if age, _ := r.mirror.Age(); left <= FenceCut || age > r.ttl {
			r.end()
			r.wake()
			continue
		}
		every = min(every, left-FenceCut)
	}
}
