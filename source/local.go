package source

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	gitconfig "github.com/go-git/go-git/v5/plumbing/format/config"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	"github.com/weir-gitops/weir/source/signature"
	"github.com/weir-gitops/weir/source/snapshot"
)

// localBackend is a repository on this machine. It is only ever read: someone
// else works in it, and may commit, repack or delete it at any time.
type localBackend struct {
	path   string
	ref    Ref
	policy signature.Policy
	repository

	// current belongs to latest's one caller.
	current string
}

var _ backend = (*localBackend)(nil)

// gitDirs are the directories of one repository. They differ for a linked
// worktree, which has its own HEAD, and objects and refs in common.
type gitDirs struct{ own, common string }

func (d gitDirs) objects() string { return filepath.Join(d.common, "objects") }

// findGitDirs finds the repository at path: a work tree, a linked worktree, a
// submodule, or a bare repository.
func findGitDirs(path string) (gitDirs, error) {
	if _, err := os.Stat(path); err != nil {
		return gitDirs{}, faultf(NotFound, "%s: %v", path, plainIOError(err))
	}
	own := filepath.Join(path, ".git")
	info, err := os.Stat(own)
	switch {
	case err != nil:
		own = path
	case !info.IsDir():
		data, err := os.ReadFile(own)
		if err != nil {
			return gitDirs{}, faultf(NotFound, "%s: %v", path, plainIOError(err))
		}
		target, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir: ")
		if !ok {
			return gitDirs{}, faultf(NotFound, "%s is no file of Git", own)
		}
		own = absFrom(path, target)
	}
	dirs := gitDirs{own: own, common: own}
	if data, err := os.ReadFile(filepath.Join(own, "commondir")); err == nil {
		dirs.common = absFrom(own, strings.TrimSpace(string(data)))
	}
	for _, p := range []string{filepath.Join(dirs.own, "HEAD"), dirs.objects()} {
		if _, err := os.Stat(p); err != nil {
			return gitDirs{}, faultf(NotFound, "%s is no Git repository", path)
		}
	}
	return dirs, nil
}

func absFrom(dir, p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(dir, p)
}

