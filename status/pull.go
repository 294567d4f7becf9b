package status

import (
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
)

// PullState says what is known of a pull request, on GitLab a merge request.
type PullState string

// States of a pull request. The last two are ends.
const (
	// PullPlanned was planned: merging it changes something.
	PullPlanned PullState = "planned"
	// PullUnaffected changes nothing that a target renders.
	PullUnaffected PullState = "unaffected"
	// PullConflict cannot be merged cleanly.
	PullConflict PullState = "conflict"
	// PullWaiting is a fork's or a draft that nobody has let be planned yet.
	PullWaiting PullState = "waiting"
	// PullFailing cannot be rendered or planned.
	PullFailing PullState = "failing"
	PullMerged  PullState = "merged"
	PullClosed  PullState = "closed"
)

// Pull is what is told of a pull request: on its commit, in its comment and on the
// page. It is immutable once handed on.
type Pull struct {
	// Source is the source's name.
	Source string
	Number int64
	// Title, Author and WebURL are the forge's.
	Title, Author, WebURL string
	// HeadSHA is the commit that is proposed. BaseSHA is the commit of BaseRef that
	// the plan was made upon, "" where there is none.
	HeadSHA, BaseRef, BaseSHA string
	// Fork says that the head comes from another repository.
	Fork  bool
	State PullState
	// Reason says why it waits, conflicts, fails or was closed, and what to do.
	Reason string
	// Reports are the affected targets' alone, with origins.
	Reports []*plan.Report
	// Gone are the targets that the pull request takes away.
	Gone []string
	// Unaffected is how many targets stay as they are.
	Unaffected int
	// Digest is of all plans together, "" where there is none. Digests are the
	// targets'; empty, they are taken from the reports.
	Digest  string
	Digests map[string]string
	// Approved is by whom the plan is approved, "" while it is not. AsReviewed says
	// that some target holds its steps until then.
	Approved   string
	AsReviewed bool
	// Stale says why the plan may no longer be what is applied, "" if it is.
	Stale string
	// PlannedAt is when the plan was made. It is shown on the page only: equal plans
	// have equal comments.
	PlannedAt time.Time
	// MergeSHA is the commit that merging made, "" until then.
	MergeSHA string
	// Compared says, once merged, that the plan of the merge was compared with the
	// reviewed one, Differs how they differ.
	Compared bool
	Differs  []string
	// PageURL is where weir's page shows it, "" for nowhere.
	PageURL string
}

// Targets is how many targets the pull request affects, and of how many.
func (p Pull) Targets() (affected, all int) {
	affected = len(p.Reports) + len(p.Gone)
	return affected, affected + p.Unaffected
}
