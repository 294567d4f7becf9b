package plan

import (
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

const (
	// askSoonest is the part of AskEvery that lies between two questions at least.
	askSoonest = 12
	// askAnyway is how often AskEvery passes until a refresh is asked about whose
	// machines come on, and askEnded until one that has ended is, which stays as it
	// is unless somebody starts another.
	askAnyway, askEnded = 5, 10
)

// Watched is what is known of a group's newest instance refresh from one pass to the
// next: what AWS last said of it, and what the machines have shown since.
type Watched struct {
	Refresh observed.Refresh
	// Left is how many machines are still to be replaced, of Total; Total is 0 where
	// that cannot be told from them. New counts those of the new configuration,
	// whether they are in service yet or not.
	Left, Total, New int32
	// Set says that the group itself is set to the wanted configuration.
	Set bool
	// MovedAt is when machines last came nearer to it. ShownAt is when they showed
	// that what AWS last said holds no longer; zero where they show nothing.
	MovedAt, ShownAt time.Time
}

// Watched are the instance refreshes that the plan's pools wait for, by group.
func (p *Plan) Watched() map[string]Watched { return p.watched }

// progress is what a pass sees of a refresh.
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

// progressOf completes what is seen of a refresh with what the machines do beside
// running the wanted version.
func (c groups) progressOf(pool *intent.Pool, have observed.Group, r observed.Refresh, version wantedVersion, p progress) progress {
	// Of the machines, done ones are of the wanted version and in service, tried ones
	// of the refresh's own.
	staying, done, tried, settled := 0, 0, 0, true
	for _, i := range have.Instances {
		ready := i.LifecycleState == "InService" || i.LifecycleState == "Standby"
		settled = settled && (ready || i.Retained())
		if i.Leaving() {
			continue
		}
		staying++
		if version.runs(i.Template) || ofOverride(pool.Group.MixedInstancesPolicy, i) {
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
func (c groups) watch(have observed.Group, r observed.Refresh, p progress) {
	before, now := c.in.Memory.Refreshes[have.Name], c.in.Began
	if before.Refresh.ID != r.ID {
		before = Watched{Left: int32(p.left), Total: int32(p.left), New: int32(p.fresh), Set: p.set, MovedAt: now}
		if r.Percentage < 100 { // it may have come some way already
			before.Total = max(before.Total, r.InstancesLeft*100/(100-r.Percentage))
		}
	}
	w := Watched{Refresh: r, Left: int32(p.left), New: int32(p.fresh), Set: p.set, MovedAt: before.MovedAt, ShownAt: before.ShownAt}
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
	addAll(&c.watched, map[string]Watched{have.Name: w})
	if w.due(now, c.in.askEvery()) {
		c.needs.Polls = append(c.needs.Polls, have.Name)
	}
}

func (in Input) askEvery() time.Duration {
	if in.AskEvery <= 0 {
		return observed.DefaultAskEvery
	}
	return in.AskEvery
}

// due reports whether AWS is to be asked about the refresh again. What the machines
// show asks at once; where AWS does not say it yet, it is asked again after as long
// as that lasts: a warm-up or a bake takes seconds or half an hour.
func (w Watched) due(now time.Time, every time.Duration) bool {
	r := w.Refresh
	since, shown := now.Sub(r.ReadAt), !w.ShownAt.IsZero()
	switch news := shown && r.ReadAt.Before(w.ShownAt); {
	case !r.Active():
		return news && since >= every || since >= askEnded*every
	case news:
		return since >= every/askSoonest
	case shown && since >= min(every, max(every/askSoonest, r.ReadAt.Sub(w.ShownAt))):
		return true
	}
	quiet := min(since, now.Sub(w.MovedAt))
	return quiet >= every || since >= askAnyway*every
}

// shown is a refresh as far as it has come: what AWS said of it, or the machines
// where they are further.
func (w Watched) shown(r observed.Refresh) observed.Refresh {
	if !r.Moving() || w.Total <= 0 {
		return r
	}
	if r.Status == "Pending" && w.Left < w.Total {
		r.Status = "InProgress"
	}
	r.Percentage, r.InstancesLeft = max(r.Percentage, (w.Total-w.Left)*100/w.Total), w.Left
	return r
}
