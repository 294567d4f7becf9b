package asg

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// stallBatches is after how many batches' time without progress a refresh fails;
// with realistic timings that is AWS's hour.
const stallBatches = 20

// tickRefresh sets the timer of a refresh's next step; timers set before are void.
func (r *Region) tickRefresh(g *Group, f *refresh, d time.Duration) {
	f.Tick++
	r.After(d, timerRefresh, g.key()+"\x00"+f.ID+"\x00"+wire.Decimal(f.Tick))
}

func runRefresh(r *Region, key string) {
	parts := strings.Split(key, "\x00")
	g := r.groupByKey(parts[0])
	if g == nil {
		return
	}
	f := g.activeRefresh()
	if f == nil || f.ID != parts[1] || wire.Decimal(f.Tick) != parts[2] {
		return
	}
	next := r.stepRefresh(g, f)
	if f.End.IsZero() && wire.Decimal(f.Tick) == parts[2] {
		r.tickRefresh(g, f, next)
	}
}

// stepRefresh moves a refresh on and returns when to look again.
func (r *Region) stepRefresh(g *Group, f *refresh) time.Duration {
	batch := r.Timings().RefreshBatch
	switch f.Status {
	case refreshCancelling:
		if f.Hurry || g.Settled() || g.Failures > 0 {
			r.endRefresh(f, refreshCancelled, f.Reason)
		}
		return batch
	case refreshBaking:
		r.succeed(g, f)
		return batch
	}
	for _, process := range []string{"InstanceRefresh", "Launch", "Terminate"} {
		if g.suspended(process) {
			f.Reason, f.Progress = "Waiting because the process "+process+" is suspended.", r.Now()
			return batch
		}
	}
	if f.Status == refreshPending {
		f.Status, f.Total = refreshInProgress, int64(len(r.staleMembers(g, f)))
		f.Left = f.Total
	}
	if g.FailuresTotal > f.FailuresSeen+1 {
		r.failRefresh(g, f, "Instances failed to launch: "+g.LastFailure)
		return batch
	}
	if !g.Settled() {
		if r.Now().Sub(f.Progress) > stallBatches*batch {
			r.failRefresh(g, f, "The instance refresh made no progress for too long.")
		}
		return batch
	}
	return r.advanceRefresh(g, f)
}

// advanceRefresh goes on after a batch: all members are in service.
func (r *Region) advanceRefresh(g *Group, f *refresh) time.Duration {
	if len(f.Batch) > 0 {
		for _, id := range f.Batch {
			if m := g.Member(id); m != nil && m.Active() {
				r.EndMember(g, m, refreshCause)
			}
		}
		f.Batch, g.Surge, f.Progress = nil, 0, r.Now()
		r.Touch(g)
	}
	stale := r.staleMembers(g, f)
	f.note(int64(len(stale)), r.Now())
	f.FailuresSeen = g.FailuresTotal
	if r.Now().Before(f.ResumeAt) {
		return f.ResumeAt.Sub(r.Now())
	}
	if len(stale) == 0 {
		if r.refreshWarm(g, f) {
			f.Progress = r.Now()
			return r.Timings().RefreshBatch
		}
		return r.completeRefresh(g, f)
	}
	if done, wait := f.checkpoint(r.Now()); done {
		return r.completeRefresh(g, f)
	} else if wait > 0 {
		return wait
	}
	return r.replaceBatch(g, f, stale)
}

const refreshCause = "an instance was taken out of service in response to an instance refresh."

// note updates how far the refresh is.
func (f *refresh) note(left int64, now time.Time) {
	if f.Status == refreshRollingBack {
		if f.Rollback.Total > 0 {
			f.Percent = f.Rollback.Percent * left / f.Rollback.Total
		}
		return
	}
	if left < f.Left {
		f.Progress = now
	}
	f.Left, f.Total, f.Percent = left, max(f.Total, left), 100
	if f.Total > 0 {
		f.Percent = (f.Total - left) * 100 / f.Total
	}
	f.Reason = ""
}

// checkpoint passes the checkpoints that are reached. It returns whether the last
// one was and is below 100, or else how long to wait at one.
func (f *refresh) checkpoint(now time.Time) (done bool, wait time.Duration) {
	if f.Status == refreshRollingBack {
		return false, 0
	}
	reached := false
	at := int64(0)
	for f.Checkpoint < len(f.Prefs.Checkpoints) && f.Total-f.Left >= f.checkpointCount() {
		at = f.Prefs.Checkpoints[f.Checkpoint]
		f.Checkpoint++
		reached = true
	}
	switch {
	case !reached:
		return false, 0
	case f.Checkpoint == len(f.Prefs.Checkpoints):
		return at < 100, 0
	}
	delay := int64(3600)
	Set(&delay, f.Prefs.CheckpointDelay)
	wait = time.Duration(delay) * time.Second
	f.ResumeAt = now.Add(wait)
	f.Reason = fmt.Sprintf("Waiting at the checkpoint of %d%% for %d seconds.", at, delay)
	return false, wait
}

