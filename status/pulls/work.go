package pulls

import (
	"time"

	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
)

// openPull is an open pull request.
type openPull struct {
	pr forge.PullRequest
	record
	// shown is the last shown state. review is the rendered change that its plan is based on. Both are
	// empty after a restart.
	shown  report.Pull
	review *fleet.Review
	// bytes is the size of its plans in memory.
	bytes int
	// base is the last commit for which the plan was valid.
	base    string
	planned time.Time
	// asked says that a new plan is needed even if the shown one is valid, because a user requested it or
	// the configuration changed.
	asked bool
	// planning is the plan in progress, nil if none exists.
	planning *planning
	// slow says that the last render took long, and heavy that it used much memory.
	slow, heavy bool
	// tries is the number of consecutive temporary failures of plans, and due the time of the next plan.
	tries int
	due   time.Time
	// replied is the time of weir's last reply. restored is the time of the last rewrite of its comment
	// after an edit by another user.
	replied, restored time.Time
}

// shows reports whether the reason why a pull request is not planned is already shown.
func (k *openPull) shows(reason string) bool {
	return k.shown.Reason == reason && k.shown.HeadSHA == k.pr.HeadSHA && k.shown.Title == k.pr.Title
}