// plainIOError drops the operation and path that os puts around the cause.
func plainIOError(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// settings are those of the repository's own config.
func (d gitDirs) settings() (*gitconfig.Config, error) {
	cfg := gitconfig.New()
	f, err := os.Open(filepath.Join(d.common, "config"))
	if errors.Is(err, fs.ErrNotExist) {
		return cfg, nil
	}
	if err != nil {
		return nil, faultf(Unsupported, "read the repository's config: %v", err)
	}
	defer func() { _ = f.Close() }() // Opened for reading only.
	if err := gitconfig.NewDecoder(f).Decode(cfg); err != nil {
		return nil, faultf(Unsupported, "read the repository's config: %v", err)
	}
	return cfg, nil
}

// checkFormat refuses repositories that go-git cannot read.
func checkFormat(dirs gitDirs) error {
	cfg, err := dirs.settings()
	if err != nil {
		return err
	}
	for _, o := range cfg.Section("extensions").Options {
		switch key := strings.ToLower(o.Key); key {
		case "noop", "preciousobjects", "partialclone", "worktreeconfig", "relativeworktrees":
		case "objectformat":
			if !strings.EqualFold(o.Value, "sha1") {
				return faultf(Unsupported, "the repository uses the object format %s; only sha1 is carried", plain(o.Value))
			}
		case "refstorage":
			if !strings.EqualFold(o.Value, "files") {
				return faultf(Unsupported, "the repository keeps its refs as %s; convert it with `git refs migrate --ref-format=files`", plain(o.Value))
			}
		default:
			return faultf(Unsupported, "the repository uses the extension %s, which is unknown here", plain(key))
		}
	}
	return nil
}

// objectDirs lists the object directory and those that its alternates name.
func objectDirs(objects string) []string {
	out := []string{objects}
	seen := map[string]bool{objects: true}
	for i := 0; i < len(out); i++ {
		data, err := os.ReadFile(filepath.Join(out[i], "info", "alternates"))
		if err != nil {
			continue // There are none; what is missing shows when read.
		}
		for line := range strings.Lines(string(data)) {
			line = strings.TrimRight(line, "\r\n")
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			if dir := absFrom(out[i], line); !seen[dir] {
				seen[dir] = true
				out = append(out, dir)
			}
		}
	}
	return out
}

func newLocalBackend(path string, ref Ref, policy signature.Policy) *localBackend {
	db := newObjectDB(true, func() ([]string, error) {
		dirs, err := findGitDirs(path)
		if err != nil {
			return nil, err
		}
		return objectDirs(dirs.objects()), nil
	})
	return &localBackend{path: path, ref: ref, policy: policy, repository: newRepository(db)}
}

func (b *localBackend) latest(ctx context.Context, last snapshot.Snapshot) (snapshot.Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return snapshot.Snapshot{}, err
	}
	dirs, err := findGitDirs(b.path)
	if err != nil {
		return snapshot.Snapshot{}, err
	}
	if err := checkFormat(dirs); err != nil {
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
	if err := b.db.refresh(); err != nil {
		return snapshot.Snapshot{}, err
	}
	if b.ref.Commit != "" {
		if have, err := b.db.has(t.hash); err != nil || !have {
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

// resolve reads the ref as it is now.
func (b *localBackend) resolve(dirs gitDirs) (target, error) {
	if b.ref.Commit != "" {
		return target{candidate: candidate{b.ref.Commit, plumbing.NewHash(b.ref.Commit)}}, nil
	}
	refs := filesystem.NewStorage(
		dotgit.NewRepositoryFilesystem(osfs.New(dirs.own), osfs.New(dirs.common)), cache.NewObjectLRU(0))
	if b.ref.SemVer != "" {
		all, err := b.hashRefs(refs)
		if err != nil {
			return target{}, err
		}
		return selectVersion(b.path, b.ref.SemVer, all)
	}
	name := plumbing.ReferenceName(b.ref.fullName())
	if name == "" {
		var err error
		if name, err = b.defaultBranch(dirs, refs); err != nil {
			return target{}, err
		}
	}
	ref, err := storer.ResolveReference(refs, name)
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return target{}, b.unborn(refs, name)
	}
	if err != nil {
		return target{}, unread(err, "%s: read %s", b.path, name)
	}
	if ref.Hash().IsZero() {
		return target{}, faultf(Corrupt, "%s: %s holds no object name", b.path, name)
	}
	return target{candidate: candidate{name.String(), ref.Hash()}}, nil
}

// unborn tells an empty repository from one that merely lacks the ref.
func (b *localBackend) unborn(refs storer.ReferenceStorer, name plumbing.ReferenceName) error {
	all, err := b.hashRefs(refs)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return faultf(EmptyRepository, "%s has no commit yet", b.path)
	}
	return missingRef(b.path, name.String())
}

// hashRefs lists the refs that name an object.
func (b *localBackend) hashRefs(refs storer.ReferenceStorer) (map[string]plumbing.Hash, error) {
	iter, err := refs.IterReferences()
	if err != nil {
		return nil, unread(err, "%s: list refs", b.path)
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
		return nil, unread(err, "%s: list refs", b.path)
	}
	return out, nil
}

func (b *localBackend) load() (snapshot.Snapshot, error) { return snapshot.Snapshot{}, nil }

func (b *localBackend) at(h plumbing.Hash) (snapshot.Snapshot, error) {
	return commitAt(b.repository, h)
}

func (b *localBackend) watch() watchSet {
	return func() []string {
		dirs, err := findGitDirs(b.path)
		if err != nil {
			return nil
		}
		return refDirs(dirs)
	}
}

func (b *localBackend) close() { b.db.close() }

// refDirs lists the directories in which a changed ref shows: both Git
// directories for HEAD and packed-refs, and all below refs.
func refDirs(dirs gitDirs) []string {
	out := []string{dirs.own}
	if dirs.common != dirs.own {
		out = append(out, dirs.common)
	}
	// What cannot be listed is covered by polling.
	_ = filepath.WalkDir(filepath.Join(dirs.common, "refs"), func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			out = append(out, p)
		}
		return nil
	})
	return out
}
