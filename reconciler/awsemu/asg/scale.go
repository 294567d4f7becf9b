package asg

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// scaler scales a group to its desired capacity.
type scaler struct{ *Region }

// Touch schedules a check of the group's capacity at the current time.
func (r *Region) Touch(g *Group) {
	if !g.Scheduled {
		g.Scheduled = true
		r.After(0, timerScale, g.key())
	}
}

func runScale(r *Region, key string) {
	if g := r.groupByKey(key); g != nil {
		g.Scheduled = false
		scaler{r}.scale(g)
	}
}

// scale moves a group towards its desired capacity: it replaces unhealthy members, launches missing ones,
// terminates surplus ones, and moves members out of places that the group left, one at a time.
func (r scaler) scale(g *Group) {
	if g.Deleting {
		r.removeEmptyGroup(g)
		return
	}
	r.checkHealth(g)
	r.replaceUnhealthy(g)
	r.scaleOut(g)
	r.scaleIn(g)
	r.moveOne(g)
	Warm(r.Region, g).fill()
	if g.capacity() == g.Desired {
		g.Cause = ""
	}
}

// checkHealth finds members whose instances were terminated by other calls.
func (r scaler) checkHealth(g *Group) {
	if g.suspended("HealthCheck") {
		return
	}
	for _, m := range g.Members {
		if in := r.ec2.Instances.Get(m.ID); m.Active() && (in == nil || !in.Alive()) {
			m.Health = unhealthy
		}
	}
}

func (r scaler) replaceUnhealthy(g *Group) {
	if g.suspended("ReplaceUnhealthy") || g.suspended("Terminate") {
		return
	}
	for _, m := range append([]*Member(nil), g.Members...) {
		if !m.Active() || m.Health == healthy {
			continue
		}
		if in := r.ec2.Instances.Get(m.ID); in != nil && in.Alive() && r.Now().Before(m.Spared) {
			continue // a timer fires at the end of its grace period
		}
		cause := "an instance was taken out of service in response to an EC2 health check indicating it has been terminated or stopped."
		if in := r.ec2.Instances.Get(m.ID); in != nil && in.Alive() {
			if in.Unhealthy && m.Lifecycle == memberPending {
				continue // its own timer gives it time to recover
			}
			cause = "an instance was taken out of service in response to an EC2 instance status checks failure."
			if m.Told {
				cause = "an instance was taken out of service in response to a user health-check."
			}
		}
		r.EndMember(g, m, cause)
	}
}

// scaleOut launches the missing instances.
func (r scaler) scaleOut(g *Group) {
	if g.suspended("Launch") || r.Now().Before(g.RetryAt) {
		return
	}
	for g.capacity() < g.Desired+g.Surge {
		if !Warm(r.Region, g).claim() && !r.launchMember(g) {
			return
		}
		g.LastScaled = r.Now()
	}
}

// scaleIn terminates surplus members in the order of the termination policies.
func (r scaler) scaleIn(g *Group) {
	if g.suspended("Terminate") {
		return
	}
	for surplus := g.capacity() - g.Desired - g.Surge; surplus > 0; surplus = g.capacity() - g.Desired - g.Surge {
		var candidates []*Member
		for _, m := range g.Members {
			if m.Active() && !m.Protected && m.Units <= surplus {
				candidates = append(candidates, m)
			}
		}
		if len(candidates) == 0 {
			return
		}
		n := g.capacity()
		m := r.victim(g, candidates)
		if Warm(r.Region, g).takeBack(m) {
			continue
		}
		r.EndMember(g, m, fmt.Sprintf("an instance was taken out of service in response to a difference between desired and actual capacity, shrinking the capacity from %d to %d.", n, n-m.Units))
		g.LastScaled = r.Now()
	}
}

// moveOne terminates a member in a subnet or zone that the group no longer has, when all others are in
// service, so that it is replaced elsewhere.
func (r scaler) moveOne(g *Group) {
	if g.suspended("AZRebalance") || g.suspended("Launch") || g.suspended("Terminate") || !g.Steady() || g.activeRefresh() != nil {
		return
	}
	for _, m := range g.Members {
		if m.Active() && !g.inLocation(m) {
			r.EndMember(g, m, fmt.Sprintf("instances were launched to balance instances in zones %s with other zones resulting in more than desired number of instances in the group. An instance was taken out of service.", strings.Join(g.Zones, " ")))
			r.Touch(g)
			return
		}
	}
}

func (g *Group) inLocation(m *Member) bool {
	if len(g.Subnets) > 0 && !m.Attached {
		return slices.Contains(g.Subnets, m.SubnetID)
	}
	return slices.Contains(g.Zones, m.Zone)
}

// victim returns the member that scale-in terminates next.
func (r scaler) victim(g *Group, candidates []*Member) *Member {
	left := r.fullestZone(g, candidates)
	for _, policy := range g.Policies {
		if len(left) == 1 {
			break
		}
		left = r.prefer(g, policy, left)
	}
	return left[0]
}

// fullestZone returns the candidates in the zone with the most members.
func (r scaler) fullestZone(g *Group, candidates []*Member) []*Member {
	counts := map[string]int{}
	for _, m := range g.Members {
		if m.Active() {
			counts[m.Zone]++
		}
	}
	most := 0
	for _, m := range candidates {
		most = max(most, counts[m.Zone])
	}
	return Keep(candidates, func(m *Member) bool { return counts[m.Zone] == most })
}

