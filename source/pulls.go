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

// PullRef names a pull request as a forge describes it.
type PullRef struct {
	// Head is the ref in full that holds the head, such as refs/pull/7/head or
	// refs/merge-requests/7/head. Forges keep it in the base repository for pull
	// requests from forks too.
	Head string
	// HeadSHA is the commit that the forge says the head is at.
	HeadSHA string
	// Base is the commit to merge with, in the mirror already: the revision of a
	// Snapshot of this source.
	Base string
	// MergeRef is the ref of the forge's own merge result, such as
	// refs/pull/7/merge; empty where the forge makes no such ref.
	MergeRef string
}

// Merge is the merge of a pull request's head and the base.
type Merge struct {
	// Snapshot holds the head's commit, to which statuses belong, the base commit as Parent, and
	// the merged files. Its Tree is nil if the merge has conflicts. It is readable until the mirror
	// is made again; then reading gives ErrReplaced, and Pull returns a new one.
	Snapshot snapshot.Snapshot
	// MergeBase is the commit that both have in common, the youngest of several;
	// empty without one.
	MergeBase string
	// Conflicts is sorted by path and holds at most MaxConflicts.
	Conflicts []Conflict
	// Behind counts the commits of the base that the head does not have, at most maxBehind. It can
	// be too high if committers' clocks are wrong.
	Behind int
	// FromForge says that the tree is that of the forge's merge commit, which may
	// have merged inside of files.
	FromForge bool
}

const (
	// MaxConflicts bounds the conflicts of one merge that are listed.
	MaxConflicts = 100
	// maxBehind is the highest value of Merge.Behind.
	maxBehind = 10_000
)

// ConflictKind says why a path cannot be merged without looking into files.
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

// Conflict is a path that was changed on both sides, or, without a path, a reason that prevents
// merging at all.
type Conflict struct {
	// Path is the path in Git, in any encoding.
	Path string
	Kind ConflictKind
}

// String names the trouble in a line that is fit for a log.
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

// MovedError says that a pull request's ref names another commit than the forge
// said, or none yet or any more: the forge's answer and its Git are of different
// moments. It passes: ask the forge again.
type MovedError struct {
	Ref string
	// Want is the commit that the forge reported, Got the commit of the ref, empty if the ref does
	// not exist.
	Want, Got string
}

// Error names the expected commit.
func (e *MovedError) Error() string {
	if e.Got == "" {
		return fmt.Sprintf("%s is not there, though the forge says that it is at %s; ask the forge again", fault.Plain(e.Ref), e.Want)
	}
	return fmt.Sprintf("%s is at %s, though the forge says %s; ask the forge again", fault.Plain(e.Ref), e.Got, e.Want)
}

// puller is the part of a backend that pull requests need.
type puller interface {
	// here reports whether p can be read without asking the remote.
	here(p PullRef) bool
	// bring fetches p's head unless it is here, and gives the forge's merge commit,
	// or the zero hash. It is called like latest.
	bring(ctx context.Context, p PullRef) (plumbing.Hash, error)
	// pulled gives the store to read from.
	pulled() repository
	// unreadable is called with errors in reading what bring fetched. It gives
	// another one where it knows better, else nil.
	unreadable(err error) error
	forget(head string) error
}

// Pull returns the result of merging a pull request now. That is the tree of the forge's merge
// commit if its parents are exactly the base and the head. Otherwise it is a merge of the two by
// path: a path that both sides changed to different content is a conflict. A renamed file is one
// deleted and one added.
//
// The head need not be signed: verify is about commits that weir applies, and this one is only
// planned.
//
// An error is a *MovedError, an *UnavailableError, or wraps ctx's. Pull may run in parallel with
// every other method. It does not change the followed ref, or the result of Last.
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

// Forget drops the memory of a pull request that was closed, named by its Head. Its
// objects stay until the mirror is made again.
func (g *Git) Forget(head string) error {
	if err := g.backend.forget(head); err != nil {
		return fault.Unavailable(g.cfg.Name, err)
	}
	return nil
}

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

func (g *Git) pull(ctx context.Context, p PullRef) (Merge, error) {
	b := g.backend
	r := b.pulled()
	since := r.db.Epoch.Load()
	forge, err := g.bring(ctx, p)
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
		return Merge{}, blame(err, p.HeadSHA)
	}
	if t, ok := m.Snapshot.Tree.(*git.Tree); ok {
		t.Epoch = since
	}
	return m, nil
}

// blame says that the fault is in the head, if the fault is in the objects there.
func blame(err error, head string) error {
	var oe *fault.ObjectError
	if fault.ReasonOf(err) != fault.Unsupported && (!errors.As(err, &oe) || !oe.Malformed) {
		return err
	}
	return &fault.Error{Reason: fault.Unsupported, Revision: head, Text: err.Error(), Err: err}
}

// bring fetches the commits that are not here. Only then does it wait for other
// operations.
func (g *Git) bring(ctx context.Context, p PullRef) (plumbing.Hash, error) {
	if g.backend.here(p) {
		return plumbing.ZeroHash, nil
	}
	if err := g.op.acquire(ctx); err != nil {
		return plumbing.ZeroHash, err
	}
	defer g.op.release()
	return g.backend.bring(ctx, p)
}
