package coord

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// term is the length of a lease, counted from the sending of its last answered renewal.
type term struct {
	sent Instant
	ttl  time.Duration
}

// Session is a member's lease. Its writes are sent one after the other. It is safe for concurrent use.
type Session struct {
	e                  *Engine
	id, engine, member string

	mu   sync.Mutex
	term term
	dead bool

	turn chan struct{} // has an element while a write is in flight
	log  Log           // with the last write
	// doubts are the logs of writes without an answer. At most one of them was done, or may still be done.
	// The next write that succeeds excludes the others.
	doubts []Log
}

// ID returns the session's id.
func (s *Session) ID() string { return s.id }

// Engine returns the engine's id at the time of the join.
func (s *Session) Engine() string { return s.engine }

// TTL returns the time that a renewal adds.
func (s *Session) TTL() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.term.ttl
}

// Left returns the remaining time of the lease, counted from before the last answered renewal was sent, by
// the clock that advanced most. It returns 0 if the lease has ended.
func (s *Session) Left() time.Duration {
	now := s.e.clock.Now() // before the lock, because the machine may stand still while it waits for the lock
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return 0
	}
	return max(0, s.term.ttl-max(0, now.Longest(s.term.sent)))
}

// end ends the lease for good. A lease that has ended by its holder's clock is never renewed, because other
// code may have acted on the end.
func (s *Session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = true
}

// Renew renews the lease. It returns ErrLost if the lease has ended.
func (s *Session) Renew(ctx context.Context) error { return s.renew(ctx, nil) }

// Announce renews the lease and publishes the member's changes.
func (s *Session) Announce(ctx context.Context, m Member) error {
	m.Clock = s.e.clock.Now().Wall.UTC()
	return s.renew(ctx, &m)
}

// renew renews the session's lease, and publishes the member if m is not nil. If the lease has ended by this
// clock, it ends the session and returns ErrLost.
func (s *Session) renew(ctx context.Context, m *Member) error {
	if s.Left() == 0 {
		s.end()
		return fmt.Errorf("renew: it has ended: %w", ErrLost)
	}
	parent := ctx
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	sent := s.e.clock.Now()
	ttl, err := s.e.store.Renew(ctx, s.id, m)
	if err != nil || m != nil { // a renewal alone is no write in etcd, so its success does not count
		s.e.wrote(parent, err)
	}
	if err != nil {
		if errors.Is(err, ErrLost) {
			s.end()
		}
		return fmt.Errorf("renew: %w", err)
	}
	now := s.e.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead || now.Longest(s.term.sent) >= s.term.ttl {
		s.dead = true
		return fmt.Errorf("renew: it ended before it was renewed: %w", ErrLost)
	}
	if sent.Longest(s.term.sent) > 0 { // a later renewal may have been answered first
		s.term = term{sent, ttl}
	}
	return nil
}

// Take takes a key. seen is the key's owner as it was read. Take returns ErrHeld if that owner is alive, and
// ErrConflict if the key has another owner by now.
func (s *Session) Take(ctx context.Context, key string, seen Owner) (Owner, error) {
	if err := CheckKey(key); err != nil {
		return Owner{}, err
	}
	seen.Key = key
	var owner Owner
	_, err := s.commit(ctx, func(t *Txn) {
		owner = Owner{Key: key, Member: s.member, Session: s.id, Since: s.e.clock.Now().Wall.UTC(), Epoch: Epoch{s.engine, max(seen.Epoch.N+1, t.Log.N)}}
		t.Take = []Taking{{Seen: seen, Owner: owner}}
	}, Entry{Owners: []string{key}})
	if err != nil {
		return Owner{}, fmt.Errorf("take %s: %w", key, err)
	}
	return owner, nil
}

// Release releases a key of the session, for the member that o.For names, if any. No work on the key may be
// in progress.
func (s *Session) Release(ctx context.Context, o Owner) error {
	if err := s.owns(o); err != nil {
		return fmt.Errorf("release %s: %w", o.Key, err)
	}
	released := o
	released.Released = true
	_, err := s.commit(ctx, func(t *Txn) { t.Take = []Taking{{Seen: o, Owner: released}} }, Entry{Owners: []string{o.Key}})
	if errors.Is(err, ErrConflict) {
		err = errors.Join(ErrLost, err)
	}
	if err != nil {
		return fmt.Errorf("release %s: %w", o.Key, err)
	}
	return nil
}

