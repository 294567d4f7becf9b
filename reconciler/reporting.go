package reconciler

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/lastgood"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/plan/orphan"
)

// newReports returns the reports of a pass before it starts.
func newReports(b Batch, started time.Time) []*plan.Report {
	reports := make([]*plan.Report, len(b.Targets))
	for i, t := range b.Targets {
		reports[i] = newReport(t, started)
		reports[i].Fresh = b.Fresh
	}
	return reports
}

// newReport returns the report of a target at the start of a pass. If the followed commit cannot be
// rendered, the report names the earlier revision that the pass compares with AWS. The verdict is
// Unclear until AWS has answered, and Differs if no earlier revision is left.
func newReport(t Desired, started time.Time) *plan.Report {
	var fallback *plan.Fallback
	switch h := t.Policy.Fallback; {
	case h != nil && t.Set == nil:
		fallback = &plan.Fallback{Why: h.Why, Verdict: lastgood.Verdict{Answer: lastgood.Differs, Why: h.None}}
		t.Diagnostics = append(slices.Clone(t.Diagnostics), fallback.Diagnostic()).Sorted()
	case h != nil: // until AWS has answered
		fallback = &plan.Fallback{Revision: h.Revision, Why: h.Why, Verdict: lastgood.Verdict{Answer: lastgood.Unclear, Why: "AWS has not answered"}}
	}
	subject := t.Commit.Subject
	if t.HideSubject {
		subject = ""
	}
	return &plan.Report{
		Fallback: fallback,
		Target:   t.Policy.Target, Source: t.Source, Account: t.Policy.Account, Region: t.Policy.Region,
		Revision: t.Commit.Revision, Subject: subject, Ref: t.Ref, Seq: t.Seq, Touched: t.Touched,
		Diagnostics: t.Diagnostics, Err: t.Err, StartedAt: started, Suspended: t.Policy.Suspended,
		ReportOnly: t.Policy.ReportOnly, Wanted: t.Wanted,
	}
}

// report adds the findings of the pass to the reports: plans with the positions of their changes in
// Git, and the states of pools.
func (ps *passState) report(ctx context.Context) error {
	ps.inService, ps.converged = map[string]time.Time{}, ps.memory.pools.convergedElsewhere(ps.targets)
	origins, done := limitOriginSearch(ctx, ps.mode)
	defer done()
	for i := range ps.targets {
		if ps.targets[i].Set == nil {
			ps.reportUnplanned(i)
		} else {
			ps.reportPlanned(origins, i)
		}
	}
	if ps.batch.AllTargets {
		reportUnknownTargets(ps.targets, ps.reports, ps.partial, ps.state)
	}
	return nil
}

// reportUnplanned reports a target without a plan.
func (ps *passState) reportUnplanned(i int) {
	if t := ps.targets[i]; t.shown() && !ps.partial.skips(t) && ps.state.Groups != nil {
		ps.inputs[i].State, ps.inputs[i].Index = ps.state, nil
		ps.reports[i].Pools = plan.WithFaults(ps.inputs[i], nil, nil, ps.reports[i].Fallback)
	}
}

// reportPlanned reports a target with a plan. ctx limits the search for positions in Git.
func (ps *passState) reportPlanned(ctx context.Context, i int) {
	t, p, r, in := ps.targets[i], ps.plans[i], ps.reports[i], &ps.inputs[i]
	in.State = ps.state
	maps.Copy(ps.inService, model.InService(*in))
	own := plan.Apt(*in, slices.Clone(t.Diagnostics))
	attachOrigins(ctx, p, own, t)
	r.Pools = plan.Statuses(*in, p)
	plan.RememberConverged(ps.converged, in.Memory.Converged, *in, p, r.Pools)
	r.Pools = plan.WithFaults(*in, r.Pools, r.FallbackPools, r.Fallback)
	r.Governed = p.Governed()
	r.Levels = plan.Levels(t.Set, ps.memory.levels)
	r.LaunchConfigs = plan.LaunchConfigStatuses(*in, p)
	p.Diagnostics = append(own, p.Diagnostics...).Sorted()
	r.Plan, r.Diagnostics = p, p.Diagnostics
	in.NoteAlarms(r.Governed)
	in.NoteActivities(r.Governed)
}

// reportUnknownTargets reports the resources of targets that are no longer configured, in the
// report of the first target with a plan. If a partial read skips a target before that one, it
// reports none.
func reportUnknownTargets(targets []Desired, reports []*plan.Report, partial *partialRead, state *observed.State) {
	known := map[string]bool{}
	for _, t := range targets {
		known[t.Policy.Target] = true
	}
	for i, r := range reports {
		if partial.skips(targets[i]) {
			return
		}
		if r.Plan != nil {
			found := orphan.UnknownTargets(state, targets[i].Policy, known)
			r.Plan.Diagnostics = append(r.Plan.Diagnostics, found...)
			r.Diagnostics = r.Plan.Diagnostics
			return
		}
	}
}
