package source

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/git"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/source/transport"
)

// Git is one source. Its methods may be used by several goroutines.
type Git struct {
	cfg     Config
	opts    Options
	id      string
	log     *slog.Logger
	backend backend
	nudges  chan struct{}

	// op admits one operation on the repository at a time.
	op semaphore

	mu     sync.Mutex // guards what follows
	last   snapshot.Snapshot
	loaded bool
	// standings holds how commits relate to the heads standingTo.
	standings  map[string]snapshot.Standing
	standingTo string
}

// backend is a repository, remote with a mirror or on this machine. latest is
// called by one goroutine at a time; the other methods at any time.
type backend interface {
	// latest returns what the ref names now; last is its previous result.
	latest(ctx context.Context, last snapshot.Snapshot) (snapshot.Snapshot, error)
	// load gives what an earlier process left, the zero Snapshot if nothing.
	load() (snapshot.Snapshot, error)
	// at gives a commit that is already here.
	at(h plumbing.Hash) (snapshot.Snapshot, error)
	puller
	// watch names what to watch for changes; nil for a remote repository.
	watch() watchSet
	close()
}

// semaphore is a mutex whose waiters can give up.
type semaphore struct {
	once sync.Once
	ch   chan struct{}
}

func (s *semaphore) acquire(ctx context.Context) error {
	s.once.Do(func() { s.ch = make(chan struct{}, 1) })
	select {
	case s.ch <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *semaphore) release() { <-s.ch }

// ID is the identity of the source's repository; see the function ID.
func (g *Git) ID() string { return g.id }

// Name is the name of the source.
func (g *Git) Name() string { return g.cfg.Name }

// Latest gives the commit that the ref names now, fetching it if it is not here.
// An error is an *UnavailableError, or wraps ctx's; it comes with no snapshot,
// and what Last gives stays.
func (g *Git) Latest(ctx context.Context) (snapshot.Snapshot, error) {
	if err := g.op.acquire(ctx); err != nil {
		return snapshot.Snapshot{}, fmt.Errorf("read source %s: %w", g.cfg.Name, err)
	}
	defer g.op.release()
	last, _ := g.Last()
	op, cancel := transport.WithDeadline(ctx, g.opts.Timeout)
	defer cancel()
	began := g.opts.Now()
	s, err := g.backend.latest(op, last)
	if g.opts.Fetched != nil && ctx.Err() == nil {
		g.opts.Fetched(g.opts.Now().Sub(began), err)
	}
	if err != nil {
		if ctx.Err() != nil {
			return snapshot.Snapshot{}, fmt.Errorf("read source %s: %w", g.cfg.Name, ctx.Err())
		}
		ue := fault.Unavailable(g.cfg.Name, err)
		ue.Wasted = transport.DeadlineOf(op).Received()
		return snapshot.Snapshot{}, ue
	}
	s = g.named(s)
	if s.Revision != last.Revision {
		attrs := []slog.Attr{
			slog.String("revision", s.Revision), slog.String("ref", s.Ref), slog.String("previous", last.Revision),
			slog.Duration("duration", g.opts.Now().Sub(began)),
		}
		if s.SignedBy != "" {
			attrs = append(attrs, slog.String("signed_by", s.SignedBy))
		}
		g.log.LogAttrs(ctx, slog.LevelInfo, "source moved", attrs...)
	}
	g.mu.Lock()
	g.last = s
	g.mu.Unlock()
	if g.opts.Found != nil {
		g.opts.Found(began, s.Revision)
	}
	return s, nil
}

// Last gives the last good snapshot, also an earlier process's, and false without
// one.
func (g *Git) Last() (snapshot.Snapshot, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.loaded {
		s, err := g.backend.load()
		g.loaded = fault.ReasonOf(err) != fault.Exhausted // else the next fetch reads it
		switch {
		case !g.loaded:
			g.log.Warn("the last good commit cannot be read now", slog.Any("error", err))
		case err != nil:
			g.log.Warn("mirror is damaged and will be made again", slog.Any("error", err))
		case s.Tree != nil:
			g.last = g.named(s)
		}
	}
	return g.last, g.last.Tree != nil
}

// At gives the snapshot of a commit that is already here: in the mirror, or in
// the repository on this machine. It does not ask the remote.
func (g *Git) At(ctx context.Context, revision string) (snapshot.Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return snapshot.Snapshot{}, fmt.Errorf("read source %s: %w", g.cfg.Name, err)
	}
	if !git.IsHash(revision) {
		return snapshot.Snapshot{}, fault.Unavailable(g.cfg.Name, fault.New(fault.MissingRef, "%q is not a full object name of 40 lower-case hex digits", fault.Plain(revision)))
	}
	s, err := g.backend.at(plumbing.NewHash(revision))
	if err != nil {
		return snapshot.Snapshot{}, fault.Unavailable(g.cfg.Name, err)
	}
	return g.named(s), nil
}

// Close releases files and idle connections. Trees that were given out stay
// usable.
func (g *Git) Close() { g.backend.close() }

func (g *Git) named(s snapshot.Snapshot) snapshot.Snapshot {
	s.Source, s.SourceID = g.cfg.Name, g.id
	return s
}
