package asg

import (
	"sort"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
)

// The lifecycle states of instances in a warm pool.
const (
	warmPending     = "Warmed:Pending"
	warmTerminating = "Warmed:Terminating"
	warmEndWaiting  = warmTerminating + suffixWait
	warmRetained    = "Warmed:Terminating:Retained"
	warmReused      = "Warmed:Pending:Retained"
)

// ready returns the lifecycle state of an instance that the pool has prepared.
func (pool *WarmPool) ready() string { return "Warmed:" + pool.State }

// warmTarget returns the wanted number of instances in the group's warm pool: the part of the maximum
// prepared capacity that is left, and at least its minimum.
func (g *Group) warmTarget() int64 {
	if g.Warm == nil || g.Warm.Deleting || g.Deleting {
		return 0
	}
	most := g.Max
	Set(&most, g.Warm.MaxPrepared)
	return max(g.Warm.Min, most-g.Desired, 0)
}

// Staying returns the instances of the warm pool that are not ending.
func (g *Group) Staying() []*Member {
	return Keep(g.WarmMembers, func(m *Member) bool {
		return !strings.HasPrefix(m.Lifecycle, warmTerminating) && m.Lifecycle != warmReused
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

// Warming maintains a group's warm pool.
type Warming struct {
	*Region
	g *Group
}

// Warm returns the Warming of a group.
func Warm(r *Region, g *Group) *Warming { return &Warming{r, g} }

// fill launches the instances that are missing from the warm pool and ends surplus ones.
func (r *Warming) fill() {
	have, want := r.g.Staying(), r.g.warmTarget()
	for _, m := range have {
		if in := r.ec2.Instances.Get(m.ID); !strings.HasPrefix(m.Lifecycle, warmPending) && in != nil && r.g.Warm != nil && !r.g.Warm.Deleting && m.Lifecycle != r.g.Warm.ready() {
			m.Lifecycle, in.State = r.g.Warm.ready(), ec2.InstanceStopped // the state of the pool was changed
			if r.g.Warm.State == "Running" {
				in.State = ec2.InstanceRunning
			}
		}
	}
	for n := int64(len(have)); n < want && !r.g.suspended("Launch") && !r.Now().Before(r.g.RetryAt); n++ {
		if !r.launch() {
			return
		}
	}
	if r.g.suspended("Terminate") && !r.g.Deleting {
		return
	}
	for i := len(have) - 1; i >= 0 && int64(i) >= want; i-- {
		r.End(have[i])
	}
}

// launch launches an instance into the warm pool.
func (r *Warming) launch() bool {
	cfg := r.g.launchConfig(r.Region)
	choices, err := r.choices(cfg)
	if err == nil {
		err = r.launchSomewhere(r.g, choices, false, func(ch *Choice, in *ec2.Instance) {
			m := r.g.newMember(ch, in)
			m.Lifecycle = warmPending
			r.g.WarmMembers = append(r.g.WarmMembers, m)
			r.beginActivity(r.g, m, "Launching a new EC2 instance into warm pool: "+m.ID,
				"an instance was started in response to a difference between desired and actual capacity of the warm pool.")
		})
	}
	return r.launched(r.g, err)
}

// claim moves the oldest ready instance of the warm pool into the group. During a refresh, the instance must
// match the refresh's configuration.
func (r *Warming) claim() bool {
	if r.g.Warm == nil || r.g.Warm.Deleting {
		return false
	}
	match := func(*Member) bool { return true }
	if r.g.activeRefresh() != nil {
		match = MatcherOf(r.ec2, r.g.launchConfig(r.Region))
	}
	for i, m := range r.g.WarmMembers {
		in := r.ec2.Instances.Get(m.ID)
		if m.Lifecycle != r.g.Warm.ready() || in == nil || !in.Alive() || !match(m) {
			continue
		}
		r.g.WarmMembers = append(r.g.WarmMembers[:i:i], r.g.WarmMembers[i+1:]...)
		r.g.Launched++
		m.Lifecycle, m.Seq, m.Protected = memberPending, r.g.Launched, r.g.Protect
		r.g.Members = append(r.g.Members, m)
		r.beginActivity(r.g, m, "Launching a new EC2 instance from warm pool: "+m.ID,
			"an instance was started in response to a difference between desired and actual capacity.")
		if in.State == ec2.InstanceStopped {
			in.State = ec2.InstancePending
			r.After(r.Timings().InstancePending, ec2.TimerInstanceRunning, in.ID)
			r.ec2.InstanceChanged(in, ec2.InstanceStopped)
		} else {
			r.memberRuns(r.g, m, in)
		}
		return true
	}
	return false
}

// takeBack puts a member back into the warm pool if the pool reuses instances on scale-in, and reports
// whether it did.
func (r *Warming) takeBack(m *Member) bool {
	in := r.ec2.Instances.Get(m.ID)
	if r.g.Warm == nil || r.g.Warm.Deleting || r.g.Warm.Reuse == nil || !*r.g.Warm.Reuse || in == nil || in.State != ec2.InstanceRunning ||
		int64(len(r.g.Staying())) >= max(r.g.warmTarget(), 1) {
		return false
	}
	r.g.removeMember(m.ID)
	r.g.WarmMembers = append(r.g.WarmMembers, m)
	if l := r.listener(r.g.Name, transitionTerminating); l != nil && l.Result == resultAbandon && r.g.keepsAbandoned() && r.g.hooks(transitionTerminating) != nil {
		m.Lifecycle = warmReused
		return true
	}
	r.ready(m, in)
	return true
}

// ready puts a started instance of the warm pool into the pool's state.
func (r *Warming) ready(m *Member, in *ec2.Instance) {
	if r.g.Warm == nil || r.g.Warm.Deleting {
		return
	}
	if r.g.Warm.State != "Running" {
		in.State = ec2.InstanceStopped
		r.ec2.InstanceChanged(in, ec2.InstanceRunning)
	}
	m.Lifecycle = r.g.Warm.ready()
	r.finishActivity(r.g, false, m.ID)
	r.g.Failures = 0
	r.Touch(r.g)
}

// End terminates an instance of the warm pool.
func (r *Warming) End(m *Member) {
	again := m.Lifecycle == warmRetained
	m.Lifecycle, m.Actions = warmTerminating, nil
	r.failPending(r.g, m)
	r.beginActivity(r.g, m, "Terminating EC2 instance from warm pool: "+m.ID, "an instance was taken out of the warm pool.")
	in := r.ec2.Instances.Get(m.ID)
	switch {
	case in == nil || !in.Alive():
		r.forget(m.ID)
	case !again && !r.g.Deleting && (&hooked{r.Region, r.g, m}).startWait(transitionTerminating):
	default:
		r.ec2.TerminateInstance(m.ID, "User initiated")
	}
}

func (r *Warming) forget(id string) {
	r.g.WarmMembers = Keep(r.g.WarmMembers, func(m *Member) bool { return m.ID != id })
	r.finishActivity(r.g, true, id)
	r.Touch(r.g)
}

// endAll terminates the whole warm pool, when it is deleted.
func (r *Warming) endAll() {
	for _, m := range append([]*Member(nil), r.g.WarmMembers...) {
		switch {
		case r.g.Deleting && m.Lifecycle == warmEndWaiting:
			(&hooked{r.Region, r.g, m}).endProceeds(false)
		case r.g.Deleting && m.Lifecycle == warmRetained, !strings.HasPrefix(m.Lifecycle, warmTerminating):
			r.End(m)
		}
	}
}

// follow updates the warm pool after a change of its instances.
func (r *Warming) follow(m *Member, in *ec2.Instance) {
	switch in.State {
	case ec2.InstanceRunning:
		if m.Lifecycle == warmPending && !(&hooked{r.Region, r.g, m}).startWait(transitionLaunching) {
			r.ready(m, in)
		}
	case ec2.InstanceTerminated:
		r.forget(m.ID)
	}
}

// refresh replaces the instances of the warm pool that a refresh, or its rollback, must replace. It runs
// after the group itself, and reports whether anything was left.
func (r *Warming) refresh(f *refresh) bool {
	stale := (&replacement{r.Region, r.g, f}).staleOf(r.g.Staying())
	for _, m := range stale {
		r.End(m)
	}
	if len(stale) > 0 {
		r.Touch(r.g)
	}
	return len(stale) > 0
}

// Remove starts the deletion of a group's warm pool.
func (r *Warming) Remove() {
	pool := *r.g.Warm
	pool.Deleting = true
	r.g.Warm = &pool
	r.endAll()
	r.After(r.Timings().InstanceShutdown, timerWarmPool, r.g.key())
}

// warmRows returns the instances of the warm pool by id, in the order of answers.
func (g *Group) warmRows() (ids []string, rows map[string]*Member) {
	rows = map[string]*Member{}
	for _, m := range g.WarmMembers {
		ids = append(ids, m.ID)
		rows[m.ID] = m
	}
	sort.Strings(ids)
	return ids, rows
}
