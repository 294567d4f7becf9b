package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/signature"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/source/transport"
)

// maxRaces bounds the restarts of a fetch because the ref changed meanwhile.
const maxRaces = 3

// mirrorBackend is a remote repository with its mirror.
type mirrorBackend struct {
	remote   transport.Remote
	mirror   *mirror
	ref      Ref
	policy   signature.Policy
	log      *slog.Logger
	now      func() time.Time
	sweepAge time.Duration

	// current is the key of the last target for which latest succeeded.
	current string
}

var _ backend = (*mirrorBackend)(nil)

func (b *mirrorBackend) latest(ctx context.Context, last snapshot.Snapshot) (snapshot.Snapshot, error) {
	if b.ref.Commit != "" && last.Revision == b.ref.Commit && !b.mirror.suspect.Load() && !b.mirror.crowded.Load() {
		return last, nil // a commit never changes
	}
	for race := 0; ; race++ {
		snap, t, err := b.latestOnce(ctx, last)
		if err == nil || t.key() == (selection{}).key() || race == maxRaces || !b.moved(ctx, t) {
			return snap, err
		}
	}
}

// latestOnce asks the server once for the commit of the ref, and fetches it. It returns last if nothing has
// changed. The selection is zero if it could not be determined.
func (b *mirrorBackend) latestOnce(ctx context.Context, last snapshot.Snapshot) (snapshot.Snapshot, selection, error) {
	s, err := b.remote.Connect(ctx, b.ref.chooses)
	if err != nil {
		return snapshot.Snapshot{}, selection{}, err
	}
	defer s.Close()
	b.mirror.shallow.Store(s.Shallow)
	t, err := selectRef(s, b.ref)
	if err != nil {
		return snapshot.Snapshot{}, selection{}, err
	}
	if last.Tree != nil && t.key() == b.current && !b.mirror.suspect.Load() && !b.mirror.crowded.Load() {
		if len(t.rivals) == 0 {
			last.Ref = t.ref
		}
		return last, t, nil
	}
	snap, err := b.update(ctx, s, t)
	if err != nil {
		return snapshot.Snapshot{}, t, err
	}
	b.current = t.key()
	return snap, t, nil
}

// moved reports whether the ref has changed, so that the server may have refused t because it no longer
// exists.
func (b *mirrorBackend) moved(ctx context.Context, t selection) bool {
	if ctx.Err() != nil || b.ref.Commit != "" {
		return false
	}
	s, err := b.remote.Connect(ctx, b.ref.chooses)
	if err != nil {
		return false
	}
	defer s.Close()
	again, err := selectRef(s, b.ref)
	return err == nil && again.key() != t.key()
}

// update fetches t into the mirror, verifies it and records it. It recreates a damaged or overgrown mirror.
func (b *mirrorBackend) update(ctx context.Context, s *transport.Session, t selection) (snapshot.Snapshot, error) {
	if b.mirror.suspect.Load() {
		return b.rebuild(ctx, s, t)
	}
	m := b.mirror
	if err := m.prepare(); err != nil {
		return snapshot.Snapshot{}, err
	}
	if err := m.sweep(b.now(), b.sweepAge); err != nil {
		return snapshot.Snapshot{}, b.damaged(err)
	}
	have, err := m.hasAll(t)
	if err != nil {
		return snapshot.Snapshot{}, b.damaged(err)
	}
	if (!have || m.crowded.Swap(false)) && m.overgrown() {
		snap, err := b.rebuild(ctx, s, t)
		if err == nil || fault.ReasonOf(err) == fault.Unverified {
			return snap, err
		}
		b.log.Warn("mirror with many packs could not be recreated; it grows", slog.Int("packs", m.db.PackCount()), slog.Any("error", err))
		// A session can only transfer one pack.
		if s, err = b.remote.Connect(ctx, b.ref.chooses); err != nil {
			return snapshot.Snapshot{}, err
		}
		defer s.Close()
	}
	if !have {
		if err := b.fetch(ctx, m, s, t); err != nil {
			return snapshot.Snapshot{}, err
		}
	}
	return b.accept(m, t)
}

// hasAll reports whether the mirror has every candidate of t.
func (m *mirror) hasAll(t selection) (bool, error) {
	for _, c := range t.all() {
		if have, err := m.db.Has(c.hash); err != nil || !have {
			return false, err
		}
	}
	return true, nil
}

// fetch fetches the objects of t into m. If the server does not serve commits by name, it fetches all
// branches and tags in a second session.
func (b *mirrorBackend) fetch(ctx context.Context, m *mirror, s *transport.Session, t selection) error {
	receive := func(s *transport.Session, wants []plumbing.Hash) error {
		return m.receive(ctx, m.limits.PackLimits, func(w io.Writer) error { return s.Pack(ctx, wants, m.haves(), w) })
	}
	err := receive(s, t.wants)
	if err != nil && len(t.more) > 0 && ctx.Err() == nil {
		// The server does not serve commits by hash, or not this one.
		again, cerr := b.remote.Connect(ctx, b.ref.chooses)
		if cerr != nil {
			return err
		}
		defer again.Close()
		err = receive(again, t.more)
	}
	if err != nil {
		return err
	}
	have, err := m.hasAll(t)
	if err != nil {
		return err
	}
	if !have {
		return missingRef(s.Host, "commit "+t.hash.String()+" on any branch or tag")
	}
	return nil
}

