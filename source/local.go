package source

import (
	"context"
	"errors"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/git"
	"github.com/weir-gitops/weir/source/signature"
	"github.com/weir-gitops/weir/source/snapshot"
)

// localBackend is a local repository. weir only reads it. Other users work in it, and may commit, repack or
// delete it at any time.
type localBackend struct {
	path   string
	ref    Ref
	policy signature.Policy
	repository

	// current is used only by latest.
	current string
}

var _ backend = (*localBackend)(nil)

func newLocalBackend(path string, ref Ref, policy signature.Policy) *localBackend {
	db := git.NewStore(true, func() ([]string, error) {
		dirs, err := git.FindDirs(path)
		if err != nil {
			return nil, err
		}
		return git.ObjectDirs(dirs.Objects()), nil
	})
	return &localBackend{path: path, ref: ref, policy: policy, repository: newRepository(db)}
}

// latest returns the snapshot of the ref, or last if the ref has not moved. It reads the refs at every
// call, because other users change the repository.
func (b *localBackend) latest(ctx context.Context, last snapshot.Snapshot) (snapshot.Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return snapshot.Snapshot{}, err
	}
	dirs, err := git.FindDirs(b.path)
	if err != nil {
		return snapshot.Snapshot{}, err
	}
	if err := git.CheckFormat(dirs); err != nil {
		return snapshot.Snapshot{}, err
	}
	t, err := b.resolve(dirs)
	if err != nil {
		return snapshot.Snapshot{}, err
	}
	if last.Tree != nil && t.key() == b.current {
		if len(t.rivals) == 0 {
			last.Ref = t.ref
		}
		return last, nil
	}
	if err := b.db.Refresh(); err != nil {
		return snapshot.Snapshot{}, err
	}
	if b.ref.Commit != "" {
		if have, err := b.db.Has(t.hash); err != nil || !have {
			return snapshot.Snapshot{}, errors.Join(err, missingRef(b.path, "commit "+b.ref.Commit))
		}
	}
	c, err := b.newest(t)
	if err != nil {
		return snapshot.Snapshot{}, err
	}
	s, err := b.snapshot(c.hash, c.ref)
	if err != nil {
		return snapshot.Snapshot{}, err
	}
	if err := b.attest(b.policy, c, s.Revision == last.Revision, &s); err != nil {
		return snapshot.Snapshot{}, err
	}
	b.current = t.key()
	return s, nil
}

// resolve returns the object that the ref currently names, from the refs on the disk. For a version, it
// returns the tags of the highest version in the range.
func (b *localBackend) resolve(dirs git.Dirs) (selection, error) {
	if b.ref.Commit != "" {
		return selection{candidate: candidate{b.ref.Commit, plumbing.NewHash(b.ref.Commit)}}, nil
	}
	refs := filesystem.NewStorage(
		dotgit.NewRepositoryFilesystem(osfs.New(dirs.Own), osfs.New(dirs.Common)), cache.NewObjectLRU(0))
	if b.ref.SemVer != "" {
		all, err := b.hashRefs(refs)
		if err != nil {
			return selection{}, err
		}
		return selectVersion(b.path, b.ref.SemVer, all)
	}
	name := plumbing.ReferenceName(b.ref.fullName())
	if name == "" {
		var err error
		if name, err = b.defaultBranch(dirs, refs); err != nil {
			return selection{}, err
		}
	}
	ref, err := storer.ResolveReference(refs, name)
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return selection{}, b.unborn(refs, name)
	}
	if err != nil {
		return selection{}, fault.Unread(err, "%s: read %s", b.path, name)
	}
	if ref.Hash().IsZero() {
		return selection{}, fault.New(fault.Corrupt, "%s: %s holds no object name", b.path, name)
	}
	return selection{candidate: candidate{name.String(), ref.Hash()}}, nil
}

// unborn returns the error for a missing ref, which is a different one for an empty repository.
func (b *localBackend) unborn(refs storer.ReferenceStorer, name plumbing.ReferenceName) error {
	all, err := b.hashRefs(refs)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fault.New(fault.EmptyRepository, "%s has no commit yet", b.path)
	}
	return missingRef(b.path, name.String())
}

// hashRefs returns the refs that point to an object.
func (b *localBackend) hashRefs(refs storer.ReferenceStorer) (map[string]plumbing.Hash, error) {
	iter, err := refs.IterReferences()
	if err != nil {
		return nil, fault.Unread(err, "%s: list refs", b.path)
	}
	defer iter.Close()
	out := map[string]plumbing.Hash{}
	err = iter.ForEach(func(r *plumbing.Reference) error {
		if r.Type() == plumbing.HashReference {
			out[r.Name().String()] = r.Hash()
		}
		return nil
	})
	if err != nil {
		return nil, fault.Unread(err, "%s: list refs", b.path)
	}
	return out, nil
}

func (b *localBackend) load() (snapshot.Snapshot, error) { return snapshot.Snapshot{}, nil }

func (b *localBackend) at(h plumbing.Hash) (snapshot.Snapshot, error) {
	return commitAt(b.repository, h)
}

func (b *localBackend) watch() watchSet {
	return func() []string {
		dirs, err := git.FindDirs(b.path)
		if err != nil {
			return nil
		}
		return git.RefDirs(dirs)
	}
}

func (b *localBackend) close() { b.db.Close() }
