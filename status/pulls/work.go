package pulls

import (
	"time"

	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
)

// work is an open pull request.
type work struct {
	pr forge.PullRequest
	record
	// shown is the last report of it, review what that was made from; both are
	// empty after a restart.
	shown  report.Pull
	review *fleet.Review
	// bytes are those of its plans that are held.
	bytes int
	// base is the commit that the plan was last known to hold for.
	base    string
	planned time.Time
	// asked says that a user wants a plan, whatever weir knows already.
	asked bool
	// planning is the plan under way, nil for none: there is one at a time.
	planning *planning
	// slow says that it took long to render last, heavy that it held much.
	slow, heavy bool
	// tries counts plans that failed in a row for what may pass, due is when the
	// next one is made.
	tries int
	due   time.Time
	// replied is the time of weir's last reply, restored the time of the last rewrite of its
	// comment after somebody had edited it.
	replied, restored time.Time
}
