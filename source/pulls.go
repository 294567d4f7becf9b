package source

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/git"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/source/transport"
)

// PullRef identifies a pull request with the data of a forge.
type PullRef struct {
	// Head is the full ref of the head, such as refs/pull/7/head or refs/merge-requests/7/head. Forges also
	// have it in the base repository for pull requests from forks.
	Head string
	// HeadSHA is the commit of the head according to the forge.
	HeadSHA string
	// Base is the commit to merge with. It must be in the mirror: the revision of a Snapshot of this source.
	Base string
	// MergeRef is the ref of the forge's own merge result, such as refs/pull/7/merge. It is empty if the
	// forge has no such ref.
	MergeRef string
}

// Merge is the result of merging a pull request's head with the base.
type Merge struct {
	// Snapshot has the head's commit, to which statuses belong, the base commit as Parent, and the merged
	// files. Its Tree is nil if the merge has conflicts. It is readable until the mirror is recreated. Reads
	// then return ErrReplaced, and Pull returns a new Merge.
	Snapshot snapshot.Snapshot
	// MergeBase is the newest common commit, or empty.
	MergeBase string
	// Conflicts are sorted by path. There are at most MaxConflicts.
	Conflicts []Conflict
	// Behind is the number of commits of the base that the head does not have, at most maxBehind. It can be
	// too high if committers' clocks are wrong.
	Behind int
	// FromForge is true if the tree comes from the forge's merge commit, which may have merged inside of
	// files.
	FromForge bool
}

const (
	// MaxConflicts bounds the listed conflicts of a merge.
	MaxConflicts = 100
	// maxBehind is the maximum of Merge.Behind.
	maxBehind = 10_000
)

// ConflictKind is the reason why a path cannot be merged without reading files.
type ConflictKind string

// Kinds of conflicts. They are stable.
const (
	BothChanged         ConflictKind = "both-changed"
	BothAdded           ConflictKind = "both-added"
	ChangedAndDeleted   ConflictKind = "changed-and-deleted"
	FileAndDirectory    ConflictKind = "file-and-directory"
	ModeConflict        ConflictKind = "mode"
	KindConflict        ConflictKind = "kind"
	SubmoduleConflict   ConflictKind = "submodule"
	SeveralMergeBases   ConflictKind = "several-merge-bases"
	UnrelatedHistories  ConflictKind = "unrelated-histories"
	maxConflictPathText              = 200
)

// Conflict is a path that was changed on both sides. Without a path, it is a reason that prevents the merge.
type Conflict struct {
	// Path is the path in Git, in any encoding.
	Path string
	Kind ConflictKind
}

// String describes the conflict on one line, suitable for a log.
func (c Conflict) String() string {
	if what := c.Kind.text(); c.Path == "" {
		return what
	} else {
		p := fault.Plain(c.Path)
		if len(p) > maxConflictPathText {
			p = strings.ToValidUTF8(p[:maxConflictPathText], "") + "…"
		}
		return p + ": " + what
	}
}

// text describes the conflict for the author of the pull request.
func (k ConflictKind) text() string {
	switch k {
	case BothChanged:
		return "changed on both sides"
	case BothAdded:
		return "added on both sides with different content"
	case ChangedAndDeleted:
		return "changed on one side, deleted on the other"
	case FileAndDirectory:
		return "a file on one side, a directory on the other"
	case ModeConflict:
		return "the mode was changed on both sides"
	case KindConflict:
		return "a file, a symlink or a submodule on one side, something else on the other"
	case SubmoduleConflict:
		return "the submodule was moved on both sides"
	case SeveralMergeBases:
		return "several merge bases: update the branch"
	case UnrelatedHistories:
		return "the branch has no commit in common with the one that is followed: start it from that branch"
	default:
		return string(k)
	}
}

// MovedError means that a pull request's ref does not point to the commit that the forge reported, or does
// not exist. The forge's API and its Git are then at different times. The error is temporary: ask the forge
// again.
type MovedError struct {
	Ref string
	// Want is the commit that the forge reported. Got is the commit of the ref, or empty if the ref does not
	// exist.
	Want, Got string
}

// Error returns a message with the expected commit.
func (e *MovedError) Error() string {
	if e.Got == "" {
		return fmt.Sprintf("%s is not there, though the forge says that it is at %s; ask the forge again", fault.Plain(e.Ref), e.Want)
	}
	return fmt.Sprintf("%s is at %s, though the forge says %s; ask the forge again", fault.Plain(e.Ref), e.Got, e.Want)
}

// puller is the part of a backend for pull requests.
type puller interface {
	// hasPull reports whether p can be read without a request to the remote.
	hasPull(p PullRef) bool
	// fetchPull fetches p's head if it is not local, and returns the forge's merge commit, or the zero hash. Like
	// latest, it must not be called concurrently.
	fetchPull(ctx context.Context, p PullRef) (plumbing.Hash, error)
	// pulled returns the store to read from.
	pulled() repository
	// unreadable is called with errors of reading what fetchPull fetched. It returns a more precise error, or
	// nil.
	unreadable(err error) error
	forget(head string) error
}