// checkpointCount is how many members must be replaced at the next checkpoint.
func (f *refresh) checkpointCount() int64 {
	return (f.Total*f.Prefs.Checkpoints[f.Checkpoint] + 99) / 100
}

// replaceBatch replaces the next members: as many at once as the percentages
// allow, and no more than lead to the next checkpoint. Where the group may grow
// beyond its capacity, replacements come first.
func (r *Region) replaceBatch(g *Group, f *refresh, stale []*Member) time.Duration {
	batch := r.Timings().RefreshBatch
	open := stale
	if f.Prefs.Protected == "Wait" {
		open = Keep(stale, func(m *Member) bool { return !m.Protected })
	}
	if len(open) == 0 {
		f.Reason = "Waiting for instances that are protected from scale in."
		if r.Now().Sub(f.Progress) > stallBatches*batch {
			r.failRefresh(g, f, "The instances that are left are protected from scale in.")
		}
		return batch
	}
	size, surge := f.batchSize(int64(len(Keep(g.Members, (*Member).Active))))
	if f.Status == refreshInProgress && f.Checkpoint < len(f.Prefs.Checkpoints) {
		size = min(size, f.checkpointCount()-(f.Total-f.Left))
	}
	for _, m := range open[:min(max(size, 1), int64(len(open)))] {
		if surge {
			f.Batch = append(f.Batch, m.ID)
			g.Surge += m.Units
		} else {
			r.EndMember(g, m, refreshCause)
		}
	}
	f.Progress = r.Now()
	r.Touch(g)
	return batch
}

// batchSize is how many of n members are replaced at once, and whether the new
// ones are launched before the old ones end.
func (f *refresh) batchSize(n int64) (size int64, surge bool) {
	down := n - (n*f.Prefs.MinHealthy+99)/100
	if f.Prefs.MaxHealthy == nil {
		return max(down, 1), false
	}
	if up := n**f.Prefs.MaxHealthy/100 - n; up > 0 {
		return up, true
	}
	return max(down, 1), down < 1
}

// staleMembers are the members that the refresh, or its rollback, has to replace.
func (r *Region) staleMembers(g *Group, f *refresh) []*Member {
	return r.staleOf(g, f, Keep(g.Members, (*Member).Active))
}

// staleOf are those of some members.
func (r *Region) staleOf(g *Group, f *refresh, members []*Member) []*Member {
	if f.Status == refreshRollingBack {
		match := r.MatcherOf(g.Config)
		return Keep(members, func(m *Member) bool {
			return m.Seq > f.FirstSeq && m.Seq <= f.Rollback.LastSeq && !match(m)
		})
	}
	match := func(*Member) bool { return false }
	if f.Prefs.SkipMatching {
		match = r.MatcherOf(g.Config)
		if f.Desired != nil {
			match = r.MatcherOf(*f.Desired)
		}
	}
	return Keep(members, func(m *Member) bool {
		return m.Seq <= f.FirstSeq && !match(m) && (!m.Protected || f.Prefs.Protected != "Ignore")
	})
}

// completeRefresh ends a refresh whose members are all replaced, after its bake
// time.
func (r *Region) completeRefresh(g *Group, f *refresh) time.Duration {
	if f.Status == refreshRollingBack {
		f.Percent = 0
		r.endRefresh(f, refreshRolledBack, "The instance refresh was rolled back: "+f.Rollback.Reason)
		return 0
	}
	if bake := f.Prefs.BakeTime; bake != nil && *bake > 0 {
		f.Status = refreshBaking
		return time.Duration(*bake) * time.Second
	}
	r.succeed(g, f)
	return 0
}

// succeed makes the desired configuration the group's.
func (r *Region) succeed(g *Group, f *refresh) {
	if f.Desired != nil {
		g.Config = *f.Desired
	}
	r.endRefresh(f, refreshSuccessful, "")
}

func (r *Region) endRefresh(f *refresh, status, reason string) {
	f.Status, f.Reason, f.End, f.Batch = status, reason, r.Now(), nil
}

// failRefresh ends a refresh that cannot go on, or rolls it back.
func (r *Region) failRefresh(g *Group, f *refresh, reason string) {
	switch {
	case f.Status == refreshRollingBack:
		r.endRefresh(f, refreshRollbackFailed, reason)
	case f.Prefs.AutoRollback:
		r.beginRollback(g, f, reason)
		return
	default:
		r.endRefresh(f, refreshFailed, reason)
	}
	g.Surge = 0
	r.RetryNow(g)
}

// beginRollback turns a refresh around: members that it launched are replaced by
// ones of the group's own configuration.
func (r *Region) beginRollback(g *Group, f *refresh, reason string) {
	f.Rollback = &rollbackDetails{Reason: reason, Start: r.Now(), Percent: f.Percent, Left: f.Left, LastSeq: g.Launched}
	f.Status, f.Reason = refreshRollingBack, reason
	f.Rollback.Total = int64(len(r.staleMembers(g, f)))
	f.Batch, f.ResumeAt, f.Progress, f.FailuresSeen, g.Surge = nil, time.Time{}, r.Now(), g.FailuresTotal, 0
	r.RetryNow(g)
	r.tickRefresh(g, f, r.Timings().RefreshBatch/2)
}
