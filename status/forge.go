package status

import (
	"context"
	"time"

	"github.com/weir-gitops/weir/status/forge"
)

// Forge writes and reads the statuses of commits of one repository. Its errors
// are *forgehttp.Error.
type Forge interface {
	Kind() forge.Kind
	// Limits says what the forge takes.
	Limits() forge.Limits
	// SetStatus adds a status to a commit.
	SetStatus(ctx context.Context, sha string, s forge.CommitStatus) error
	// Statuses returns the newest status of each context of a commit.
	Statuses(ctx context.Context, sha string) (map[string]forge.CommitStatus, error)
}

// Commenter writes comments on the pull requests of one repository. Its errors are
// *forgehttp.Error.
type Commenter interface {
	Kind() forge.Kind
	// Self is whose the token is: the author of what is written with it.
	Self(ctx context.Context) (string, error)
	// Comments lists a pull request's comments since a time, the oldest first.
	Comments(ctx context.Context, number int64, since time.Time) ([]forge.Comment, error)
	CreateComment(ctx context.Context, number int64, body string) (id int64, err error)
	EditComment(ctx context.Context, number, id int64, body string) error
	DeleteComment(ctx context.Context, number, id int64) error
}

// PullForge tells of pull requests: in statuses of their heads, and in comments.
type PullForge interface {
	Forge
	Commenter
}
