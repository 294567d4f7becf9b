package commits

import (
	"context"

	"github.com/weir-gitops/weir/status/forge"
)

// Forge writes and reads the statuses of commits of one repository. Its errors
// are *forgehttp.Error.
type Forge interface {
	Profile() forge.Profile
	// SetStatus adds a status to a commit.
	SetStatus(ctx context.Context, sha string, s forge.CommitStatus) error
	// Statuses returns the newest status of each context of a commit.
	Statuses(ctx context.Context, sha string) (map[string]forge.CommitStatus, error)
}
