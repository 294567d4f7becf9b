package asg

import (
	"sort"

	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
)

// The lifecycle states of instances in a warm pool.
const (
	warmPending     = "Warmed:Pending"
	warmTerminating = "Warmed:Terminating"
	warmRetained    = "Warmed:Terminating:Retained"
	warmReused      = "Warmed:Pending:Retained"
)

// ready is the lifecycle state of an instance that the pool has prepared.
func (pool *WarmPool) ready() string { return "Warmed:" + pool.State }

// warmTarget is how many instances the group's warm pool is to hold: what is missing
// to the most that may be prepared, and its minimum at least.
func (g *Group) warmTarget() int64 {
	if g.Warm == nil || g.Warm.Deleting || g.Deleting {
		return 0
	}
	most := g.Max
	Set(&most, g.Warm.MaxPrepared)
	return max(g.Warm.Min, most-g.Desired, 0)
}

// Staying are the instances of the warm pool that are not on their way out.
func (g *Group) Staying() []*Member {
	return Keep(g.WarmMembers, func(m *Member) bool {
		return m.Lifecycle != warmTerminating && m.Lifecycle != warmRetained && m.Lifecycle != warmReused
	})
}

func (g *Group) warmMember(id string) *Member {
	for _, m := range g.WarmMembers {
		if m.ID == id {
			return m
		}
	}
	return nil
}

// fillWarm launches what the warm pool lacks and ends what it has too many of.
func (r *Region) fillWarm(g *Group) {
	have, want := g.Staying(), g.warmTarget()
	for _, m := range have {
		if in := r.ec2.Instances.Get(m.ID); m.Lifecycle != warmPending && in != nil && g.Warm != nil && !g.Warm.Deleting && m.Lifecycle != g.Warm.ready() {
			m.Lifecycle, in.State = g.Warm.ready(), ec2.InstanceStopped // the pool was put into another state
			if g.Warm.State == "Running" {
				in.State = ec2.InstanceRunning
			}
		}
	}
	for n := int64(len(have)); n < want && !g.suspended("Launch") && !r.Now().Before(g.RetryAt); n++ {
		if !r.launchWarm(g) {
			return
		}
	}
	if g.suspended("Terminate") && !g.Deleting {
		return
	}
	for i := len(have) - 1; i >= 0 && int64(i) >= want; i-- {
		r.EndWarm(g, have[i])
	}
}

// launchWarm launches an instance into the warm pool.
func (r *Region) launchWarm(g *Group) bool {
	cfg := g.launchConfig(r)
	choices, err := r.Choices(cfg)
	if err == nil {
		err = r.launchSomewhere(g, choices, false, func(ch *Choice, in *ec2.Instance) {
			m := g.newMember(ch, in)
			m.Lifecycle = warmPending
			g.WarmMembers = append(g.WarmMembers, m)
			r.beginActivity(g, m, "Launching a new EC2 instance into warm pool: "+m.ID,
				"an instance was started in response to a difference between desired and actual capacity of the warm pool.")
		})
	}
	return r.launched(g, err)
}

// takeWarm puts an instance of the warm pool into the group, the oldest that is
// ready. While a refresh is under way it must be of what that launches.
func (r *Region) takeWarm(g *Group) bool {
	if g.Warm == nil || g.Warm.Deleting {
		return false
	}
	match := func(*Member) bool { return true }
	if g.activeRefresh() != nil {
		match = r.MatcherOf(g.launchConfig(r))
	}
	for i, m := range g.WarmMembers {
		in := r.ec2.Instances.Get(m.ID)
		if m.Lifecycle != g.Warm.ready() || in == nil || !in.Alive() || !match(m) {
			continue
		}
		g.WarmMembers = append(g.WarmMembers[:i:i], g.WarmMembers[i+1:]...)
		g.Launched++
		m.Lifecycle, m.Seq, m.Protected = memberPending, g.Launched, g.Protect
		g.Members = append(g.Members, m)
		r.beginActivity(g, m, "Launching a new EC2 instance from warm pool: "+m.ID,
			"an instance was started in response to a difference between desired and actual capacity.")
		if in.State == ec2.InstanceStopped {
			in.State = ec2.InstancePending
			r.After(r.Timings().InstancePending, ec2.TimerInstanceRunning, in.ID)
			r.ec2.InstanceChanged(in, ec2.InstanceStopped)
		} else {
			r.memberRuns(g, m, in)
		}
		return true
	}
	return false
}