// terminationPolicies returns the names of Auto Scaling's policies.
func terminationPolicies() []string {
	return []string{"AllocationStrategy", "ClosestToNextInstanceHour", "Default", "NewestInstance", "OldestInstance", "OldestLaunchConfiguration", "OldestLaunchTemplate"}
}

func describeTerminationPolicies(rq *request, _ struct{}) error {
	rq.XML.Texts("TerminationPolicyTypes", "member", terminationPolicies())
	return nil
}

// prefer returns the candidates that a termination policy ends first. Default first selects members that no
// longer match the configuration, then the oldest version, then the oldest instance. It also replaces the
// policies that need billing hours or prices.
func (r scaler) prefer(g *Group, policy string, candidates []*Member) []*Member {
	switch policy {
	case "NewestInstance":
		return candidates[len(candidates)-1:]
	case "OldestInstance":
		return candidates[:1]
	case "OldestLaunchTemplate":
		return r.oldestTemplate(g, candidates)
	case "OldestLaunchConfiguration":
		if old := Keep(candidates, func(m *Member) bool { return m.LaunchConfig != "" && m.LaunchConfig != g.Config.LaunchConfig }); len(old) > 0 {
			return old
		}
		return candidates
	}
	return r.oldestTemplate(g, candidates)[:1]
}

// oldestTemplate returns the members that differ most from the group's configuration.
func (r scaler) oldestTemplate(g *Group, candidates []*Member) []*Member {
	match := MatcherOf(r.ec2, g.launchConfig(r.Region))
	if old := Keep(candidates, func(m *Member) bool { return !match(m) }); len(old) > 0 {
		candidates = old
	}
	sorted := append([]*Member(nil), candidates...)
	sort.SliceStable(sorted, func(i, j int) bool { return versionNumber(sorted[i]) < versionNumber(sorted[j]) })
	return Keep(sorted, func(m *Member) bool { return versionNumber(m) == versionNumber(sorted[0]) })
}

func versionNumber(m *Member) int64 {
	return wire.Data{"v": m.Template.Version}.Integer("v")
}

func Keep(members []*Member, test func(*Member) bool) []*Member {
	var out []*Member
	for _, m := range members {
		if test(m) {
			out = append(out, m)
		}
	}
	return out
}

// EndMember starts the termination of a member.
func (r *Region) EndMember(g *Group, m *Member, cause string) {
	again := m.Lifecycle == memberRetained
	m.Lifecycle, m.Actions = memberTerminating, nil
	r.failPending(g, m)
	r.beginActivity(g, m, "Terminating EC2 instance: "+m.ID, cause)
	in := r.ec2.Instances.Get(m.ID)
	switch {
	case in == nil || in.State == ec2.InstanceTerminated:
		r.forgetMember(g, m)
		return
	case !again && in.Alive() && !g.Deleting && (&hooked{r, g, m}).startWait(transitionTerminating):
		return
	}
	r.ec2.TerminateInstance(m.ID, "User initiated")
}

// forgetMember removes a member from the group after its instance is terminated.
func (r *Region) forgetMember(g *Group, m *Member) {
	g.removeMember(m.ID)
	r.finishActivity(g, true, m.ID)
	r.Touch(g)
}

// InstanceChanged updates the groups after a change of an instance.
func (r *Region) InstanceChanged(in *ec2.Instance, _ string) {
	name, ours := strings.CutPrefix(in.Owner, ownerPrefix)
	if !ours {
		return
	}
	g := r.Groups.Get(name)
	if g == nil {
		return
	}
	m := g.Member(in.ID)
	if m == nil {
		if m = g.warmMember(in.ID); m != nil {
			Warm(r, g).follow(m, in)
		}
		return
	}
	switch in.State {
	case ec2.InstanceRunning:
		r.memberRuns(g, m, in)
	case ec2.InstanceShuttingDown:
		if m.Active() {
			r.Touch(g)
		}
	case ec2.InstanceTerminated:
		if m.ends() || m.Lifecycle == memberRetained {
			r.forgetMember(g, m)
			return
		}
		r.Touch(g)
	}
}

// memberRuns puts a member into service. If the instance is unhealthy, the member gets three launches' time
// and is then replaced.
func (r *Region) memberRuns(g *Group, m *Member, in *ec2.Instance) {
	if !m.Active() {
		return
	}
	if in.Unhealthy {
		m.Health = unhealthy
		r.After(3*r.Timings().InstancePending, timerUnhealthy, g.key()+"\x00"+m.ID)
		return
	}
	if !(&hooked{r, g, m}).startWait(transitionLaunching) {
		r.serves(g, m)
	}
}

// serves puts a member into service.
func (r *Region) serves(g *Group, m *Member) {
	m.Lifecycle, m.Served = memberInService, r.Now()
	r.finishActivity(g, false, m.ID)
	g.Failures, g.RetryAt = 0, time.Time{}
	r.Touch(g)
}

func runUnhealthy(r *Region, key string) {
	key, id, _ := strings.Cut(key, "\x00")
	g := r.groupByKey(key)
	if g == nil {
		return
	}
	m := g.Member(id)
	if m == nil || !m.Active() {
		return
	}
	g.LastFailure = "Instance failed to become healthy"
	r.launchFailed(g)
	if g.suspended("ReplaceUnhealthy") || g.suspended("Terminate") {
		m.Lifecycle = memberInService
		r.finishActivity(g, false, m.ID)
		return
	}
	r.EndMember(g, m, "an instance was taken out of service in response to an EC2 instance status checks failure.")
	r.Touch(g)
}
