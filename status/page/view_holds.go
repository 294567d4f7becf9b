package page

import (
	"slices"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/wording"
)

// holdView is a reason why steps of a target's plan wait.
type holdView struct {
	Words string
	// Plan is the URL of the plan that waits for an approval, or empty.
	Plan string
}

// holdViews describes the reasons why steps are held, one line for each hold. It omits conflicts, because
// their diagnostics describe them.
func holdViews(r *plan.Report, target string) []holdView {
	if r == nil || r.Plan == nil {
		return nil
	}
	var out []holdView
	for _, wait := range wording.WaitsOf(target, r.Plan.Steps) {
		v := holdView{Words: wait.Text() + "."}
		switch wait.Hold {
		case step.HeldConflict:
			continue
		case step.HeldApproval, step.HeldPruneLimit, step.HeldPreflight:
			v.Plan = targetLink(target) + "/plan"
		}
		out = append(out, v)
	}
	return out
}

// heldView shows the earlier commit at which a target is held, or that no such commit exists.
type heldView struct {
	*report.Kept
	Commit commitView
	When   moment
	// Does describes how weir treats the target in this state.
	Does string
}

// heldViewOf returns nil if the target follows its commit.
func heldViewOf(b *current.State, t *current.TargetState) *heldView {
	h := report.KeptOf(t.Last, t.HeldSince)
	if h == nil {
		return nil
	}
	v := &heldView{Kept: h, Does: h.Does(t.Last)}
	if h.Revision != "" {
		v.Commit = commitOf(linksOf(b, t.Source), h.Revision, "")
	}
	if !h.Since.IsZero() {
		v.When = momentOf(b, h.Since)
	}
	return v
}

// diagnosticsOf returns a report's diagnostics, without the one about the hold of the target, which is
// shown separately.
func diagnosticsOf(r *plan.Report) diag.List {
	return slices.DeleteFunc(slices.Clone(r.Diagnostics), func(d faultDiag) bool { return r.Fallback != nil && d.Code == r.Fallback.Diagnostic().Code })
}

func slowViews(t *current.TargetState) (out []holdView) {
	for _, words := range current.SlowWords(t) {
		out = append(out, holdView{Words: words})
	}
	return out
}

// awaitsApproval reports whether a target's plan waits for approval.
func awaitsApproval(t *current.TargetState) bool {
	return t.Last != nil && t.Last.Plan != nil && slices.ContainsFunc(t.Last.Plan.Steps, func(s step.Step) bool {
		return s.Held == step.HeldApproval || s.Held == step.HeldPruneLimit
	})
}
