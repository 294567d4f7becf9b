package report

import (
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
)

// Kept says how a target stands whose followed commit cannot be rendered: at which earlier
// one weir keeps it, or that none takes its place.
type Kept struct {
	// Revision is the full hash of that earlier commit, empty where the target is only
	// observed.
	Revision     string `json:"revision"`
	ObservedOnly bool   `json:"observedOnly"`
	// Since is the time of the first report of this, zero if it is unknown.
	Since time.Time `json:"since,omitzero"`
	// Why is the fault of the followed commit, Text all of it, and Ends says who can end it.
	Why  string `json:"why"`
	Text string `json:"text"`
	Ends string `json:"ends"`
	// Because is the part of Text that gives the reason.
	Because string `json:"-"`
}

// KeptEnds describes what ends the hold of a target at an earlier commit, or its observation only.
const KeptEnds = "a commit that fixes or reverts this; if weir's configuration changed, check that too"

// KeptOf describes how the target of a report is held; nil if it is not.
func KeptOf(r *plan.Report, since time.Time) *Kept {
	if r == nil || r.Fallback == nil {
		return nil
	}
	h := r.Fallback
	return &Kept{Revision: h.To(), ObservedOnly: h.To() == "", Since: since, Why: h.Why, Text: h.Text(), Ends: KeptEnds, Because: h.Because()}
}

// Does describes how weir treats the target meanwhile.
func (h *Kept) Does(r *plan.Report) string {
	switch {
	case h.ObservedOnly:
		return "Nothing of it is changed, and drift stays."
	case r.ReportOnly:
		return "As the target is in report mode, nothing of it is changed, and drift stays."
	case r.Suspended:
		return "As the target is suspended, nothing of it is changed, and drift stays."
	}
	if r.Plan != nil && r.Plan.Runnable() < len(r.Plan.Steps) {
		return "Drift from that is put right once its steps no longer wait; nothing is made, rolled out or deleted."
	}
	return "Drift from that is put right; nothing is made, rolled out or deleted."
}
