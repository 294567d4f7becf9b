package source

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/transport"
)

func (b *mirrorBackend) pulled() repository { return b.mirror.repository }

func (b *mirrorBackend) hasPull(p PullRef) bool {
	if p.MergeRef != "" {
		return false // only the remote knows whether the ref has changed
	}
	have, err := b.mirror.db.Has(plumbing.NewHash(p.HeadSHA))
	return err == nil && have
}

// unreadable marks the mirror for recreation if an object is missing. Fetched objects were complete, unless
// the server's repository is incomplete.
func (b *mirrorBackend) unreadable(err error) error {
	var oe *fault.ObjectError
	switch {
	case !errors.As(err, &oe) || !oe.Missing:
	case b.mirror.shallow.Load():
		return shallowFault("the server")
	default:
		b.mirror.suspect.Store(true)
	}
	return nil
}

func (b *mirrorBackend) forget(head string) error {
	err := os.Remove(b.mirror.pullRef(head))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget a pull request: %w", err)
	}
	return nil
}

// fetchPull fetches the missing commits of p from the remote. It lists the refs again if the server refuses
// to send their commits, because the refs may have changed meanwhile.
func (b *mirrorBackend) fetchPull(ctx context.Context, p PullRef) (plumbing.Hash, error) {
	forge, asked, err := b.fetchPullOnce(ctx, p)
	if err != nil && asked && fault.ReasonOf(err) == fault.Unreachable && ctx.Err() == nil {
		forge, _, err = b.fetchPullOnce(ctx, p)
	}
	return forge, err
}

// fetchPullOnce returns the result of fetchPull, and whether it requested a pack.
func (b *mirrorBackend) fetchPullOnce(ctx context.Context, p PullRef) (forge plumbing.Hash, asked bool, err error) {
	m, head := b.mirror, plumbing.NewHash(p.HeadSHA)
	if m.suspect.Load() {
		return forge, false, fault.New(fault.Corrupt, "the mirror is damaged")
	}
	s, err := b.remote.Connect(ctx, func(name string, _ transport.Capabilities) bool { return name == p.Head || name == p.MergeRef })
	if err != nil {
		return forge, false, err
	}
	defer s.Close()
	b.mirror.shallow.Store(s.Shallow)
	switch got, ok := s.Adv.References[p.Head]; {
	case ok && got != head:
		return forge, false, &MovedError{Ref: p.Head, Want: p.HeadSHA, Got: got.String()}
	case !ok && !s.GivesHidden():
		return forge, false, &MovedError{Ref: p.Head, Want: p.HeadSHA}
	case !ok:
		// The server may not list the ref. Its answer to a request for the commit decides.
		defer func() {
			if err != nil && fault.ReasonOf(err) == fault.Unreachable && ctx.Err() == nil {
				asked, err = false, &MovedError{Ref: p.Head, Want: p.HeadSHA}
			}
		}()
	}
	forge = s.Adv.References[p.MergeRef]
	wants, err := b.missing(head, forge)
	if err != nil || len(wants) == 0 {
		return forge, false, err
	}
	if err := b.room(); err != nil {
		return forge, false, err
	}
	max := m.limits.PackLimits
	max.Bytes, max.Objects = min(max.Bytes, m.limits.pullBytes), min(max.Objects, m.limits.pullObjects)
	err = m.receive(ctx, max, func(w io.Writer) error { return s.Pack(ctx, wants, m.haves(), w) })
	if err != nil {
		return forge, true, err
	}
	if have, err := m.db.Has(head); err != nil || !have {
		return forge, true, errors.Join(err, missingRef(s.Host, "commit "+p.HeadSHA))
	}
	return forge, true, m.remember(p.Head, head, b.now())
}

// missing returns the commits that the mirror does not have.
func (b *mirrorBackend) missing(commits ...plumbing.Hash) (out []plumbing.Hash, err error) {
	for _, h := range commits {
		have, err := b.mirror.db.Has(h)
		if err != nil {
			return nil, b.damaged(err)
		}
		if !have && !h.IsZero() {
			out = append(out, h)
		}
	}
	return out, nil
}

// room prevents pull requests from filling the disk. An overgrown mirror is recreated at the next fetch of
// the followed ref, which drops pull requests. At twice its limits, the mirror accepts no more pull requests
// until then.
func (b *mirrorBackend) room() error {
	m := b.mirror
	if err := m.prepare(); err != nil {
		return err
	}
	if !m.overgrown() {
		return nil
	}
	m.crowded.Store(true)
	if m.above(2) {
		return fault.New(fault.Storage, "the mirror is full and will be made again when the source is read next; then pull requests are read again")
	}
	return nil
}

func (m *mirror) pullDir() string { return filepath.Join(m.dir, "refs", "weir", "pulls") }

// pullRef returns the file that records a pull request's head. Its name does not depend on the characters
// that a forge allows in names.
func (m *mirror) pullRef(head string) string {
	sum := sha256.Sum256([]byte(head))
	return filepath.Join(m.pullDir(), hex.EncodeToString(sum[:8]))
}

// remember records that head and its history are local, so that the next fetch need not transfer them. It
// removes the oldest records.
func (m *mirror) remember(name string, head plumbing.Hash, now time.Time) error {
	if err := os.MkdirAll(m.pullDir(), 0o700); err != nil {
		return fmt.Errorf("remember a pull request: %w", err)
	}
	file := m.pullRef(name)
	if err := writeAtomic(file, []byte(head.String()+"\n")); err != nil {
		return fmt.Errorf("remember a pull request: %w", err)
	}
	if err := os.Chtimes(file, now, now); err != nil {
		return fmt.Errorf("remember a pull request: %w", err)
	}
	kept := m.pullFiles()
	for _, old := range kept[min(m.limits.pulls, len(kept)):] {
		if err := os.Remove(old.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("forget a pull request: %w", err)
		}
	}
	return nil
}

type pullFile struct {
	path string
	at   time.Time
}

// pullFiles returns the files that remember has written, the newest first.
func (m *mirror) pullFiles() []pullFile {
	entries, err := os.ReadDir(m.pullDir())
	if err != nil {
		return nil // without the names, a fetch only transfers more bytes
	}
	var out []pullFile
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			out = append(out, pullFile{filepath.Join(m.pullDir(), e.Name()), info.ModTime()})
		}
	}
	slices.SortFunc(out, func(a, b pullFile) int {
		return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.path, b.path))
	})
	return out
}

// pullHeads returns the recorded heads that are local.
func (m *mirror) pullHeads() []plumbing.Hash {
	var out []plumbing.Hash
	for _, f := range m.pullFiles() {
		h, err := readRef(f.path)
		if err != nil || h.IsZero() {
			continue
		}
		if have, err := m.db.Has(h); err == nil && have {
			out = append(out, h)
		}
	}
	return out
}
