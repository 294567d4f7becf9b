package source

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/git"
)

func (b *localBackend) pulled() repository { return b.repository }

// hasPull returns false, because reading the refs again is cheap.
func (b *localBackend) hasPull(PullRef) bool { return false }

// unreadable returns nil, because weir cannot recreate a local repository.
func (b *localBackend) unreadable(error) error { return nil }

func shallowFault(where string) error {
	return fault.New(fault.Unsupported, "%s has only a part of the history, too little to merge; run `git fetch --unshallow` there", where)
}

func (b *localBackend) forget(string) error { return nil }

// fetchPull checks that the local repository has the head at HeadSHA, and returns the forge's merge commit, or
// the zero hash. It fetches nothing, and fails with a MovedError if the head is another commit.
func (b *localBackend) fetchPull(ctx context.Context, p PullRef) (plumbing.Hash, error) {
	if err := ctx.Err(); err != nil {
		return plumbing.ZeroHash, err
	}
	dirs, err := git.FindDirs(b.path)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if err := git.CheckFormat(dirs); err != nil {
		return plumbing.ZeroHash, err
	}
	if _, err := os.Stat(filepath.Join(dirs.Common, "shallow")); err == nil {
		return plumbing.ZeroHash, shallowFault(b.path)
	}
	refs := filesystem.NewStorage(
		dotgit.NewRepositoryFilesystem(osfs.New(dirs.Own), osfs.New(dirs.Common)), cache.NewObjectLRU(0))
	head, err := b.named(refs, p.Head)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if head.IsZero() {
		return head, &MovedError{Ref: p.Head, Want: p.HeadSHA}
	}
	if head.String() != p.HeadSHA {
		return head, &MovedError{Ref: p.Head, Want: p.HeadSHA, Got: head.String()}
	}
	var forge plumbing.Hash
	if p.MergeRef != "" {
		if forge, err = b.named(refs, p.MergeRef); err != nil {
			return forge, err
		}
	}
	for _, h := range []plumbing.Hash{head, forge} {
		if have, err := b.db.Has(h); h.IsZero() || err == nil && have {
			continue
		}
		// Git has written packs meanwhile.
		return forge, b.db.Refresh()
	}
	return forge, nil
}

// named returns the commit that a ref names, or the zero hash if the ref does not exist.
func (b *localBackend) named(refs storer.ReferenceStorer, name string) (plumbing.Hash, error) {
	ref, err := storer.ResolveReference(refs, plumbing.ReferenceName(name))
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return plumbing.ZeroHash, nil
	}
	if err != nil {
		return plumbing.ZeroHash, fault.Unread(err, "%s: read %s", b.path, fault.Plain(name))
	}
	return ref.Hash(), nil
}
