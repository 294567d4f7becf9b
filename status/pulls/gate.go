package pulls

import (
	"slices"
)

// label records whether the label permits planning the head. A label that was already set when the head was
// first seen was meant for another head. It must be removed and set again to permit this one.
func (r *openPull) label(p Policy, fresh bool) {
	if !r.pr.Fork || !slices.Contains(p.Forks.AllowBy, ByLabel) {
		return
	}
	on := slices.Contains(r.pr.Labels, p.Forks.Label)
	switch {
	case fresh:
		r.Labelled = on
	case on && !r.Labelled:
		r.Allowed = r.Seen
	}
	if !on {
		r.Labelled = false
	}
}

// wait returns the reason why a pull request is not planned, or "" if it must be planned.
func (r *openPull) wait(p Policy) string {
	// A permission given under an earlier configuration does not stay valid.
	if r.Allowed != "" && r.Allowed == r.pr.HeadSHA && (!r.pr.Fork || len(p.Forks.AllowBy) > 0) {
		return ""
	}
	switch {
	case r.pr.Fork:
		switch {
		case len(p.Forks.AllowBy) == 0:
			return forksOff
		case !slices.Contains(p.Forks.AllowBy, ByLabel):
			return "users with write access to the repository can plan this commit with the comment weir plan"
		case !slices.Contains(p.Forks.AllowBy, ByComment):
			return "the label " + p.Forks.Label + ", set after this push, makes weir plan this commit"
		default:
			return "the comment weir plan, or the label " + p.Forks.Label + " set after this push, makes weir plan this commit"
		}
	case r.pr.Draft && p.Drafts == DraftsWait:
		return "a draft: it is planned once it is ready for review, or with the comment weir plan"
	default:
		return ""
	}
}

// forksOff is the reason why a pull request from a fork is not planned if the configuration allows nobody
// to permit it.
const forksOff = "pull requests from forks are not planned here: push its branch to this repository, or set pullRequests.forks.allowBy"

// forksText returns the answer to the comment weir plan if comments cannot permit a plan.
func forksText(p Policy) string {
	if len(p.Forks.AllowBy) == 0 {
		return "P" + forksOff[1:] + "."
	}
	return "Pull requests from forks are not planned for a comment here: the configuration does not allow it. The label " + p.Forks.Label + ", set after this push, makes weir plan this commit."
}

// allows reports whether the comment weir plan can permit a plan of the pull request.
func (r *openPull) allows(p Policy) bool {
	return !r.pr.Fork || slices.Contains(p.Forks.AllowBy, ByComment)
}