// Pull merges a pull request and returns the result. If the forge's merge commit has exactly the base and the
// head as parents, the result is its tree. Otherwise Pull merges the two by path. A path that both sides
// changed to different content is a conflict. A renamed file counts as one deleted and one added file.
//
// The head need not be signed. verify concerns commits that weir applies, and this one is only planned.
//
// An error is a *MovedError, an *UnavailableError, or wraps the error of ctx. Pull may run in parallel with
// every other method. It changes neither the followed ref nor the result of Last.
func (g *Git) Pull(ctx context.Context, p PullRef) (Merge, error) {
	if err := p.validate(); err != nil {
		return Merge{}, fault.Unavailable(g.cfg.Name, err)
	}
	op, cancel := transport.WithDeadline(ctx, g.opts.Timeout)
	defer cancel()
	var m Merge
	var err error
	for range maxRaces {
		if m, err = g.pull(op, p); !errors.Is(err, git.ErrReplaced) {
			break
		}
	}
	var moved *MovedError
	switch {
	case err == nil:
		m.Snapshot = g.named(m.Snapshot)
		return m, nil
	case ctx.Err() != nil:
		return Merge{}, fmt.Errorf("read source %s: %w", g.cfg.Name, ctx.Err())
	case errors.As(err, &moved):
		return Merge{}, fmt.Errorf("read source %s: %w", g.cfg.Name, moved)
	case errors.Is(err, context.DeadlineExceeded):
		err = &fault.Error{Reason: fault.Timeout, Text: fmt.Sprintf("%s could not be read in time", p.Head), Err: err}
	}
	return Merge{}, fault.Unavailable(g.cfg.Name, err)
}

// Forget removes the record of a closed pull request, given its Head. Its objects stay until the mirror is
// recreated.
func (g *Git) Forget(head string) error {
	if err := g.backend.forget(head); err != nil {
		return fault.Unavailable(g.cfg.Name, err)
	}
	return nil
}

// validate checks the form of the refs and hashes, because they come from a forge. MergeRef may be empty.
func (p PullRef) validate() error {
	for _, name := range []string{p.Head, p.MergeRef} {
		if name == "" && p.Head != "" {
			continue
		}
		if !strings.HasPrefix(name, "refs/") || plumbing.ReferenceName(name).Validate() != nil {
			return fault.New(fault.MissingRef, "%q is not a full name of a ref", fault.Plain(name))
		}
	}
	for _, sha := range []string{p.HeadSHA, p.Base} {
		if !git.IsHash(sha) {
			return fault.New(fault.MissingRef, "%q is not a full object name of 40 lower-case hex digits", fault.Plain(sha))
		}
	}
	return nil
}

// pull is one attempt of Pull. It fails with git.ErrReplaced if the mirror was replaced during the merge.
func (g *Git) pull(ctx context.Context, p PullRef) (Merge, error) {
	b := g.backend
	r := b.pulled()
	since := r.db.Epoch.Load()
	forge, err := g.fetchPull(ctx, p)
	if err != nil {
		return Merge{}, err
	}
	r.db.Steady.RLock()
	defer r.db.Steady.RUnlock()
	if r.db.Epoch.Load() != since {
		return Merge{}, git.ErrReplaced
	}
	m, err := r.mergePull(ctx, p, forge)
	if err != nil {
		if known := b.unreadable(err); known != nil {
			return Merge{}, known
		}
		return Merge{}, headFault(err, p.HeadSHA)
	}
	if t, ok := m.Snapshot.Tree.(*git.Tree); ok {
		t.Epoch = since
	}
	return m, nil
}

// headFault returns err as a fault of the pull request's head if it is about something that weir does not
// support, or about an object that Git would not create. Other errors are returned unchanged. The base is a
// commit that the source has already read, so such an object comes from the head. Without this, the reason of a
// malformed object would be Corrupt, although the repository is intact.
func headFault(err error, head string) error {
	var oe *fault.ObjectError
	if fault.ReasonOf(err) != fault.Unsupported && (!errors.As(err, &oe) || !oe.Malformed) {
		return err
	}
	return &fault.Error{Reason: fault.Unsupported, Revision: head, Text: err.Error(), Err: err}
}

// fetchPull fetches missing commits. It waits for other operations only if it must fetch.
func (g *Git) fetchPull(ctx context.Context, p PullRef) (plumbing.Hash, error) {
	if g.backend.hasPull(p) {
		return plumbing.ZeroHash, nil
	}
	if err := g.op.acquire(ctx); err != nil {
		return plumbing.ZeroHash, err
	}
	defer g.op.release()
	return g.backend.fetchPull(ctx, p)
}
