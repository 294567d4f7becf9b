package comments

import (
	"context"
	"time"

	"github.com/weir-gitops/weir/status/commits"
	"github.com/weir-gitops/weir/status/forge"
)

// Commenter writes comments on the pull requests of one repository. All its errors are *forgehttp.Error.
type Commenter interface {
	Profile() forge.Profile
	// Self returns the token's user, who is the author of all comments that weir writes.
	Self(ctx context.Context) (string, error)
	// Comments lists a pull request's comments since a time, the oldest first.
	Comments(ctx context.Context, number int64, since time.Time) ([]forge.Comment, error)
	CreateComment(ctx context.Context, number int64, body string) (forge.Comment, error)
	EditComment(ctx context.Context, number, id int64, body string) (forge.Comment, error)
	DeleteComment(ctx context.Context, number, id int64) error
}

// PullForge reports pull requests: in statuses of their heads, and in comments.
type PullForge interface {
	commits.Forge
	Commenter
}
