package comments

import (
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/wording"
)

// statusOf returns the status <instance>/plan of a pull request. ok is false for an ended pull request,
// which needs no status.
func statusOf(p report.Pull) (state forge.CommitState, text string, ok bool) {
	lead, more := p.Headline()
	switch p.State {
	case report.PullPlanned:
		changed, all := p.Changed()
		switch changed {
		case 0:
			text = "nothing to do: " + more
		case 1:
			text = fmt.Sprintf("1 of %s changes: %s", wording.Count(all, "target"), more)
		default:
			text = fmt.Sprintf("%d of %s change: %s", changed, wording.Count(all, "target"), more)
		}
		if p.Stale != "" {
			text = "may be out of date: " + p.Stale
		}
		return forge.Success, text, true
	case report.PullUnaffected:
		return forge.Success, "no target affected", true
	case report.PullConflict:
		return forge.Failure, strings.TrimSuffix("update the branch: "+more, ": "), true
	case report.PullWaiting:
		return forge.Pending, "needs a maintainer" + strings.TrimSuffix(": "+more, ": "), true
	case report.PullFailing:
		return forge.Failure, strings.TrimSuffix(more, ": "), true
	default:
		return forge.Errored, strings.ToLower(lead), false
	}
}

// getsComment reports whether weir creates a comment for a pull request in its state.
func getsComment(p report.Pull) bool {
	return p.State == report.PullPlanned || p.State == report.PullFailing || p.State == report.PullConflict
}