// Write does w, and returns the version of all records that it wrote. It returns ErrLost if the session is
// dead or does not own a key of w.Held, and ErrConflict if a version differs. It retries until ctx ends, and
// then returns ErrUnknown if the write may have been done.
func (s *Session) Write(ctx context.Context, w Write) (version int64, err error) {
	if err := w.check(); err != nil {
		return 0, err
	}
	for _, o := range w.Held {
		if err := s.owns(o); err != nil {
			return 0, fmt.Errorf("write: %w", err)
		}
	}
	entry := Entry{}
	for _, op := range w.Ops {
		entry.Records = append(entry.Records, op.Key)
	}
	version, err = s.commit(ctx, func(t *Txn) { t.Held, t.Ops = w.Held, w.Ops }, entry)
	if err != nil {
		return 0, fmt.Errorf("write: %w", err)
	}
	return version, nil
}

// owns returns an error if o is not an owner record of this session, or is a release.
func (s *Session) owns(o Owner) error {
	if o.Session != s.id || o.Released {
		return fmt.Errorf("%s in %s is not this session's: %w", o.Key, o.Epoch, ErrLost)
	}
	return nil
}

// Leave ends the session. The session must have released all keys.
func (s *Session) Leave(ctx context.Context) error {
	s.end()
	if err := s.e.store.End(ctx, s.id); err != nil && !errors.Is(err, ErrLost) {
		return fmt.Errorf("leave: %w", err)
	}
	return nil
}

// commit does a transaction exactly once. It may send it several times.
func (s *Session) commit(ctx context.Context, fill func(*Txn), entry Entry) (version int64, err error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return s.run(ctx, fill, entry)
}

// run is commit for a caller that has the turn.
func (s *Session) run(ctx context.Context, fill func(*Txn), entry Entry) (int64, error) {
	t := s.newTxn(fill, entry)
	lost := ErrLost
	for tries := 0; ; tries++ {
		if s.Left() == 0 {
			s.end()
			return 0, s.unknown(tries, t, lost)
		}
		err := s.send(ctx, t)
		var moved *Moved
		switch {
		case err == nil, errors.As(err, &moved) && moved.N == t.Log.N: // done now, or by an attempt whose answer was lost
			s.log, s.doubts = t.Log, nil
			return t.Version(), nil
		case moved != nil:
			i := slices.IndexFunc(s.doubts, func(l Log) bool { return l.N == moved.N })
			if i < 0 {
				s.end()
				return 0, fmt.Errorf("%w: the engine is not what it was: %w", ErrLost, err)
			}
			s.log, s.doubts = s.doubts[i], nil
			t = s.newTxn(fill, entry)
			continue
		case errors.Is(err, ErrLost):
			return 0, err
		case errors.Is(err, ErrConflict), errors.Is(err, ErrHeld):
			return s.refused(ctx, tries, t, err)
		}
		if !sleep(ctx, min(50*time.Millisecond<<min(tries, 5), time.Second)) {
			return 0, s.unknown(tries+1, t, err)
		}
		lost = fmt.Errorf("%w, as %w", ErrLost, err)
	}
}

// resolveDoubts makes sure that each write without an answer either has been done or will never be done.
func (s *Session) resolveDoubts(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if len(s.doubts) == 0 {
		return nil
	}
	_, err := s.run(ctx, func(*Txn) {}, Entry{})
	return err
}

func (s *Session) newTxn(fill func(*Txn), entry Entry) Txn {
	last := s.log.N
	for _, l := range s.doubts {
		last = max(last, l.N)
	}
	entry.N = next(last, s.e.clock.Now().Wall)
	t := Txn{Session: s.id, Was: s.log.N, Log: s.log.with(s.id, entry)}
	fill(&t)
	return t
}

func (s *Session) send(ctx context.Context, t Txn) error {
	one, cancel := context.WithTimeout(ctx, attempt+time.Duration(sizeOf(t.Ops))*time.Second/slowest)
	defer cancel()
	err := s.e.store.Commit(one, t)
	s.e.wrote(ctx, err)
	return err
}

// unknown returns the error of a write without an answer.
func (s *Session) unknown(tries int, t Txn, err error) error {
	if tries == 0 {
		return err
	}
	s.doubts = append(s.doubts, t.Log)
	return fmt.Errorf("%w: %w", ErrUnknown, err)
}

// refused makes sure that a refused write is not done after all, because an earlier attempt may still be in
// flight. An empty write excludes that, or shows that the earlier attempt was done.
func (s *Session) refused(ctx context.Context, tries int, t Txn, err error) (int64, error) {
	if tries == 0 {
		return 0, err
	}
	s.doubts = append(s.doubts, t.Log)
	if _, sealed := s.run(ctx, func(*Txn) {}, Entry{}); sealed != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnknown, sealed)
	}
	if s.log.Floor == t.Log.N || slices.ContainsFunc(s.log.Last, func(e Entry) bool { return e.N == t.Log.N }) {
		return t.Version(), nil
	}
	return 0, err
}

// sleep waits. It returns false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
