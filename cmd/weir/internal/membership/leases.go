package membership

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// Leases contains the keys that this member owns and works on. It counts the users of each key, so that the
// key is released only when nothing uses it any more.
type Leases struct {
	keeper *coord.Keeper
	losses *losses
	log    *slog.Logger
	// prepare and work are Options.Begin and Options.Work. flush sends waiting data under a lease that is
	// about to be released.
	prepare, work, flush func(*coord.Lease)

	mu   sync.Mutex
	uses map[*coord.Lease]*use
	// began is closed when the work on a key starts.
	began chan struct{}
}

// use counts the users of a key. It is not prepared at first. When it is over, no new user starts; existing
// users continue until they or the lease end.
type use struct {
	sync.WaitGroup
	prepared, over bool
}

func newLeases(o Options) *Leases {
	return &Leases{log: o.Logger, prepare: o.Begin, work: o.Work, uses: map[*coord.Lease]*use{}, began: make(chan struct{})}
}

// run allows the use of a key, and returns when nothing uses it any more.
func (s *Leases) run(l *coord.Lease) {
	if !s.losses.record(l) {
		return
	}
	uses := &use{}
	s.mu.Lock()
	s.uses[l] = uses
	s.mu.Unlock()
	if s.prepare != nil {
		s.prepare(l)
	}
	s.mu.Lock()
	uses.prepared = true
	close(s.began)
	s.began = make(chan struct{})
	s.mu.Unlock()
	s.work(l)
	<-l.Context().Done()
	s.mu.Lock()
	uses.over = true
	s.mu.Unlock()
	uses.Wait()
	s.flush(l)
	s.mu.Lock()
	delete(s.uses, l)
	s.mu.Unlock()
}

// Get returns the lease of a key that this member owns and works on, otherwise nil.
func (s *Leases) Get(key string) *coord.Lease {
	l := s.keeper.Lease(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if uses := s.uses[l]; l == nil || uses == nil || uses.over {
		return nil
	}
	return l
}

// Use is like Get, for a caller that uses the key until it calls done.
func (s *Leases) Use(key string) (l *coord.Lease, done func()) { return s.use(key, false) }

func (s *Leases) use(key string, prepared bool) (l *coord.Lease, done func()) {
	l = s.keeper.Lease(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	uses := s.uses[l]
	if l == nil || uses == nil || uses.over || prepared && !uses.prepared {
		return nil, func() {}
	}
	uses.Add(1)
	return l, sync.OnceFunc(uses.Done)
}

// ending returns the lease of a key that this member owns, even if the key is being handed over and Get returns nil.
func (s *Leases) ending(key string) *coord.Lease {
	if l := s.keeper.Lease(key); l != nil {
		return l
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.uses {
		if l.Owner.Key == key {
			return l
		}
	}
	return nil
}

// failedFor is the delay before failed work is restarted.
const failedFor = 5 * time.Second

// While calls run whenever this member owns a key, until ctx ends. run must return when its context ends. If run fails, While calls it again soon,
// because the lease may last for days.
func (s *Leases) While(ctx context.Context, key string, run func(context.Context, *coord.Lease) error) {
	for ctx.Err() == nil {
		s.mu.Lock()
		began := s.began
		s.mu.Unlock()
		l, done := s.use(key, true)
		if l == nil {
			select {
			case <-began:
			case <-ctx.Done():
			}
			continue
		}
		own, cancel := context.WithCancel(ctx)
		forget := context.AfterFunc(l.Context(), cancel)
		err := run(own, l)
		forget()
		cancel()
		done()
		var again <-chan time.Time
		if err != nil && ctx.Err() == nil && l.Context().Err() == nil {
			s.log.Warn("work on a key failed, and restarts", "key", key, "after", failedFor, "error", err)
			again = time.After(failedFor)
		}
		select {
		case <-again:
		case <-l.Context().Done():
		case <-ctx.Done():
		}
	}
}
