package group

import (
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
)

// progress is the state of a refresh as a pass observes it.
type progress struct {
	// set reports whether the group is set to the wanted configuration. left counts machines that
	// do not run it. measured reports whether the refresh leads to that configuration, so that both
	// show its progress.
	set      bool
	left     int
	measured bool
	// fresh counts machines of the wanted version. ends reports whether the machines look as after
	// the end of a refresh.
	fresh int
	ends  bool
}

// progressOf adds to the progress of a refresh the facts that the machines show in addition.
func (l launching) progressOf(r observed.Refresh, p progress) progress {
	// staying counts the machines that stay, done those in service with the wanted version, and
	// tried those with the refresh's version.
	staying, done, tried, settled := 0, 0, 0, true
	for _, i := range l.have.Instances {
		ready := i.LifecycleState == "InService"
		settled = settled && (ready || i.LifecycleState == "Standby" || i.Retained())
		if !i.Counts() {
			continue
		}
		staying++
		if runs(l.pool.Group.MixedInstancesPolicy, l.version, i) {
			p.fresh++
			if ready {
				done++
			}
		}
		if i.Template.ID == r.Template.ID && i.Template.Version == r.Template.Version {
			tried++
		}
	}
	desired := int(l.have.DesiredInstances())
	settled = settled && staying >= desired
	switch {
	case r.Status == "Cancelling":
		p.ends = settled
	case r.Status == "RollbackInProgress":
		p.ends = settled && tried == 0
	case p.measured && r.Moving():
		// A machine that is not in service yet has replaced none so far.
		p.left = max(p.left, desired-done)
	}
	return p
}

// watch records the state of the newest refresh, and requests a read of it if one is due.
func (r *roll) watch(p progress) {
	before, now := r.In.Memory.Refreshes[r.have.Name], r.In.Began
	if before.Refresh.ID != r.latest.ID {
		before = model.Watched{Left: int32(p.left), Total: int32(p.left), New: int32(p.fresh), Set: p.set, MovedAt: now}
		if r.latest.Percentage < 100 { // it may have replaced machines already
			before.Total = max(before.Total, r.latest.InstancesLeft*100/(100-r.latest.Percentage))
		}
	}
	w := model.Watched{Group: r.have.Name, Refresh: r.latest, Left: int32(p.left), New: int32(p.fresh), Set: p.set, MovedAt: before.MovedAt, ShownAt: before.ShownAt}
	if p.measured {
		w.Total = before.Total
		w.Left = min(w.Left, w.Total)
	}
	back := r.latest.Moving() && w.Left > before.Left || !r.latest.Active() && w.Left != before.Left
	if !back && (w.Left != before.Left || w.New > before.New) {
		w.MovedAt = now
	}
	switch answered := !r.latest.ReadAt.Before(before.ShownAt); {
	case p.ends && before.ShownAt.IsZero(), back || p.set != before.Set:
		w.ShownAt = now
	case !p.ends && answered:
		w.ShownAt = time.Time{}
	}
	r.Pool.Watched = &w
	if w.Due(now, r.In.Interval()) {
		r.Needs.Polls = append(r.Needs.Polls, r.have.Name)
	}
}
