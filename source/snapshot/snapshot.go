// Package snapshot defines the value that a source returns: a commit, its message with trailers, and its
// tree. Only package source knows how it was read from Git.
package snapshot

import (
	"time"

	"github.com/weir-gitops/weir/render/tree"
)

// Snapshot is a commit of a source. It is immutable.
type Snapshot struct {
	// Source is the name of the source. SourceID is the identity of its repository (see source.ID).
	Source, SourceID string
	// Revision is the commit's object name in hex.
	Revision string
	// Ref is the full name of the ref that led to the commit. It is "HEAD" for a detached HEAD, and the
	// object name for a pinned commit. After a restart, until the first fetch, it is the followed range of
	// versions, if there is one.
	Ref string
	// Subject is the first line of Message.
	Subject, Message string
	// CommittedAt is the committer's time.
	CommittedAt time.Time
	// Parent is the object name of the first parent, empty for a root commit.
	Parent string
	// SignedBy is the name of the key that signed the revision. It is empty if no signature is required.
	SignedBy string
	// Tree has the commit's files. It is safe for concurrent use.
	Tree tree.Tree
}
