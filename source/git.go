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

// Git is a source. It is safe for concurrent use.
type Git struct {
	cfg     Config
	opts    Options
	id      string
	log     *slog.Logger
	backend backend
	nudges  chan struct{}

	// op serializes operations on the repository.
	op semaphore

	mu     sync.Mutex // guards the fields below
	last   snapshot.Snapshot
	loaded bool
	// standings caches the standings relative to the heads in standingTo.
	standings  map[string]snapshot.Standing
	standingTo string
}

// backend is a remote repository with a mirror, or a local repository. latest must not be called
// concurrently. All other methods may be.
type backend interface {
	// latest returns the current commit of the ref. last is its previous result.
	latest(ctx context.Context, last snapshot.Snapshot) (snapshot.Snapshot, error)
	// load returns the last good snapshot of an earlier process, or the zero Snapshot.
	load() (snapshot.Snapshot, error)
	// at returns a local commit.
	at(h plumbing.Hash) (snapshot.Snapshot, error)
	puller
	// watch returns the directories to watch for changes. It is nil for a remote repository.
	watch() watchSet
	close()
}

// semaphore is a mutex with cancellable waiting.
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

// ID returns the identity of the source's repository; see the function ID.
func (g *Git) ID() string { return g.id }

// Name returns the name of the source.
func (g *Git) Name() string { return g.cfg.Name }

// Latest returns the current commit of the ref, and fetches it if it is not local. An error is an
// *UnavailableError, or wraps the error of ctx. After an error, the result of Last stays the same.
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

// Last returns the last good snapshot, which may be from an earlier process. ok is false if there is no such
// snapshot.
func (g *Git) Last() (snapshot.Snapshot, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.loaded {
		s, err := g.backend.load()
		g.loaded = fault.ReasonOf(err) != fault.Exhausted // otherwise the next fetch reads it
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

// At returns the snapshot of a commit in the mirror or the local repository. It sends no request to a server.
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

// Close closes files and idle connections. Returned trees stay usable.
func (g *Git) Close() { g.backend.close() }

func (g *Git) named(s snapshot.Snapshot) snapshot.Snapshot {
	s.Source, s.SourceID = g.cfg.Name, g.id
	return s
}
