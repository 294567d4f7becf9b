package source

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/git"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/source/transport"
)

// maxChanged bounds the paths of a change that weir would revert.
const maxChanged = 2000

// Commit is one that weir makes: On with the files at Paths as they are in From. Equal ones
// are one object, whoever makes them, and when.
type Commit struct {
	On, From string
	Paths    []string
	// Author and Address are who it is by, At is when.
	Author, Address string
	At              time.Time
	Message         string
}

// with calls do for commits that are here.
func (g *Git) with(ctx context.Context, names []string, do func(r repository, commits []git.Commit) error) error {
	r := g.backend.pulled()
	r.db.Steady.RLock()
	defer r.db.Steady.RUnlock()
	err := func() error {
		var commits []git.Commit
		for _, name := range names {
			h := plumbing.NewHash(name)
			have, err := r.db.Has(h)
			if err != nil {
				return err
			}
			if !git.IsHash(name) || !have {
				return fault.New(fault.MissingRef, "commit %s is not here", fault.Plain(name))
			}
			c, err := r.history.Commit(h)
			if err != nil {
				return err
			}
			if err := r.verify.Verify(c.Tree); err != nil {
				return err
			}
			commits = append(commits, c)
		}
		return do(r, commits)
	}()
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("read source %s: %w", g.cfg.Name, ctx.Err())
	case err != nil:
		return fault.Unavailable(g.cfg.Name, err)
	}
	return nil
}

// Changed lists the paths that differ between two commits that are here, in order. It fails
// where they are more than maxChanged.
func (g *Git) Changed(ctx context.Context, from, to string) (paths []string, err error) {
	err = g.with(ctx, []string{from, to}, func(r repository, c []git.Commit) (err error) {
		if paths, err = git.Changed(ctx, r.db, c[0].Tree, c[1].Tree, maxChanged); err == nil && len(paths) > maxChanged {
			err = fault.New(fault.Unsupported, "more than %d paths differ", maxChanged)
		}
		return err
	})
	return paths, err
}

// Restored is the commit on with the files at paths as they are in from. Nothing has that
// tree: the snapshot is for planning, and is readable until the mirror is made again.
func (g *Git) Restored(ctx context.Context, on, from string, paths []string) (s snapshot.Snapshot, err error) {
	err = g.with(ctx, []string{on, from}, func(r repository, c []git.Commit) error {
		t, err := git.Restore(r.db, c[0].Tree, c[1].Tree, paths)
		if err != nil {
			return err
		}
		if s, err = r.snapshot(plumbing.NewHash(on), on); err != nil {
			return err
		}
		s.Tree, s.Parent = t, on
		s = g.named(s)
		return nil
	})
	return s, err
}

// Branch makes a commit and what a server needs to have it, as a branch of a name. It
// writes nothing here.
func (g *Git) Branch(ctx context.Context, name string, c Commit) (b transport.Branch, err error) {
	err = g.with(ctx, []string{c.On, c.From}, func(r repository, of []git.Commit) error {
		t, err := git.Restore(r.db, of[0].Tree, of[1].Tree, slices.Sorted(slices.Values(c.Paths)))
		if err != nil {
			return err
		}
		if t.Root == of[0].Tree {
			return fault.New(fault.Unsupported, "nothing would change")
		}
		store := memory.NewStorage()
		var all []plumbing.Hash
		keep := func(kind plumbing.ObjectType, data []byte) (plumbing.Hash, error) {
			o := git.Object(kind, data)
			h, err := store.SetEncodedObject(o)
			all = append(all, h)
			return h, err
		}
		for _, n := range t.Merged {
			if _, err := keep(plumbing.TreeObject, n.Encode()); err != nil {
				return err
			}
		}
		by := object.Signature{Name: c.Author, Email: c.Address, When: c.At.UTC().Truncate(time.Second)}
		o := &plumbing.MemoryObject{}
		commit := &object.Commit{Author: by, Committer: by, Message: c.Message, TreeHash: t.Root, ParentHashes: []plumbing.Hash{plumbing.NewHash(c.On)}}
		if err := commit.Encode(o); err != nil {
			return err
		}
		h, err := store.SetEncodedObject(o)
		if err != nil {
			return err
		}
		all = append(all, h)
		slices.SortFunc(all, func(a, b plumbing.Hash) int { return bytes.Compare(a[:], b[:]) })
		var pack bytes.Buffer
		if _, err := packfile.NewEncoder(&pack, store, false).Encode(all, 0); err != nil {
			return err
		}
		b = transport.Branch{Name: name, Commit: h.String(), Pack: pack.Bytes()}
		return nil
	})
	return b, err
}
