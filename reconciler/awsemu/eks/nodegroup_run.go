package eks

import (
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/asg"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// stallNodegroup is the multiple of its usual duration after which a state fails.
const stallNodegroup = 10

// nodeCreation is the code of an update whose nodes do not start.
const nodeCreation = "NodeCreationFailure"

// stepNodegroup advances a nodegroup and returns when to run the next step. 0 means never.
func (r *Region) stepNodegroup(c *Cluster, ng *nodegroup) time.Duration {
	soon := r.Timings().InstancePending
	g := ng.group(r)
	switch ng.Status {
	case deleting:
		if g != nil {
			return soon
		}
		r.removeNodegroup(c, ng)
		return 0
	case creating:
		return r.stepCreating(ng, g)
	case updating:
		if ng.Next != nil {
			return r.stepVersion(ng, g)
		}
		ng.endUpdate(r, nil)
	}
	return 0
}

// removeNodegroup removes a nodegroup and everything that EKS created for it.
func (r *Region) removeNodegroup(c *Cluster, ng *nodegroup) {
	if t := r.ec2.LaunchTemplates.Get(ng.Hidden); t != nil {
		r.ec2.RemoveTemplate(t)
	}
	delete(r.iam.Entities.InstanceProfiles, "eks-"+ng.UUID)
	c.Nodegroups.Remove(ng.Name)
}

func (r *Region) stepCreating(ng *nodegroup, g *asg.Group) time.Duration {
	stalled := r.Now().Sub(ng.Started) > stallNodegroup*r.Timings().NodegroupCreate
	switch {
	case g == nil:
		ng.createFailed(r, "AutoScalingGroupNotFound", "The Auto Scaling group was not found.")
	case g.Steady():
		ng.enter(r, active)
	case g.FailuresTotal > 1:
		ng.createFailed(r, "AsgInstanceLaunchFailures", asg.LaunchFailure(g.LastFailure))
	case stalled:
		ng.createFailed(r, "NodeCreationFailure", "Instances failed to join the kubernetes cluster")
	default:
		return r.Timings().InstancePending
	}
	return 0
}

func (ng *nodegroup) createFailed(r *Region, code, message string) {
	ng.Issues = []healthIssue{{code, message, []string{ng.Group}}}
	ng.enter(r, createFailed)
}

// endUpdate ends the current update and makes the nodegroup ACTIVE again.
func (ng *nodegroup) endUpdate(r *Region, fault *updateError) {
	ng.Updates[len(ng.Updates)-1].finish(fault)
	ng.enter(r, active)
}

// stepVersion replaces nodes with nodes of the next version. With the strategy DEFAULT, the new nodes start
// before the old ones end. With MINIMAL, the old nodes end first.
func (r *Region) stepVersion(ng *nodegroup, g *asg.Group) time.Duration {
	soon := r.Timings().InstancePending
	next := ng.Next
	if g == nil || g.Deleting {
		r.failVersion(ng, nil, nodeCreation, "AutoScalingGroup "+ng.Group+" was not found")
		return 0
	}
	if !next.Started {
		if message := r.beginVersion(ng, g); message != "" {
			r.failVersion(ng, g, nodeCreation, message)
			return 0
		}
	}
	switch {
	case g.FailuresTotal > next.FailuresSeen+1:
		r.failVersion(ng, g, nodeCreation, "Couldn't proceed with upgrade process as new nodes are not joining node group "+ng.Name+": "+g.LastFailure)
		return 0
	case r.Now().Sub(next.Progress) > stallNodegroup*r.Timings().NodegroupUpdate:
		r.failVersion(ng, g, nodeCreation, "Couldn't proceed with upgrade process as new nodes are not joining node group "+ng.Name)
		return 0
	case !g.Steady():
		return soon
	}
	if len(next.Batch) > 0 && !next.Force && ng.protected(r) {
		r.failVersion(ng, g, "PodEvictionFailure", "Reached max retries while trying to evict pods from nodes in node group "+ng.Name)
		return 0
	}
	for _, id := range next.Batch {
		if m := g.Member(id); m != nil && m.Active() {
			r.asg.EndMember(g, m, "an instance was taken out of service in response to a nodegroup update.")
		}
	}
	next.Batch, g.Surge, next.FailuresSeen = nil, 0, g.FailuresTotal
	match := asg.MatcherOf(r.ec2, next.Config)
	stale := asg.Keep(g.Members, func(m *asg.Member) bool { return m.Active() && !match(m) })
	if len(stale) == 0 {
		if left := ng.Started.Add(r.Timings().NodegroupUpdate).Sub(r.Now()); left > 0 {
			return left
		}
		r.finishVersion(ng)
		return 0
	}
	r.replaceNodes(ng, g, stale)
	return soon
}

// beginVersion switches the group to the new version. If EC2 cannot launch it, beginVersion returns the
// reason instead.
func (r *Region) beginVersion(ng *nodegroup, g *asg.Group) string {
	choices, err := asg.Choices(r.ec2, ng.Next.Config)
	if err == nil {
		err = asg.TryLaunch(r.ec2, choices[0], g.Subnets)
	}
	if err != nil {
		return err.Message
	}
	ng.Next.Before, ng.Next.FailuresSeen, ng.Next.Progress, ng.Next.Started = g.Config, g.FailuresTotal, r.Now(), true
	g.Config = ng.Next.Config
	r.asg.RetryNow(g)
	return ""
}

// replaceNodes starts the replacement of as many nodes as may be unavailable.
func (r *Region) replaceNodes(ng *nodegroup, g *asg.Group, stale []*asg.Member) {
	size := int64(1)
	asg.Set(&size, ng.UpdateConfig.Max)
	if p := ng.UpdateConfig.Percentage; p != nil {
		size = max((g.Desired**p+99)/100, 1)
	}
	for _, m := range stale[:min(size, int64(len(stale)))] {
		if ng.UpdateConfig.Strategy == "MINIMAL" {
			r.asg.EndMember(g, m, "an instance was taken out of service in response to a nodegroup update.")
			continue
		}
		ng.Next.Batch = append(ng.Next.Batch, m.ID)
		g.Surge += m.Units
	}
	ng.Next.Progress = r.Now()
	r.asg.Touch(g)
}

func (r *Region) finishVersion(ng *nodegroup) {
	next := ng.Next
	if hidden := r.ec2.LaunchTemplates.Get(ng.Hidden); hidden != nil {
		hidden.Default = wire.Data{"v": next.Config.Mixed.Base.Version}.Integer("v")
	}
	if g := ng.group(r); g != nil {
		match := asg.MatcherOf(r.ec2, g.Config)
		for _, m := range asg.Keep(g.Staying(), func(m *asg.Member) bool { return !match(m) }) {
			asg.Warm(r.asg, g).End(m)
		}
		r.asg.Touch(g)
	}
	ng.Version, ng.Release, ng.Template, ng.Next = next.Version, next.Release, next.Template, nil
	ng.endUpdate(r, nil)
}

// failVersion ends a version update that cannot continue, and restores the nodegroup and the launch settings
// of its group.
func (r *Region) failVersion(ng *nodegroup, g *asg.Group, code, message string) {
	if g != nil {
		g.Surge = 0
		if ng.Next.Started {
			g.Config = ng.Next.Before
		}
		r.asg.RetryNow(g)
	}
	ng.Next = nil
	ng.endUpdate(r, &updateError{code, message, []string{ng.Group}})
}
