package asg

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/cloudwatch"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// stallBatches is the time without progress after which a refresh fails, in batches. With realistic timings
// it is one hour, as in AWS.
const stallBatches = 20

// replacement is an instance refresh in progress, with its group.
type replacement struct {
	*Region
	g *Group
	f *refresh
}

// tick sets the timer of a refresh's next step. Earlier timers become void.
func (r *replacement) tick(d time.Duration) {
	r.f.Tick++
	r.After(d, timerRefresh, r.g.key()+"\x00"+r.f.ID+"\x00"+wire.Decimal(r.f.Tick))
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
	work := &replacement{r, g, f}
	next := work.step()
	if f.End.IsZero() && wire.Decimal(f.Tick) == parts[2] {
		work.tick(next)
	}
}

// step advances a refresh and returns the time until the next step.
func (r *replacement) step() time.Duration {
	batch := r.Timings().RefreshBatch
	switch r.f.Status {
	case refreshCancelling:
		if r.f.Hurry || r.g.Steady() || r.g.Failures > 0 {
			r.end(refreshCancelled, r.f.Reason)
		}
		return batch
	case refreshInProgress, refreshBaking, refreshPending:
		if name := r.inAlarm(); name != "" {
			r.fail("The CloudWatch alarm " + name + " is in the ALARM state.")
			return batch
		}
	}
	if left := r.f.BakedAt.Sub(r.Now()); r.f.Status == refreshBaking && left > 0 {
		return left
	} else if r.f.Status == refreshBaking {
		r.succeed()
		return batch
	}
	for _, process := range []string{"InstanceRefresh", "Launch", "Terminate"} {
		if r.g.suspended(process) {
			r.f.Reason, r.f.Progress = "Waiting because the process "+process+" is suspended.", r.Now()
			return batch
		}
	}
	if r.f.Status == refreshPending {
		r.f.Status, r.f.Total = refreshInProgress, int64(len(r.staleMembers()))
		r.f.Left = r.f.Total
	}
	if r.g.FailuresTotal > r.f.FailuresSeen+1 {
		r.fail("Instances failed to launch: " + r.g.LastFailure)
		return batch
	}
	if !r.g.Steady() {
		if r.Now().Sub(r.f.Progress) > stallBatches*batch {
			r.fail("The instance refresh made no progress for too long.")
		}
		return batch
	}
	if left := r.warming(); left > 0 {
		return left
	}
	return r.advance()
}

// warming returns the remaining warm-up time of the last member that the refresh launched, from its
// preferences or else the group ("instance warmup" in the user guide). It returns 0 if the timings ignore
// warm-ups.
func (r *replacement) warming() (left time.Duration) {
	seconds := int64(0)
	Set(&seconds, r.g.Warmup)
	Set(&seconds, r.f.Prefs.Warmup)
	if !r.Timings().Warmups || seconds == 0 {
		return 0
	}
	for _, m := range r.g.Members {
		if m.Seq > r.f.FirstSeq && m.Active() {
			left = max(left, m.Served.Add(time.Duration(seconds)*time.Second).Sub(r.Now()))
		}
	}
	return left
}

// inAlarm returns the name of an alarm of the refresh in the state ALARM, or an empty string. Deleted alarms
// are ignored.
func (r *replacement) inAlarm() string {
	for _, name := range r.f.Prefs.Alarms {
		if r.alarms.StateOf(name) == cloudwatch.InAlarm {
			return name
		}
	}
	return ""
}

// AlarmChanged makes refreshes with the alarm check it.
func (r *Region) AlarmChanged(name string) {
	for _, key := range r.Groups.Sorted() {
		g := r.Groups.Get(key)
		if f := g.activeRefresh(); f != nil && slices.Contains(f.Prefs.Alarms, name) {
			(&replacement{r, g, f}).tick(r.Timings().RefreshBatch / 2)
		}
	}
}

