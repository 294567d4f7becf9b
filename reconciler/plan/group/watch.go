package group

import (
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/plan/template"
	"github.com/weir-gitops/weir/render/intent"
)

// progress is the state of a refresh as a pass sees it.
type progress struct {
	// set says that the group is set to the wanted configuration, and left counts
	// machines that are not of it. They measure the refresh where it leads there.
	set      bool
	left     int
	measured bool
	// fresh counts machines of the wanted version; ends says that all are as they are
	// at a refresh's end.
	fresh int
	ends  bool
}

// progressOf completes the progress of a refresh with what the machines do beside
// running the wanted version.
func (c Planner) progressOf(pool *intent.Pool, have observed.Group, r observed.Refresh, version template.Version, p progress) progress {
	// Of the machines, done ones are of the wanted version and in service, tried ones
	// of the refresh's own.
	staying, done, tried, settled := 0, 0, 0, true
	for _, i := range have.Instances {
		ready := i.LifecycleState == "InService"
		settled = settled && (ready || i.LifecycleState == "Standby" || i.Retained())
		if !i.Counts() {
			continue
		}
		staying++
		if runs(pool.Group.MixedInstancesPolicy, version, i) {
			p.fresh++
			if ready {
				done++
			}
		}
		if i.Template.ID == r.Template.ID && i.Template.Version == r.Template.Version {
			tried++
		}
	}
	desired := int(have.DesiredInstances())
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

// watch remembers how a refresh stands, and asks AWS about it where that is due.
func (c Planner) watch(have observed.Group, r observed.Refresh, p progress) {
	before, now := c.In.Memory.Refreshes[have.Name], c.In.Began
	if before.Refresh.ID != r.ID {
		before = basis.Watched{Left: int32(p.left), Total: int32(p.left), New: int32(p.fresh), Set: p.set, MovedAt: now}
		if r.Percentage < 100 { // it may have come some way already
			before.Total = max(before.Total, r.InstancesLeft*100/(100-r.Percentage))
		}
	}
	w := basis.Watched{Group: have.Name, Refresh: r, Left: int32(p.left), New: int32(p.fresh), Set: p.set, MovedAt: before.MovedAt, ShownAt: before.ShownAt}
	if p.measured {
		w.Total = before.Total
		w.Left = min(w.Left, w.Total)
	}
	back := r.Moving() && w.Left > before.Left || !r.Active() && w.Left != before.Left
	if !back && (w.Left != before.Left || w.New > before.New) {
		w.MovedAt = now
	}
	switch answered := !r.ReadAt.Before(before.ShownAt); {
	case p.ends && before.ShownAt.IsZero(), back || p.set != before.Set:
		w.ShownAt = now
	case !p.ends && answered:
		w.ShownAt = time.Time{}
	}
	c.Pool.Watched = &w
	if w.Due(now, c.In.Interval()) {
		c.Needs.Polls = append(c.Needs.Polls, have.Name)
	}
}