// accept verifies t and updates the mirror's ref.
func (b *mirrorBackend) accept(m *mirror, t selection) (snapshot.Snapshot, error) {
	c, err := m.newest(t)
	if err != nil {
		return snapshot.Snapshot{}, b.damaged(err)
	}
	snap, err := m.snapshot(c.hash, c.ref)
	if err != nil {
		return snapshot.Snapshot{}, b.damaged(err)
	}
	ok, err := b.mirror.ok()
	again := err == nil && ok.String() == snap.Revision
	if err := m.attest(b.policy, c, again, &snap); err != nil {
		return snapshot.Snapshot{}, err
	}
	if err := m.setOK(plumbing.NewHash(snap.Revision), c.hash); err != nil {
		return snapshot.Snapshot{}, err
	}
	return snap, nil
}

// damaged marks the mirror for recreation if err is damage.
func (b *mirrorBackend) damaged(err error) error {
	if fault.ReasonOf(err) == fault.Corrupt {
		b.mirror.suspect.Store(true)
	}
	return err
}

// keepOK records the last good commit in a fresh mirror whose new commit does not have the required
// signature. It fails if the history no longer contains that commit.
func (b *mirrorBackend) keepOK(fresh *mirror, refused error) bool {
	h, err := b.mirror.ok()
	if err != nil || h.IsZero() || fault.ReasonOf(refused) != fault.Unverified {
		return false
	}
	if _, err := fresh.snapshot(h, ""); err != nil {
		return false
	}
	named, err := readRef(b.mirror.signedRef())
	if have, herr := fresh.db.Has(named); err != nil || herr != nil || !have {
		named = h
	}
	return fresh.setOK(h, named) == nil
}

// rebuild replaces the mirror with a fresh one, which it fetches next to the old one. It is called for a
// damaged mirror and for an overgrown one. If the signature of the new commit is refused, the fresh mirror
// still replaces the old one, provided that it has the last good commit, and rebuild returns the refusal.
func (b *mirrorBackend) rebuild(ctx context.Context, s *transport.Session, t selection) (snapshot.Snapshot, error) {
	b.log.Warn("recreating the mirror")
	fresh := newMirror(b.mirror.dir+".new", b.mirror.okName)
	fresh.limits = b.mirror.limits
	fresh.shallow.Store(s.Shallow)
	defer fresh.db.Close()
	if err := os.RemoveAll(fresh.dir); err != nil {
		return snapshot.Snapshot{}, fmt.Errorf("make mirror: %w", err)
	}
	if err := fresh.prepare(); err != nil {
		return snapshot.Snapshot{}, err
	}
	if err := b.fetch(ctx, fresh, s, t); err != nil {
		return snapshot.Snapshot{}, err
	}
	_, refused := b.accept(fresh, t)
	if refused != nil && !b.keepOK(fresh, refused) {
		return snapshot.Snapshot{}, refused
	}
	if err := b.mirror.recordLostCommits(fresh); err != nil {
		return snapshot.Snapshot{}, err
	}
	if err := b.mirror.replaceBy(fresh); err != nil {
		return snapshot.Snapshot{}, err
	}
	b.mirror.suspect.Store(false)
	return b.accept(b.mirror, t)
}

// load returns the last verified commit of an earlier process. The commit must satisfy the policy of this
// process.
func (b *mirrorBackend) load() (snapshot.Snapshot, error) {
	h, err := b.mirror.ok()
	if err != nil {
		return snapshot.Snapshot{}, b.damaged(err)
	}
	if h.IsZero() {
		return snapshot.Snapshot{}, nil
	}
	ref := b.ref.fullName()
	switch {
	case b.ref.Commit != "":
		ref = b.ref.Commit
	case b.ref.SemVer != "":
		ref = b.ref.SemVer
	case ref == "":
		ref = plumbing.HEAD.String()
	}
	s, err := b.mirror.snapshot(h, ref)
	if err != nil {
		return snapshot.Snapshot{}, b.damaged(err)
	}
	named, err := readRef(b.mirror.signedRef())
	if err != nil || named.IsZero() {
		named = h // then the commit itself must be signed
	}
	if c, err := b.mirror.peel(named); err != nil || c.Hash != h {
		named = h
	}
	err = b.mirror.attest(b.policy, candidate{hash: named}, true, &s)
	var f *fault.Error
	if errors.As(err, &f) {
		b.log.Warn("the commit that was applied last is not signed as the configuration now requires", slog.String("revision", s.Revision), slog.Any("error", err))
		return snapshot.Snapshot{}, nil
	}
	return s, err
}

func (b *mirrorBackend) at(h plumbing.Hash) (snapshot.Snapshot, error) {
	return commitAt(b.mirror.repository, h)
}

// watch returns nil, because a remote repository has no directories to watch.
func (b *mirrorBackend) watch() watchSet { return nil }

func (b *mirrorBackend) close() {
	b.remote.Close()
	b.mirror.db.Close()
}

// commitAt returns the snapshot of a commit that the repository has. It never fetches.
func commitAt(r repository, h plumbing.Hash) (snapshot.Snapshot, error) {
	have, err := r.db.Has(h)
	if err == nil && !have {
		if err = r.db.Refresh(); err == nil {
			have, err = r.db.Has(h)
		}
	}
	if err != nil {
		return snapshot.Snapshot{}, err
	}
	if !have {
		return snapshot.Snapshot{}, fault.New(fault.MissingRef, "commit %s is not here; only fetched commits can be shown", h)
	}
	return r.snapshot(h, h.String())
}
