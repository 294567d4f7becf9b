package pulls

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/status/report"
)

// judge plans what a review touches.
func (p *planning) judge(ctx context.Context, review *fleet.Review) report.Pull {
	out := report.Pull{BaseSHA: p.at, Gone: review.Gone, Unaffected: review.Targets - len(review.Touched), State: report.PullPlanned}
	if len(review.Touched)+len(review.Gone) == 0 {
		out.State = report.PullUnaffected
		return out
	}
	if p.was.pr.Fork && len(review.Roleless) > 0 {
		out.State = report.PullFailing
		out.Reason = "pull requests from forks are planned with a role of their own: set planRoleARN of " + strings.Join(review.Roleless, ", ") + " in weir's configuration"
		return out
	}
	opening, cancel := context.WithTimeout(ctx, answering)
	review.Open(opening, p.Accounts)
	cancel()
	out.AsReviewed = asReviewed(review)
	out.Reports = review.Plan(func(b reconciler.Batch) []*plan.Report { return p.Turns.pass(ctx, b) })
	review.Planned()
	var plans []*plan.Plan
	for _, r := range out.Reports {
		if r.Plan != nil {
			plans = append(plans, r.Plan)
		}
		if out.State == report.PullPlanned && (r.Err != nil || r.Diagnostics.HasErrors()) {
			out.State, out.Reason = report.PullFailing, firstFault(r)
		}
	}
	// What fails has none: it could not be approved, and who reads it must not find
	// what a later plan is approved by.
	if out.State == report.PullPlanned && len(plans) == len(out.Reports) && len(plans) > 0 {
		out.Digest = plan.CombinedDigest(plans)
	}
	return out
}

// asReviewed reports whether a touched target is applied as it was reviewed.
func asReviewed(review *fleet.Review) bool {
	return slices.ContainsFunc(review.Batches, func(b reconciler.Batch) bool {
		return slices.ContainsFunc(b.Targets, func(d reconciler.Desired) bool {
			return d.Policy.Gates.AsReviewed && slices.Contains(review.Touched, d.Policy.Target)
		})
	})
}

// firstFault is what keeps a target from being planned, on one line.
func firstFault(r *plan.Report) string {
	if r.Err != nil {
		return r.Target + ": " + r.Err.Error()
	}
	for _, d := range r.Diagnostics {
		if d.Severity == diag.Error {
			return r.Target + ": " + d.String()
		}
	}
	return r.Target
}

// conflictText says why the branch cannot be merged as it is.
func conflictText(list []source.Conflict) string {
	const most = 5
	var lines []string
	for _, c := range list[:min(most, len(list))] {
		lines = append(lines, c.String())
	}
	text := "update the branch: " + strings.Join(lines, "; ")
	if n := len(list) - most; n > 0 {
		text += fmt.Sprintf("; and %d more", n)
	}
	return text
}
