// Package snapshot is what everybody gets of a source: one commit, its message with the
// trailers in it, and its tree. It is a value: how it was read from Git is known to
// package source alone.
package snapshot

import (
	"time"

	"github.com/weir-gitops/weir/render/tree"
)

// Snapshot is one commit of a source. It does not change.
type Snapshot struct {
	// Source is the name of the source, SourceID the identity of its repository
	// (see source.ID).
	Source, SourceID string
	// Revision is the commit's object name in hex.
	Revision string
	// Ref is the full name of the ref that led to the commit, "HEAD" for a
	// detached one, the object name for a pinned commit, or, until the repository
	// was asked after a restart, the range of versions that is followed.
	Ref string
	// Subject is the first line of Message.
	Subject, Message string
	// CommittedAt is the committer's time.
	CommittedAt time.Time
	// Parent is the object name of the first parent, empty for a root commit.
	Parent string
	// SignedBy names the key that vouches for the revision, empty if no signature is required.
	SignedBy string
	// Tree holds the commit's files. It may be used by several goroutines.
	Tree tree.Tree
}