// advance continues after a batch whose members are all in service.
func (r *replacement) advance() time.Duration {
	if len(r.f.Batch) > 0 {
		r.exchange()
		for _, id := range r.f.Batch {
			if m := r.g.Member(id); m != nil && m.Active() && r.f.Strategy != replaceRootVolume {
				r.EndMember(r.g, m, refreshCause)
			}
		}
		r.f.Batch, r.g.Surge, r.f.Progress = nil, 0, r.Now()
		r.Touch(r.g)
	}
	stale := r.staleMembers()
	r.f.note(int64(len(stale)), r.Now())
	r.f.FailuresSeen = r.g.FailuresTotal
	if r.Now().Before(r.f.ResumeAt) {
		return r.f.ResumeAt.Sub(r.Now())
	}
	if len(stale) == 0 {
		if Warm(r.Region, r.g).refresh(r.f) {
			r.f.Progress = r.Now()
			return r.Timings().RefreshBatch
		}
		if waiting := r.standby(); waiting {
			return r.Timings().RefreshBatch
		}
		return r.complete()
	}
	if done, wait := r.checkpoint(r.Now()); done {
		return r.complete()
	} else if wait > 0 {
		return wait
	}
	return r.replaceBatch(stale)
}

// standby handles the standby members that the refresh would replace according to its preferences, and
// reports whether the refresh waits for them.
func (r *replacement) standby() bool {
	left := r.staleOf(Keep(r.g.Members, func(m *Member) bool { return m.Lifecycle == memberStandby }))
	switch {
	case len(left) == 0 || r.f.Prefs.Standby == "Ignore":
		return false
	case r.f.Prefs.Standby == "Terminate":
		for _, m := range left {
			r.EndMember(r.g, m, refreshCause)
		}
		r.f.Progress = r.Now()
		return true
	}
	r.f.Reason = "Waiting for instances that are in standby."
	if r.Now().Sub(r.f.Progress) > stallBatches*r.Timings().RefreshBatch {
		r.fail("The instances that are left are in standby.")
	}
	return true
}

const refreshCause = "an instance was taken out of service in response to an instance refresh."

// note updates the progress of the refresh.
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

