package reconciler

import (
	"context"
	"strconv"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/refusals"
)

// diagnose adds to the reports why steps failed, and when weir tries them again.
func (ps *passState) diagnose(ctx context.Context) error {
	for i, r := range ps.reports {
		addUnknownNames(ctx, ps.targets[i], r)
		noteParked(ps.targets[i].Policy, r, &ps.memory.refusals)
	}
	return nil
}

// noteParked says, with the parked steps and for their pools, what makes weir try them
// again. A command that works on a PATH tries each time that it is called.
func noteParked(policy basis.Policy, r *plan.Report, record *refusals.Record) {
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
			wait = "a while, each time twice as long, up to " + in(refusals.UnsentMost)
		}
		o.Lift = "weir leaves it alone for " + wait + "; a commit that changes it, or weir reconcile " + r.Target + " --retry, makes weir try at once"
		if o.Err.Code == observed.CodeChanged && record.Unsent(refusals.Key{Target: r.Target, Owner: o.Step.Owner()}) < 2 {
			continue // once is no fault: somebody changed it meanwhile
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
