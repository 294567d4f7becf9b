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

// Commit is a commit that weir creates: On with the files at Paths as they are in From, or with Files. Equal
// commits have the same object name, whichever member creates them and when.
type Commit struct {
	On, From string
	Paths    []string
	// Files has the contents of files by path. From and Paths are then empty.
	Files map[string][]byte
	// After is the current commit of a branch. It becomes another parent, so that nothing on the branch is
	// lost. It need not be in the repository, and is empty for a new branch.
	After string
	// Author and Address are the author's name and address, and At is the time.
	Author, Address string
	At              time.Time
	Message         string
}

// with calls do with the commits that have the given full names, and converts errors for the caller. It
// fails if a commit is missing or its tree is incomplete. The mirror is not replaced during do.
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

// Changed returns the paths that differ between two local commits, in order. It returns an error if there are
// more than maxChanged.
func (g *Git) Changed(ctx context.Context, from, to string) (paths []string, err error) {
	err = g.with(ctx, []string{from, to}, func(r repository, c []git.Commit) (err error) {
		if paths, err = git.Changed(ctx, r.db, c[0].Tree, c[1].Tree, maxChanged); err == nil && len(paths) > maxChanged {
			err = fault.New(fault.Unsupported, "more than %d paths differ", maxChanged)
		}
		return err
	})
	return paths, err
}

// Restored returns the commit on with the files at paths as they are in from. No commit has that tree. The
// snapshot is only for planning, and is readable until the mirror is recreated.
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

// Edited returns the commit on with other contents of files. As with Restored, no commit has that tree, and
// the snapshot is only for planning.
func (g *Git) Edited(ctx context.Context, on string, files map[string][]byte) (s snapshot.Snapshot, err error) {
	err = g.with(ctx, []string{on}, func(r repository, c []git.Commit) error {
		t, err := git.Edit(r.db, c[0].Tree, files)
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

// By returns the author and the committer of a local commit, each in the form NAME <ADDRESS>.
func (g *Git) By(ctx context.Context, revision string) (author, committer string, err error) {
	err = g.with(ctx, []string{revision}, func(r repository, _ []git.Commit) error {
		data, err := r.db.Meta(plumbing.CommitObject, plumbing.NewHash(revision))
		if err != nil {
			return err
		}
		c := &object.Commit{}
		if err := c.Decode(git.Object(plumbing.CommitObject, data)); err != nil {
			return fault.New(fault.Unsupported, "decode commit %s: %v", revision, err)
		}
		person := func(s object.Signature) string { return s.Name + " <" + s.Email + ">" }
		author, committer = person(c.Author), person(c.Committer)
		return nil
	})
	return author, committer, err
}

// change returns the tree of a commit that weir creates.
func (c *Commit) change(r repository, of []git.Commit) (*git.Tree, error) {
	if c.Files != nil {
		return git.Edit(r.db, of[0].Tree, c.Files)
	}
	return git.Restore(r.db, of[0].Tree, of[1].Tree, slices.Sorted(slices.Values(c.Paths)))
}

// Branch creates a commit, and returns it as a branch with the objects that a server may need. It does not
// write to the local repository.
func (g *Git) Branch(ctx context.Context, name string, c Commit) (b transport.Branch, err error) {
	here := slices.DeleteFunc([]string{c.On, c.From}, func(name string) bool { return name == "" })
	err = g.with(ctx, here, func(r repository, of []git.Commit) error {
		t, err := c.change(r, of)
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
		for _, data := range t.Written {
			if _, err := keep(plumbing.BlobObject, data); err != nil {
				return err
			}
		}
		parents := []plumbing.Hash{plumbing.NewHash(c.On)}
		if c.After != "" && c.After != c.On {
			parents = []plumbing.Hash{plumbing.NewHash(c.After), plumbing.NewHash(c.On)}
		}
		by := object.Signature{Name: c.Author, Email: c.Address, When: c.At.UTC().Truncate(time.Second)}
		o := &plumbing.MemoryObject{}
		commit := &object.Commit{Author: by, Committer: by, Message: c.Message, TreeHash: t.Root, ParentHashes: parents}
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
		b = transport.Branch{Name: name, Commit: h.String(), After: c.After, Pack: pack.Bytes()}
		return nil
	})
	return b, err
}
