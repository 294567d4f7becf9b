package reconciler

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/refusals"
	"github.com/weir-gitops/weir/render/diag"
)

// diagnose adds to the reports why steps failed, and when weir tries them again.
func (ps *passState) diagnose(ctx context.Context) error {
	for i, r := range ps.reports {
		addUnknownNames(ctx, ps.targets[i], r)
		noteParked(ps.targets[i].Policy, r, &ps.memory.refusals)
	}
	return nil
}

// noteParked adds to parked steps, and to their pools, the condition for a retry. A command that
// works on a PATH retries on every call.
func noteParked(policy model.Policy, r *plan.Report, record *refusals.Record) {
	if policy.OwnTargetOnly {
		return
	}
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		if !o.Parked || o.Err == nil {
			continue
		}
		wait := in(refusals.WaitFor(o.Err))
		if o.Err.Code == observed.CodeChanged {
			wait = "a delay that doubles after every attempt, up to " + in(refusals.UnsentMost)
		}
		o.Lift = "weir does not try again for " + wait + "; a commit that changes it, or weir reconcile " + r.Target + " --retry, makes weir try at once"
		if o.Err.Code == observed.CodeChanged && record.Unsent(refusals.Key{Target: r.Target, Owner: o.Step.Owner()}) < 2 {
			continue // one such event is no fault: somebody changed the resource meanwhile
		}
		for j := range r.Pools {
			plan.NoteRefused(&r.Pools[j], o)
		}
		for j := range r.Governed {
			if p := &r.Governed[j]; p.Pool == o.Step.Pool && p.Failed == "" && !o.Step.Stops && o.Err.Code != observed.CodeChanged {
				p.Failed = "AWS refused to " + string(o.Step.Verb) + " the " + string(o.Step.Resource) + " " + o.Step.Name + ": " + o.Err.Error()
			}
		}
	}
}

func in(wait time.Duration) string {
	if wait == time.Hour {
		return "an hour"
	}
	return strconv.Itoa(int(wait.Minutes())) + " minutes"
}

// addUnknownNames adds diagnostics for steps that failed because of a name that AWS does not know.
// They point to the field with the name.
func addUnknownNames(ctx context.Context, t Desired, r *plan.Report) {
	var found diag.List
	for _, o := range r.Failures() {
		if o.Err == nil || o.Err.Unknown == (observed.UnknownName{}) {
			continue
		}
		for i := range t.Set.Pools {
			if pool := &t.Set.Pools[i]; pool.Key.String() == o.Step.Pool {
				found = append(found, observed.DiagnoseUnknownName(pool, o.Err))
			}
		}
	}
	if len(found) == 0 {
		return
	}
	attachPositions(ctx, found, t)
	// They replace the plan's diagnostics for the same fields, which have less detail.
	before := slices.DeleteFunc(slices.Clone(r.Plan.Diagnostics), func(d diag.Diagnostic) bool {
		return slices.ContainsFunc(found, func(f diag.Diagnostic) bool { return d.Code == f.Code && d.Object == f.Object && d.Field == f.Field })
	})
	r.Plan.Diagnostics = append(before, found...).Sorted()
	r.Diagnostics = r.Plan.Diagnostics
}