// checkpoint passes the reached checkpoints. done reports whether the last one was reached and is below 100.
// Otherwise wait is the remaining delay at a checkpoint.
func (r *replacement) checkpoint(now time.Time) (done bool, wait time.Duration) {
	f := r.f
	if f.Status == refreshRollingBack {
		return false, 0
	}
	reached := false
	at := int64(0)
	for f.Checkpoint < len(f.Prefs.Checkpoints) && r.missing() <= 0 {
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

// missing returns the number of members that must still be replaced at the next checkpoint. Its
// percentage is relative to all the group's instances. New instances and instances that already
// match count ("Add checkpoints to an instance refresh" in the user guide).
func (r *replacement) missing() int64 {
	members := int64(len(Keep(r.g.Members, (*Member).Active)))
	return (members*r.f.Prefs.Checkpoints[r.f.Checkpoint]+99)/100 - (members - r.f.Left)
}

// replaceBatch replaces the next members: as many at once as the percentages permit, up to the next
// checkpoint. If the group may exceed its capacity, replacements are launched first.
func (r *replacement) replaceBatch(stale []*Member) time.Duration {
	batch := r.Timings().RefreshBatch
	open := stale
	if r.f.Prefs.Protected == "Wait" {
		open = Keep(stale, func(m *Member) bool { return !m.Protected })
	}
	if len(open) == 0 {
		r.f.Reason = "Waiting for instances that are protected from scale in."
		if r.Now().Sub(r.f.Progress) > stallBatches*batch {
			r.fail("The instances that are left are protected from scale in.")
		}
		return batch
	}
	if r.f.Strategy == replaceRootVolume {
		return r.detach(open)
	}
	size, surge := r.f.batchSize(int64(len(Keep(r.g.Members, (*Member).Active))))
	if r.f.Status == refreshInProgress && r.f.Checkpoint < len(r.f.Prefs.Checkpoints) {
		size = min(size, r.missing())
	}
	for _, m := range open[:min(max(size, 1), int64(len(open)))] {
		if surge {
			r.f.Batch = append(r.f.Batch, m.ID)
			r.g.Surge += m.Units
		} else {
			r.EndMember(r.g, m, refreshCause)
		}
	}
	r.f.Progress = r.Now()
	r.Touch(r.g)
	return batch
}

// batchSize returns how many of n members are replaced at once, and whether the new ones are
// launched before the old ones end.
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

// staleMembers returns the members that the refresh, or its rollback, must replace.
func (r *replacement) staleMembers() []*Member {
	return r.staleOf(Keep(r.g.Members, (*Member).Active))
}

// staleOf returns the given members that must be replaced.
func (r *replacement) staleOf(members []*Member) []*Member {
	if r.f.Strategy == replaceRootVolume {
		return Keep(members, r.oldVolume())
	}
	if r.f.Status == refreshRollingBack {
		match := MatcherOf(r.ec2, r.g.Config)
		return Keep(members, func(m *Member) bool {
			return m.Seq > r.f.FirstSeq && m.Seq <= r.f.Rollback.LastSeq && !match(m)
		})
	}
	match := func(*Member) bool { return false }
	if r.f.Prefs.SkipMatching {
		match = MatcherOf(r.ec2, r.g.Config)
		if r.f.Desired != nil {
			match = MatcherOf(r.ec2, *r.f.Desired)
		}
	}
	return Keep(members, func(m *Member) bool {
		return m.Seq <= r.f.FirstSeq && !match(m) && (!m.Protected || r.f.Prefs.Protected != "Ignore")
	})
}

// complete ends a refresh whose members are all replaced, after its bake time.
func (r *replacement) complete() time.Duration {
	if r.f.Status == refreshRollingBack {
		r.f.Percent = 0
		r.end(refreshRolledBack, "The instance refresh was rolled back: "+r.f.Rollback.Reason)
		return 0
	}
	if bake := r.f.Prefs.BakeTime; bake != nil && *bake > 0 {
		r.f.Status, r.f.BakedAt = refreshBaking, r.Now().Add(time.Duration(*bake)*time.Second)
		return time.Duration(*bake) * time.Second
	}
	r.succeed()
	return 0
}

// succeed makes the desired configuration the group's configuration.
func (r *replacement) succeed() {
	if r.f.Desired != nil {
		r.g.Config = *r.f.Desired
	}
	r.end(refreshSuccessful, "")
}

func (r *replacement) end(status, reason string) {
	r.f.Status, r.f.Reason, r.f.End, r.f.Batch = status, reason, r.Now(), nil
}

// fail ends a refresh that cannot continue, or rolls it back.
func (r *replacement) fail(reason string) {
	r.exchange()
	switch {
	case r.f.Status == refreshRollingBack:
		r.end(refreshRollbackFailed, reason)
	case r.f.Prefs.AutoRollback:
		r.rollBack(reason)
		return
	default:
		r.end(refreshFailed, reason)
	}
	r.g.Surge = 0
	r.RetryNow(r.g)
}

// rollBack reverses a refresh: members that it launched are replaced by members with the group's own
// configuration.
func (r *replacement) rollBack(reason string) {
	r.exchange()
	r.f.Rollback = &rollbackDetails{Reason: reason, Start: r.Now(), Percent: r.f.Percent, Left: r.f.Left, LastSeq: r.g.Launched}
	r.f.Status, r.f.Reason = refreshRollingBack, reason
	r.f.Rollback.Total = int64(len(r.staleMembers()))
	r.f.Batch, r.f.ResumeAt, r.f.Progress, r.f.FailuresSeen, r.g.Surge = nil, time.Time{}, r.Now(), r.g.FailuresTotal, 0
	r.RetryNow(r.g)
	r.tick(r.Timings().RefreshBatch / 2)
}
