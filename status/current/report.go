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

// AppliedOutcomes bounds the outcomes that are kept of the last pass that ran a step. Its other
// contents would stay until the next change, and the report of a pass that created a large fleet is
// large.
const AppliedOutcomes = 25

// appliedOf is a report without all but its first outcomes, and how many more there were.
func appliedOf(r *plan.Report) (*plan.Report, int) {
	n := min(len(r.Outcomes), AppliedOutcomes)
	return &plan.Report{
		Target: r.Target, StartedAt: r.StartedAt, Revision: r.Revision, Subject: r.Subject, Fallback: r.Fallback,
		Outcomes: slices.Clone(r.Outcomes[:n]),
	}, len(r.Outcomes) - n
}

// Report takes in what a pass did and found.
func (b *State) Report(_ context.Context, whole *plan.Report) { b.report(whole, true) }

// Take shows a report of another weir's pass. That weir has announced its news: here they become no
// event, and no history.
func (b *State) Take(r *plan.Report) { b.report(r, false) }

func (b *State) report(whole *plan.Report, own bool) {
	r := b.redact.Report(whole)
	at := r.StartedAt.Add(r.Duration)
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.targets[r.Target]
	next := old
	next.Name, next.Source = r.Target, cmp.Or(r.Source, old.Source)
	next.Account, next.Region = cmp.Or(r.Account, old.Account), cmp.Or(r.Region, old.Region)
	next.Last, next.Phase = r, report.PhaseOf(r)
	run := history.RunOf(r)
	if run.Steps.Done+run.Steps.Failed > 0 {
		next.Applied, next.MoreApplied = appliedOf(r)
	}
	key := targetKey(r.Target)
	before := b.known[key]
	// Without a plan nothing was observed, so the earlier pools stand.
	if r.Plan != nil || len(r.Pools) > 0 {
		next.Pools, next.LaunchConfigs, next.PoolsAt = r.Pools, r.LaunchConfigs, at
		next.ConvergedSince = convergedSince(old.ConvergedSince, r.Pools, at)
	} else {
		next.Pools, next.PoolsAt = lastSeen(old, r.Target, before)
	}
	// The whole report says what a step did; its events are redacted after.
	known, list := events.Between(before, whole, at, old.Last == nil)
	if next.HeldSince = (time.Time{}); known.Held != nil && r.Fallback != nil && known.Held.To == r.Fallback.To() {
		next.HeldSince = known.Held.Since
	}
	next.Pools = failedSince(next.Pools, known.Pools)
	b.targets[r.Target] = next
	if !own {
		b.known[key] = known
		b.watchers.Changed(r.Target)
		return
	}
	var runs []history.Run
	// A pass that finds what the one before it found is no news.
	if run.Steps.Done > 0 || before.Phase != known.Phase || before.Revision != known.Revision || before.Fault != known.Fault {
		runs = append(runs, run)
	}
	b.publish(list, runs, map[string]events.Known{key: known})
	b.watchers.Changed(r.Target)
}

// failedSince gives the pools that fail the time since when they do.
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
