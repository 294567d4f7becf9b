package source

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// maxRaces is how often a fetch starts over because the ref moved under it.
const maxRaces = 3

// mirrorBackend is a remote repository with its mirror.
type mirrorBackend struct {
	remote   *remote
	mirror   *mirror
	ref      Ref
	log      *slog.Logger
	now      func() time.Time
	sweepAge time.Duration

	// current is what the server named when latest last succeeded. It differs
	// from the revision for an annotated tag.
	current plumbing.Hash
}

var _ backend = (*mirrorBackend)(nil)

func (b *mirrorBackend) latest(ctx context.Context, last Snapshot) (Snapshot, error) {
	if b.ref.Commit != "" && last.Revision == b.ref.Commit && !b.mirror.suspect.Load() {
		return last, nil // A commit never changes.
	}
	for race := 0; ; race++ {
		s, err := b.remote.connect(ctx)
		if err != nil {
			return Snapshot{}, err
		}
		t, err := s.selectRef(b.ref)
		if err != nil {
			return Snapshot{}, err
		}
		if last.Tree != nil && t.hash == b.current && !b.mirror.suspect.Load() {
			last.Ref = t.ref
			return last, nil
		}
		snap, err := b.update(ctx, s, t)
		if err == nil {
			b.current = t.hash
			return snap, nil
		}
		if race == maxRaces || !b.moved(ctx, t) {
			return Snapshot{}, err
		}
	}
}

// moved tells whether the ref names something else by now, so that the server
// may have refused t because it is gone.
func (b *mirrorBackend) moved(ctx context.Context, t target) bool {
	if ctx.Err() != nil || b.ref.Commit != "" {
		return false
	}
	s, err := b.remote.connect(ctx)
	if err != nil {
		return false
	}
	again, err := s.selectRef(b.ref)
	return err == nil && again.hash != t.hash
}

// update brings t into the mirror, verifies it and records it.
func (b *mirrorBackend) update(ctx context.Context, s *session, t target) (Snapshot, error) {
	if b.mirror.suspect.Load() {
		return b.rebuild(ctx, s, t)
	}
	m := b.mirror
	if err := m.prepare(); err != nil {
		return Snapshot{}, err
	}
	if err := m.sweep(b.now(), b.sweepAge); err != nil {
		return Snapshot{}, b.damaged(err)
	}
	have, err := m.db.has(t.hash)
	if err != nil {
		return Snapshot{}, b.damaged(err)
	}
	if !have && m.db.packCount() >= m.limits.packs {
		if snap, err := b.rebuild(ctx, s, t); err == nil {
			return snap, nil
		}
		b.log.Warn("mirror with many packs could not be made again; it grows", slog.Int("packs", m.db.packCount()))
	}
	if !have {
		if err := fetch(ctx, m, s, t); err != nil {
			return Snapshot{}, err
		}
	}
	return b.accept(m, t)
}

// fetch adds t to m.
func fetch(ctx context.Context, m *mirror, s *session, t target) error {
	err := m.receive(func(w io.Writer) error { return s.pack(ctx, t.wants, m.haves(), w) })
	if err != nil {
		return err
	}
	have, err := m.db.has(t.hash)
	if err != nil {
		return err
	}
	if !have {
		return missingRef(s.remote.host, "commit "+t.hash.String()+" on any branch or tag")
	}
	return nil
}

// accept verifies t and moves the mirror's ref.
func (b *mirrorBackend) accept(m *mirror, t target) (Snapshot, error) {
	snap, err := m.snapshot(t.hash, t.ref)
	if err != nil {
		return Snapshot{}, b.damaged(err)
	}
	if err := m.setOK(plumbing.NewHash(snap.Revision)); err != nil {
		return Snapshot{}, err
	}
	return snap, nil
}

// damaged notes that the mirror is to be made again, if err says so.
func (b *mirrorBackend) damaged(err error) error {
	if reasonOf(err) == Corrupt {
		b.mirror.suspect.Store(true)
	}
	return err
}

// rebuild makes the mirror again beside the old one and puts it into place.
func (b *mirrorBackend) rebuild(ctx context.Context, s *session, t target) (Snapshot, error) {
	b.log.Warn("making the mirror again")
	fresh := newMirror(b.mirror.dir+".new", b.mirror.okName)
	fresh.limits = b.mirror.limits
	defer fresh.db.close()
	if err := os.RemoveAll(fresh.dir); err != nil {
		return Snapshot{}, fmt.Errorf("make mirror: %w", err)
	}
	if err := fresh.prepare(); err != nil {
		return Snapshot{}, err
	}
	if err := fetch(ctx, fresh, s, t); err != nil {
		return Snapshot{}, err
	}
	if _, err := b.accept(fresh, t); err != nil {
		return Snapshot{}, err
	}
	if err := b.mirror.replaceBy(fresh); err != nil {
		return Snapshot{}, err
	}
	b.mirror.suspect.Store(false)
	return b.accept(b.mirror, t)
}

// load gives the last verified commit of an earlier process.
func (b *mirrorBackend) load() (Snapshot, error) {
	h, err := b.mirror.ok()
	if err != nil {
		return Snapshot{}, b.damaged(err)
	}
	if h.IsZero() {
		return Snapshot{}, nil
	}
	ref := b.ref.fullName()
	switch {
	case b.ref.Commit != "":
		ref = b.ref.Commit
	case ref == "":
		ref = plumbing.HEAD.String()
	}
	s, err := b.mirror.snapshot(h, ref)
	if err != nil {
		return Snapshot{}, b.damaged(err)
	}
	return s, nil
}

func (b *mirrorBackend) at(h plumbing.Hash) (Snapshot, error) {
	return commitAt(b.mirror.repository, h)
}

func (b *mirrorBackend) watch() watchSet { return nil }

func (b *mirrorBackend) close() {
	b.remote.rt.CloseIdleConnections()
	b.mirror.db.close()
}

func commitAt(r repository, h plumbing.Hash) (Snapshot, error) {
	have, err := r.db.has(h)
	if err == nil && !have {
		if err = r.db.refresh(); err == nil {
			have, err = r.db.has(h)
		}
	}
	if err != nil {
		return Snapshot{}, err
	}
	if !have {
		return Snapshot{}, faultf(MissingRef, "commit %s is not here; only fetched commits can be shown", h)
	}
	return r.snapshot(h, h.String())
}
