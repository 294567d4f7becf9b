package current

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/history"
	"github.com/weir-gitops/weir/status/report"
)

// AppliedOutcomes is the maximum number of stored outcomes of the last pass that executed a step. The full
// report would stay in memory until the next change, and the report of a pass that created a large fleet is
// large.
const AppliedOutcomes = 25

// appliedOf shortens a report to its first outcomes, and returns the number of dropped outcomes.
func appliedOf(r *plan.Report) (*plan.Report, int) {
	n := min(len(r.Outcomes), AppliedOutcomes)
	return &plan.Report{
		Target: r.Target, StartedAt: r.StartedAt, Revision: r.Revision, Subject: r.Subject, Fallback: r.Fallback,
		Outcomes: slices.Clone(r.Outcomes[:n]),
	}, len(r.Outcomes) - n
}

// Report updates a target with the report of a pass, and adds events for changes.
func (t *Targets) Report(_ context.Context, whole *plan.Report) { t.report(whole, true) }

// Take updates a target with the report of another daemon's pass. That daemon has already added the events,
// so Take adds neither events nor history.
func (t *Targets) Take(r *plan.Report) { t.report(r, false) }

// report stores the report of a pass as the last one of its target. own is true for a pass of this daemon;
// only then events and history are added.
func (t *Targets) report(whole *plan.Report, own bool) {
	r := t.redact.Report(whole)
	at := r.StartedAt.Add(r.Duration)
	key := targetKey(r.Target)
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.byName[r.Target]
	before := t.activity.announced(key)
	// Events are built from the whole report, because its texts describe each step. They are redacted later.
	known, list := events.Between(before, whole, at, old.Last == nil)
	next := old.after(r, at, before, known)
	run := history.RunOf(r)
	if run.Steps.Done+run.Steps.Failed > 0 {
		next.Applied, next.MoreApplied = appliedOf(r)
	}
	t.byName[r.Target] = next
	if !own {
		t.activity.setAnnounced(key, known)
		t.pages.Changed(r.Target)
		return
	}
	var runs []history.Run
	// A pass with the same result as the pass before it is not added.
	if run.Steps.Done > 0 || before.Phase != known.Phase || before.Revision != known.Revision || before.Fault != known.Fault {
		runs = append(runs, run)
	}
	t.activity.publish(list, runs, map[string]events.Known{key: known})
	t.pages.Changed(r.Target)
}

// after returns the state of a target after a report, without the outcomes of its steps. before and known
// are the announced states before and after the report.
func (t TargetState) after(r *plan.Report, at time.Time, before, known events.Known) TargetState {
	next := t
	next.Name, next.Source = r.Target, cmp.Or(r.Source, t.Source)
	next.Account, next.Region = cmp.Or(r.Account, t.Account), cmp.Or(r.Region, t.Region)
	next.Last, next.Phase = r, report.PhaseOf(r)
	// Without a plan the pass has read nothing, so the earlier pools stay.
	if r.Plan != nil || len(r.Pools) > 0 {
		next.Pools, next.LaunchConfigs, next.PoolsAt = r.Pools, r.LaunchConfigs, at
		next.ConvergedSince = convergedSince(t.ConvergedSince, r.Pools, at)
	} else {
		next.Pools, next.PoolsAt = lastSeen(t, r.Target, before)
	}
	if next.HeldSince = (time.Time{}); known.Held != nil && r.Fallback != nil && known.Held.To == r.Fallback.To() {
		next.HeldSince = known.Held.Since
	}
	next.Pools = failedSince(next.Pools, known.Pools)
	return next
}

// failedSince returns the pools with the times since which they have been failing.
func failedSince(pools []plan.PoolStatus, known map[string]events.KnownPool) []plan.PoolStatus {
	out := pools
	for i := range pools {
		if pools[i].FailureReason == "" || pools[i].FailedSince.Equal(known[report.PoolKey(pools[i])].FailedSince) {
			continue
		}
		if &out[0] == &pools[0] {
			out = slices.Clone(pools)
		}
		out[i].FailedSince = known[report.PoolKey(pools[i])].FailedSince
	}
	return out
}

// convergedSince returns, by namespace/name, the times since which pools have been converged.
func convergedSince(old map[string]time.Time, pools []plan.PoolStatus, at time.Time) map[string]time.Time {
	out := make(map[string]time.Time, len(pools))
	for _, p := range pools {
		if key := report.PoolKey(p); p.Converged {
			out[key] = at
			if since, ok := old[key]; ok {
				out[key] = since
			}
		}
	}
	return out
}
