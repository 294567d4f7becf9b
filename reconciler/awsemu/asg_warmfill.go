package awsemu

import "sort"

// The lifecycle states of instances in a warm pool.
const (
	warmPending     = "Warmed:Pending"
	warmTerminating = "Warmed:Terminating"
	warmRetained    = "Warmed:Terminating:Retained"
	warmReused      = "Warmed:Pending:Retained"
)

// ready is the lifecycle state of an instance that the pool has prepared.
func (pool *warmPool) ready() string { return "Warmed:" + pool.State }

// warmTarget is how many instances the group's warm pool is to hold: what is missing
// to the most that may be prepared, and its minimum at least.
func (g *asgGroup) warmTarget() int64 {
	if g.Warm == nil || g.Warm.Deleting || g.Deleting {
		return 0
	}
	most := g.Max
	set(&most, g.Warm.MaxPrepared)
	return max(g.Warm.Min, most-g.Desired, 0)
}

// staying are the instances of the warm pool that are not on their way out.
func (g *asgGroup) staying() []*member {
	return keep(g.WarmMembers, func(m *member) bool {
		return m.Lifecycle != warmTerminating && m.Lifecycle != warmRetained && m.Lifecycle != warmReused
	})
}

func (g *asgGroup) warmMember(id string) *member {
	for _, m := range g.WarmMembers {
		if m.ID == id {
			return m
		}
	}
	return nil
}

// fillWarm launches what the warm pool lacks and ends what it has too many of.
func (r *region) fillWarm(g *asgGroup) {
	have, want := g.staying(), g.warmTarget()
	for _, m := range have {
		if in := r.EC2.Instances.get(m.ID); m.Lifecycle != warmPending && in != nil && g.Warm != nil && !g.Warm.Deleting && m.Lifecycle != g.Warm.ready() {
			m.Lifecycle, in.State = g.Warm.ready(), instanceStopped // the pool was put into another state
			if g.Warm.State == "Running" {
				in.State = instanceRunning
			}
		}
	}
	for n := int64(len(have)); n < want && !g.suspended("Launch") && !r.now().Before(g.RetryAt); n++ {
		if !r.launchWarm(g) {
			return
		}
	}
	if g.suspended("Terminate") && !g.Deleting {
		return
	}
	for i := len(have) - 1; i >= 0 && int64(i) >= want; i-- {
		r.endWarm(g, have[i])
	}
}

