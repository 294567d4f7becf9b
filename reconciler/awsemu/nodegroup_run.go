package awsemu

import (
	"time"
)

// stallNodegroup is how many times its usual duration a state may last before it
// fails.
const stallNodegroup = 10

// eksNodeCreation is the code of an update whose nodes do not come up.
const eksNodeCreation = "NodeCreationFailure"

// stepNodegroup moves a nodegroup on and returns when to look again, 0 for never.
func (r *region) stepNodegroup(c *eksCluster, ng *nodegroup) time.Duration {
	soon := r.timings().InstancePending
	g := ng.group(r)
	switch ng.Status {
	case eksDeleting:
		if g != nil {
			return soon
		}
		r.removeNodegroup(c, ng)
		return 0
	case eksCreating:
		return r.stepCreating(ng, g)
	case eksUpdating:
		if ng.Next != nil {
			return r.stepVersion(ng, g)
		}
		ng.endUpdate(r, nil)
	}
	return 0
}

// removeNodegroup removes a nodegroup and what EKS made for it.
func (r *region) removeNodegroup(c *eksCluster, ng *nodegroup) {
	if t := r.EC2.LaunchTemplates.get(ng.Hidden); t != nil {
		r.removeTemplate(t)
	}
	delete(r.account().InstanceProfiles, "eks-"+ng.UUID)
	c.Nodegroups.remove(ng.Name)
}

func (r *region) stepCreating(ng *nodegroup, g *asgGroup) time.Duration {
	stalled := r.now().Sub(ng.Started) > stallNodegroup*r.timings().NodegroupCreate
	switch {
	case g == nil:
		ng.createFailed(r, "AutoScalingGroupNotFound", "The Auto Scaling group was not found.")
	case g.settled():
		ng.enter(r, eksActive)
	case g.FailuresTotal > 1:
		ng.createFailed(r, "AsgInstanceLaunchFailures", launchFailure(g.LastFailure))
	case stalled:
		ng.createFailed(r, "NodeCreationFailure", "Instances failed to join the kubernetes cluster")
	default:
		return r.timings().InstancePending
	}
	return 0
}

func (ng *nodegroup) createFailed(r *region, code, message string) {
	ng.Issues = []healthIssue{{code, message, []string{ng.Group}}}
	ng.enter(r, eksCreateFailed)
}

// endUpdate ends the update under way and makes the nodegroup ACTIVE again.
func (ng *nodegroup) endUpdate(r *region, fault *updateError) {
	ng.Updates[len(ng.Updates)-1].finish(fault)
	ng.enter(r, eksActive)
}

// stepVersion replaces nodes by such of the next version: with the strategy
// DEFAULT the new ones start before the old ones end, with MINIMAL the old ones end
// first.
func (r *region) stepVersion(ng *nodegroup, g *asgGroup) time.Duration {
	soon := r.timings().InstancePending
	next := ng.Next
	if g == nil || g.Deleting {
		r.failVersion(ng, nil, eksNodeCreation, "AutoScalingGroup "+ng.Group+" was not found")
		return 0
	}
	if !next.Started {
		if message := r.beginVersion(ng, g); message != "" {
			r.failVersion(ng, g, eksNodeCreation, message)
			return 0
		}
	}
	switch {
	case g.FailuresTotal > next.FailuresSeen+1:
		r.failVersion(ng, g, eksNodeCreation, "Couldn't proceed with upgrade process as new nodes are not joining node group "+ng.Name+": "+g.LastFailure)
		return 0
	case r.now().Sub(next.Progress) > stallNodegroup*r.timings().NodegroupUpdate:
		r.failVersion(ng, g, eksNodeCreation, "Couldn't proceed with upgrade process as new nodes are not joining node group "+ng.Name)
		return 0
	case !g.settled():
		return soon
	}
	if len(next.Batch) > 0 && !next.Force && ng.protected(r) {
		r.failVersion(ng, g, "PodEvictionFailure", "Reached max retries while trying to evict pods from nodes in node group "+ng.Name)
		return 0
	}
	for _, id := range next.Batch {
		if m := g.member(id); m != nil && m.active() {
			r.endMember(g, m, "an instance was taken out of service in response to a nodegroup update.")
		}
	}
	next.Batch, g.Surge, next.FailuresSeen = nil, 0, g.FailuresTotal
	match := r.matcherOf(next.Config)
	stale := keep(g.Members, func(m *member) bool { return m.active() && !match(m) })
	if len(stale) == 0 {
		if left := ng.Started.Add(r.timings().NodegroupUpdate).Sub(r.now()); left > 0 {
			return left
		}
		r.finishVersion(ng)
		return 0
	}
	r.replaceNodes(ng, g, stale)
	return soon
}

// beginVersion points the group at the new version, unless EC2 could not launch
// it: then it returns why.
func (r *region) beginVersion(ng *nodegroup, g *asgGroup) string {
	choices, err := r.choices(ng.Next.Config)
	if err == nil {
		err = r.tryLaunch(choices[0], g.Subnets)
	}
	if err != nil {
		return err.Message
	}
	ng.Next.Before, ng.Next.FailuresSeen, ng.Next.Progress, ng.Next.Started = g.Config, g.FailuresTotal, r.now(), true
	g.Config = ng.Next.Config
	r.retryNow(g)
	return ""
}

// replaceNodes starts the replacement of as many nodes as may be unavailable.
func (r *region) replaceNodes(ng *nodegroup, g *asgGroup, stale []*member) {
	size := int64(1)
	set(&size, ng.UpdateConfig.Max)
	if p := ng.UpdateConfig.Percentage; p != nil {
		size = max((g.Desired**p+99)/100, 1)
	}
	for _, m := range stale[:min(size, int64(len(stale)))] {
		if ng.UpdateConfig.Strategy == "MINIMAL" {
			r.endMember(g, m, "an instance was taken out of service in response to a nodegroup update.")
			continue
		}
		ng.Next.Batch = append(ng.Next.Batch, m.ID)
		g.Surge += m.Units
	}
	ng.Next.Progress = r.now()
	r.touch(g)
}

func (r *region) finishVersion(ng *nodegroup) {
	next := ng.Next
	if hidden := r.EC2.LaunchTemplates.get(ng.Hidden); hidden != nil {
		hidden.Default = ltData{"v": next.Config.Mixed.Base.Version}.integer("v")
	}
	if g := ng.group(r); g != nil {
		match := r.matcherOf(g.Config)
		for _, m := range keep(g.staying(), func(m *member) bool { return !match(m) }) {
			r.endWarm(g, m)
		}
		r.touch(g)
	}
	ng.Version, ng.Release, ng.Template, ng.Next = next.Version, next.Release, next.Template, nil
	ng.endUpdate(r, nil)
}

// failVersion ends a version update that cannot go on: the nodegroup is as it was
// before, and so is what its group launches.
func (r *region) failVersion(ng *nodegroup, g *asgGroup, code, message string) {
	if g != nil {
		g.Surge = 0
		if ng.Next.Started {
			g.Config = ng.Next.Before
		}
		r.retryNow(g)
	}
	ng.Next = nil
	ng.endUpdate(r, &updateError{code, message, []string{ng.Group}})
}
