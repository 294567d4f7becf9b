package report

import (
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
)

// Kept describes a target whose followed commit cannot be rendered. weir keeps the target at an earlier
// commit, or only observes it if no earlier commit can take its place.
type Kept struct {
	// Revision is the full hash of that earlier commit. It is empty if the target is only observed.
	Revision     string `json:"revision"`
	ObservedOnly bool   `json:"observedOnly"`
	// Since is the time of the first report of this state, zero if it is unknown.
	Since time.Time `json:"since,omitzero"`
	// Why is the error of the followed commit, Text the full description, and Ends the remedy.
	Why  string `json:"why"`
	Text string `json:"text"`
	Ends string `json:"ends"`
	// Because is the part of Text that gives the reason.
	Because string `json:"-"`
}

// KeptEnds describes how the hold of a target at an earlier commit, or its observation only, can end.
const KeptEnds = "a commit that fixes or reverts the error; if weir's configuration changed, check it too"

// KeptOf returns the Kept of a report's target, or nil if the target follows its commit.
func KeptOf(r *plan.Report, since time.Time) *Kept {
	if r == nil || r.Fallback == nil {
		return nil
	}
	h := r.Fallback
	return &Kept{Revision: h.To(), ObservedOnly: h.To() == "", Since: since, Why: h.Why, Text: h.Text(), Ends: KeptEnds, Because: h.Because()}
}

// Does describes how weir treats the target in this state.
func (h *Kept) Does(r *plan.Report) string {
	switch {
	case h.ObservedOnly:
		return "weir changes nothing of the target, and drift stays."
	case r.ReportOnly:
		return "The target is in report mode, so weir changes nothing of it, and drift stays."
	case r.Suspended:
		return "The target is suspended, so weir changes nothing of it, and drift stays."
	}
	if r.Plan != nil && r.Plan.Runnable() < len(r.Plan.Steps) {
		return "weir corrects drift from that commit once the steps no longer wait. It creates, rolls out and deletes nothing."
	}
	return "weir corrects drift from that commit. It creates, rolls out and deletes nothing."
}