// launchWarm launches an instance into the warm pool.
func (r *region) launchWarm(g *asgGroup) bool {
	cfg := g.launchConfig(r)
	choices, err := r.choices(cfg)
	if err == nil {
		err = r.launchSomewhere(g, choices, false, func(ch *choice, in *instance) {
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
func (r *region) takeWarm(g *asgGroup) bool {
	if g.Warm == nil || g.Warm.Deleting {
		return false
	}
	match := func(*member) bool { return true }
	if g.activeRefresh() != nil {
		match = r.matcherOf(g.launchConfig(r))
	}
	for i, m := range g.WarmMembers {
		in := r.EC2.Instances.get(m.ID)
		if m.Lifecycle != g.Warm.ready() || in == nil || !in.alive() || !match(m) {
			continue
		}
		g.WarmMembers = append(g.WarmMembers[:i:i], g.WarmMembers[i+1:]...)
		g.Launched++
		m.Lifecycle, m.Seq, m.Protected = memberPending, g.Launched, g.Protect
		g.Members = append(g.Members, m)
		r.beginActivity(g, m, "Launching a new EC2 instance from warm pool: "+m.ID,
			"an instance was started in response to a difference between desired and actual capacity.")
		if in.State == instanceStopped {
			in.State = instancePending
			r.after(r.timings().InstancePending, timerInstanceRunning, in.ID)
			r.instanceChanged(in, instanceStopped)
		} else {
			r.memberRuns(g, m, in)
		}
		return true
	}
	return false
}

// returnWarm puts a member back into the warm pool where the pool takes back what
// scale-in ends, and reports whether it did.
func (r *region) returnWarm(g *asgGroup, m *member) bool {
	in := r.EC2.Instances.get(m.ID)
	if g.Warm == nil || g.Warm.Deleting || g.Warm.Reuse == nil || !*g.Warm.Reuse || in == nil || in.State != instanceRunning ||
		int64(len(g.staying())) >= max(g.warmTarget(), 1) {
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
func (r *region) warmRuns(g *asgGroup, m *member, in *instance) {
	if g.Warm == nil || g.Warm.Deleting {
		return
	}
	if g.Warm.State != "Running" {
		in.State = instanceStopped
		r.instanceChanged(in, instanceRunning)
	}
	m.Lifecycle = g.Warm.ready()
	r.finishActivity(g, "Launching", m.ID)
	g.Failures = 0
	r.touch(g)
}

// endWarm ends an instance of the warm pool.
func (r *region) endWarm(g *asgGroup, m *member) {
	r.failPending(g, m)
	r.beginActivity(g, m, "Terminating EC2 instance from warm pool: "+m.ID, "an instance was taken out of the warm pool.")
	in := r.EC2.Instances.get(m.ID)
	switch {
	case in == nil || !in.alive():
		r.forgetWarm(g, m.ID)
	case r.retains(g):
		m.Lifecycle = warmRetained
		r.finishActivity(g, "Terminating", m.ID)
	default:
		m.Lifecycle = warmTerminating
		r.terminateInstance(m.ID, "User initiated")
	}
}

func (r *region) forgetWarm(g *asgGroup, id string) {
	g.WarmMembers = keep(g.WarmMembers, func(m *member) bool { return m.ID != id })
	r.finishActivity(g, "Terminating", id)
	r.touch(g)
}

// endAllWarm ends the whole warm pool, as its deletion does.
func (r *region) endAllWarm(g *asgGroup) {
	for _, m := range append([]*member(nil), g.WarmMembers...) {
		if m.Lifecycle != warmTerminating && (g.Deleting || m.Lifecycle != warmRetained) {
			r.endWarm(g, m)
		}
	}
}

// warmChanged follows the instances of the warm pool.
func (r *region) warmChanged(g *asgGroup, m *member, in *instance) {
	switch in.State {
	case instanceRunning:
		r.warmRuns(g, m, in)
	case instanceTerminated:
		r.forgetWarm(g, m.ID)
	}
}

// refreshWarm replaces what of the warm pool a refresh, or its rollback, has to, once
// the group itself is done, and reports whether there was anything.
func (r *region) refreshWarm(g *asgGroup, f *refresh) bool {
	stale := r.staleOf(g, f, g.staying())
	for _, m := range stale {
		r.endWarm(g, m)
	}
	if len(stale) > 0 {
		r.touch(g)
	}
	return len(stale) > 0
}

// applyWarm gives the group behind a nodegroup the warm pool that EKS was told of.
func (r *region) applyWarm(ng *nodegroup) {
	g, want := ng.group(r), ng.WarmPool
	switch {
	case g == nil || g.Deleting:
		return
	case want != nil:
		pool := warmPool{Reuse: want.Reuse, State: map[string]string{"RUNNING": "Running", "HIBERNATED": "Hibernated"}[want.State]}
		pool.State = first(pool.State, "Stopped")
		set(&pool.Min, want.Min)
		if want.MaxPrepared != nil && *want.MaxPrepared >= 0 {
			pool.MaxPrepared = want.MaxPrepared
		}
		g.Warm = &pool
	case g.Warm != nil && !g.Warm.Deleting:
		r.removeWarm(g)
	}
	r.touch(g)
}

// removeWarm begins the end of a group's warm pool.
func (r *region) removeWarm(g *asgGroup) {
	pool := *g.Warm
	pool.Deleting = true
	g.Warm = &pool
	r.endAllWarm(g)
	r.after(r.timings().InstanceShutdown, timerWarmPool, g.key())
}

// warmRows are the instances of the warm pool by id, as answers list them.
func (g *asgGroup) warmRows() (ids []string, rows map[string]*member) {
	rows = map[string]*member{}
	for _, m := range g.WarmMembers {
		ids = append(ids, m.ID)
		rows[m.ID] = m
	}
	sort.Strings(ids)
	return ids, rows
}
