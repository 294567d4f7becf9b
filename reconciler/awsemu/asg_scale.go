package awsemu

import (
	"fmt"
	"sort"
	"strings"
	"time"
)

// touch lets the group look at its capacity as soon as the clock is asked again.
func (r *region) touch(g *asgGroup) {
	if !g.Scheduled {
		g.Scheduled = true
		r.after(0, timerScale, g.key())
	}
}

func runScale(r *region, key string) {
	if g := r.groupByKey(key); g != nil {
		g.Scheduled = false
		r.scale(g)
	}
}

// scale moves a group towards its desired capacity: members that are not healthy
// are replaced, missing ones launched, surplus ones ended, and members in places
// that the group left are moved, one at a time.
func (r *region) scale(g *asgGroup) {
	if g.Deleting {
		r.removeEmptyGroup(g)
		return
	}
	r.checkHealth(g)
	r.replaceUnhealthy(g)
	r.scaleOut(g)
	r.scaleIn(g)
	r.moveOne(g)
	r.fillWarm(g)
	if g.capacity() == g.Desired {
		g.Cause = ""
	}
}

// checkHealth finds members whose instances were ended by others.
func (r *region) checkHealth(g *asgGroup) {
	if g.suspended("HealthCheck") {
		return
	}
	for _, m := range g.Members {
		if in := r.EC2.Instances.get(m.ID); m.active() && (in == nil || !in.alive()) {
			m.Health = unhealthy
		}
	}
}

func (r *region) replaceUnhealthy(g *asgGroup) {
	if g.suspended("ReplaceUnhealthy") || g.suspended("Terminate") {
		return
	}
	for _, m := range append([]*member(nil), g.Members...) {
		if !m.active() || m.Health == healthy {
			continue
		}
		cause := "an instance was taken out of service in response to an EC2 health check indicating it has been terminated or stopped."
		if in := r.EC2.Instances.get(m.ID); in != nil && in.alive() {
			if in.Unhealthy && m.Lifecycle == memberPending {
				continue // its own timer gives it time to get better
			}
			cause = "an instance was taken out of service in response to an EC2 instance status checks failure."
		}
		r.endMember(g, m, cause)
	}
}

// scaleOut launches what is missing.
func (r *region) scaleOut(g *asgGroup) {
	if g.suspended("Launch") || r.now().Before(g.RetryAt) {
		return
	}
	for g.capacity() < g.Desired+g.Surge {
		if !r.takeWarm(g) && !r.launchMember(g) {
			return
		}
		g.LastScaled = r.now()
	}
}

// scaleIn ends surplus members, those first that the termination policies say.
func (r *region) scaleIn(g *asgGroup) {
	if g.suspended("Terminate") {
		return
	}
	for surplus := g.capacity() - g.Desired - g.Surge; surplus > 0; surplus = g.capacity() - g.Desired - g.Surge {
		var candidates []*member
		for _, m := range g.Members {
			if m.active() && !m.Protected && m.Units <= surplus {
				candidates = append(candidates, m)
			}
		}
		if len(candidates) == 0 {
			return
		}
		n := g.capacity()
		m := r.victim(g, candidates)
		if r.returnWarm(g, m) {
			continue
		}
		r.endMember(g, m, fmt.Sprintf("an instance was taken out of service in response to a difference between desired and actual capacity, shrinking the capacity from %d to %d.", n, n-m.Units))
		g.LastScaled = r.now()
	}
}

// moveOne ends a member in a place that the group no longer has, once all others
// are in service, so that it is replaced elsewhere.
func (r *region) moveOne(g *asgGroup) {
	if g.suspended("AZRebalance") || g.suspended("Launch") || g.suspended("Terminate") || !g.settled() || g.activeRefresh() != nil {
		return
	}
	for _, m := range g.Members {
		if m.active() && !g.hasPlace(m) {
			r.endMember(g, m, fmt.Sprintf("instances were launched to balance instances in zones %s with other zones resulting in more than desired number of instances in the group. An instance was taken out of service.", strings.Join(g.Zones, " ")))
			r.touch(g)
			return
		}
	}
}

func (g *asgGroup) hasPlace(m *member) bool {
	if len(g.Subnets) > 0 {
		return contains(g.Subnets, m.SubnetID)
	}
	return contains(g.Zones, m.Zone)
}

// victim picks the member that scale-in ends next.
func (r *region) victim(g *asgGroup, candidates []*member) *member {
	left := r.fullestZone(g, candidates)
	for _, policy := range g.Policies {
		if len(left) == 1 {
			break
		}
		left = r.prefer(g, policy, left)
	}
	return left[0]
}