// returnWarm puts a member back into the warm pool where the pool takes back what
// scale-in ends, and reports whether it did.
func (r *Region) returnWarm(g *Group, m *Member) bool {
	in := r.ec2.Instances.Get(m.ID)
	if g.Warm == nil || g.Warm.Deleting || g.Warm.Reuse == nil || !*g.Warm.Reuse || in == nil || in.State != ec2.InstanceRunning ||
		int64(len(g.Staying())) >= max(g.warmTarget(), 1) {
		return false
	}
	g.removeMember(m.ID)
	g.WarmMembers = append(g.WarmMembers, m)
	if r.retains(g) {
		m.Lifecycle = warmReused
		return true
	}
	r.warmRuns(g, m, in)
	return true
}

// warmRuns brings an instance of the warm pool that has started to where the pool
// keeps it.
func (r *Region) warmRuns(g *Group, m *Member, in *ec2.Instance) {
	if g.Warm == nil || g.Warm.Deleting {
		return
	}
	if g.Warm.State != "Running" {
		in.State = ec2.InstanceStopped
		r.ec2.InstanceChanged(in, ec2.InstanceRunning)
	}
	m.Lifecycle = g.Warm.ready()
	r.finishActivity(g, "Launching", m.ID)
	g.Failures = 0
	r.Touch(g)
}

// EndWarm ends an instance of the warm pool.
func (r *Region) EndWarm(g *Group, m *Member) {
	r.failPending(g, m)
	r.beginActivity(g, m, "Terminating EC2 instance from warm pool: "+m.ID, "an instance was taken out of the warm pool.")
	in := r.ec2.Instances.Get(m.ID)
	switch {
	case in == nil || !in.Alive():
		r.forgetWarm(g, m.ID)
	case r.retains(g):
		m.Lifecycle = warmRetained
		r.finishActivity(g, "Terminating", m.ID)
	default:
		m.Lifecycle = warmTerminating
		r.ec2.TerminateInstance(m.ID, "User initiated")
	}
}

func (r *Region) forgetWarm(g *Group, id string) {
	g.WarmMembers = Keep(g.WarmMembers, func(m *Member) bool { return m.ID != id })
	r.finishActivity(g, "Terminating", id)
	r.Touch(g)
}

// endAllWarm ends the whole warm pool, as its deletion does.
func (r *Region) endAllWarm(g *Group) {
	for _, m := range append([]*Member(nil), g.WarmMembers...) {
		if m.Lifecycle != warmTerminating && (g.Deleting || m.Lifecycle != warmRetained) {
			r.EndWarm(g, m)
		}
	}
}

// warmChanged follows the instances of the warm pool.
func (r *Region) warmChanged(g *Group, m *Member, in *ec2.Instance) {
	switch in.State {
	case ec2.InstanceRunning:
		r.warmRuns(g, m, in)
	case ec2.InstanceTerminated:
		r.forgetWarm(g, m.ID)
	}
}

// refreshWarm replaces what of the warm pool a refresh, or its rollback, has to, once
// the group itself is done, and reports whether there was anything.
func (r *Region) refreshWarm(g *Group, f *refresh) bool {
	stale := r.staleOf(g, f, g.Staying())
	for _, m := range stale {
		r.EndWarm(g, m)
	}
	if len(stale) > 0 {
		r.Touch(g)
	}
	return len(stale) > 0
}

// RemoveWarm begins the end of a group's warm pool.
func (r *Region) RemoveWarm(g *Group) {
	pool := *g.Warm
	pool.Deleting = true
	g.Warm = &pool
	r.endAllWarm(g)
	r.After(r.Timings().InstanceShutdown, timerWarmPool, g.key())
}

// warmRows are the instances of the warm pool by id, as answers list them.
func (g *Group) warmRows() (ids []string, rows map[string]*Member) {
	rows = map[string]*Member{}
	for _, m := range g.WarmMembers {
		ids = append(ids, m.ID)
		rows[m.ID] = m
	}
	sort.Strings(ids)
	return ids, rows
}