// fullestZone keeps the candidates in the zone with the most members.
func (r *region) fullestZone(g *asgGroup, candidates []*member) []*member {
	counts := map[string]int{}
	for _, m := range g.Members {
		if m.active() {
			counts[m.Zone]++
		}
	}
	most := 0
	for _, m := range candidates {
		most = max(most, counts[m.Zone])
	}
	return keep(candidates, func(m *member) bool { return counts[m.Zone] == most })
}

// prefer keeps the candidates that a termination policy ends first. Default goes
// for what no longer matches the configuration, then for the oldest version, then
// for the oldest instance; it stands for the policies that need billing hours or
// prices, too.
func (r *region) prefer(g *asgGroup, policy string, candidates []*member) []*member {
	switch policy {
	case "NewestInstance":
		return candidates[len(candidates)-1:]
	case "OldestInstance":
		return candidates[:1]
	case "OldestLaunchTemplate":
		return r.oldestTemplate(g, candidates)
	case "OldestLaunchConfiguration":
		return candidates
	}
	return r.oldestTemplate(g, candidates)[:1]
}

// oldestTemplate keeps the members that are furthest from what the group launches.
func (r *region) oldestTemplate(g *asgGroup, candidates []*member) []*member {
	match := r.matcherOf(g.launchConfig(r))
	if old := keep(candidates, func(m *member) bool { return !match(m) }); len(old) > 0 {
		candidates = old
	}
	sorted := append([]*member(nil), candidates...)
	sort.SliceStable(sorted, func(i, j int) bool { return versionNumber(sorted[i]) < versionNumber(sorted[j]) })
	return keep(sorted, func(m *member) bool { return versionNumber(m) == versionNumber(sorted[0]) })
}

func versionNumber(m *member) int64 {
	return ltData{"v": m.Template.Version}.integer("v")
}

func keep(members []*member, test func(*member) bool) []*member {
	var out []*member
	for _, m := range members {
		if test(m) {
			out = append(out, m)
		}
	}
	return out
}

// endMember starts a member's end.
func (r *region) endMember(g *asgGroup, m *member, cause string) {
	again := m.Lifecycle == memberRetained
	m.Lifecycle = memberTerminating
	r.failPending(g, m)
	r.beginActivity(g, m, "Terminating EC2 instance: "+m.ID, cause)
	in := r.EC2.Instances.get(m.ID)
	switch {
	case in == nil || in.State == instanceTerminated:
		r.forgetMember(g, m)
		return
	case !again && in.alive() && r.retains(g):
		r.retain(g, m)
		return
	}
	r.terminateInstance(m.ID, "User initiated")
}

// forgetMember takes a member off the group once its instance is terminated.
func (r *region) forgetMember(g *asgGroup, m *member) {
	g.removeMember(m.ID)
	r.finishActivity(g, "Terminating", m.ID)
	r.touch(g)
}

// groupInstanceChanged follows the instances of groups.
func groupInstanceChanged(r *region, in *instance, _ string) {
	name, ours := strings.CutPrefix(in.Owner, "asg:")
	if !ours {
		return
	}
	g := r.AutoScaling.Groups.get(name)
	if g == nil {
		return
	}
	m := g.member(in.ID)
	if m == nil {
		if m = g.warmMember(in.ID); m != nil {
			r.warmChanged(g, m, in)
		}
		return
	}
	switch in.State {
	case instanceRunning:
		r.memberRuns(g, m, in)
	case instanceShuttingDown:
		if m.active() {
			r.touch(g)
		}
	case instanceTerminated:
		if !m.active() {
			r.forgetMember(g, m)
			return
		}
		r.touch(g)
	}
}

// memberRuns puts a member into service, unless something is wrong with it: then
// it is given three launches' time and replaced.
func (r *region) memberRuns(g *asgGroup, m *member, in *instance) {
	if !m.active() {
		return
	}
	if in.Unhealthy {
		m.Health = unhealthy
		r.after(3*r.timings().InstancePending, timerUnhealthy, g.key()+"\x00"+m.ID)
		return
	}
	if !r.waits(g, m) {
		r.serves(g, m)
	}
}

// serves puts a member into service.
func (r *region) serves(g *asgGroup, m *member) {
	m.Lifecycle = memberInService
	r.finishActivity(g, "Launching", m.ID)
	g.Failures, g.RetryAt = 0, time.Time{}
	r.touch(g)
}

func runUnhealthy(r *region, key string) {
	key, id, _ := strings.Cut(key, "\x00")
	g := r.groupByKey(key)
	if g == nil {
		return
	}
	m := g.member(id)
	if m == nil || !m.active() {
		return
	}
	g.LastFailure = "Instance failed to become healthy"
	r.launchFailed(g)
	if g.suspended("ReplaceUnhealthy") || g.suspended("Terminate") {
		m.Lifecycle = memberInService
		r.finishActivity(g, "Launching", m.ID)
		return
	}
	r.endMember(g, m, "an instance was taken out of service in response to an EC2 instance status checks failure.")
	r.touch(g)
}
