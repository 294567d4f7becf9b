package orphan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/group"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
)

// drains reports whether the orphan is a group that is drained before its deletion.
func (c *orphans) drains(o orphan) (observed.Group, bool) {
	if o.claim.Resource != step.AutoScalingGroup || o.tags[observed.TagDelete] != model.DeleteDrain {
		return observed.Group{}, false
	}
	return c.in.State.Groups[o.claim.Name], true
}

// byForce reports whether the deletion of a group ends machines: machines that it has, will have,
// or keeps in its warm pool. A group that drains first has none.
func byForce(g observed.Group) bool {
	return g.Tags[observed.TagDelete].Value != model.DeleteDrain && (len(g.Instances) > 0 || g.DesiredCapacity > 0 || g.Options.WarmPool != nil)
}

// deletionChanges shows how a group is deleted. An approval for an empty group, or for one that
// drains, must not allow ending machines at once. The changes are the same for all steps of
// draining and also for held steps, so one approval covers them all.
func deletionChanges(g observed.Group) []step.Change {
	switch {
	case g.Tags[observed.TagDelete].Value == model.DeleteDrain:
		return []step.Change{{Field: observed.TagDelete, From: model.DeleteDrain}}
	case !byForce(g):
		return []step.Change{{Field: "forceDelete", To: false}}
	}
	return nil
}

// protected reports whether AWS would refuse the deletion, and adds a diagnostic. weir never lowers
// the protection of a group. It also does not drain such a group, because an empty group that
// cannot be deleted would be worse.
func (c *orphans) protected(o orphan) bool {
	if o.claim.Resource != step.AutoScalingGroup {
		return false
	}
	g := c.in.State.Groups[o.claim.Name]
	const lower = "; aws autoscaling update-auto-scaling-group does it"
	const drained = "put the tag " + observed.TagDelete + "=" + model.DeleteDrain + " on the group and weir drains it first"
	switch {
	case g.Options.DeletionProtection == "prevent-all-deletion":
		c.report(diag.Error, o, "deletion-protected", o.unwanted()+", and its deletion protection is prevent-all-deletion, so it stays",
			"set the protection to none, or to prevent-force-deletion if weir should drain the group"+lower)
	case byForce(g) && g.Options.DeletionProtection == "prevent-force-deletion":
		c.report(diag.Error, o, "deletion-protected", o.unwanted()+", and its deletion protection is prevent-force-deletion, so it stays as long as it has machines",
			drained+", or set the protection to none"+lower)
	case byForce(g) && retains(g):
		c.report(diag.Error, o, "deletion-protected", o.unwanted()+", and its instance lifecycle policy retains machines, so AWS does not delete it as long as it has some",
			drained+", or set the policy's terminateHookAbandon to terminate"+lower)
	default:
		return false
	}
	return true
}

// retains reports whether the group keeps machines whose termination hook was abandoned.
func retains(g observed.Group) bool {
	p := g.Options.InstanceLifecyclePolicy
	return p != nil && p.RetentionTriggers != nil && p.RetentionTriggers.TerminateHookAbandon == "retain"
}

// drainBegun reports whether the group's sizes are set to zero.
func drainBegun(g observed.Group) bool {
	return g.MinSize == 0 && g.MaxSize == 0 && g.DesiredCapacity == 0
}

// drain replaces the deletion of an orphan that drains first with the next action: set its sizes to
// zero, wait for its machines, or delete it. The progress is in AWS, so it continues after any
// interruption. It returns false if nothing is left to do except to report why machines stay.
func (c *orphans) drain(o orphan, s *step.Step) bool {
	g, drains := c.drains(o)
	switch {
	case !drains:
		return true
	case g.Options.WarmPool != nil && !g.Options.DeleteWarmPool:
		// The warm pool goes first, because machines might otherwise return there instead of
		// ending.
		s.Reason += "; its warm pool is deleted before it"
		s.Do = step.DeleteWarmPool{Group: g.Name}
		return true
	case !drainBegun(g):
		var zero int32
		s.Reason += "; its machines are drained before it is deleted"
		s.Do = step.UpdateGroup{Name: g.Name, MinSize: &zero, MaxSize: &zero, DesiredCapacity: &zero}
		return true
	case len(g.Instances) == 0 && g.Options.WarmPool == nil:
		return true
	case slices.Contains(group.SuspendedByWeir(g), "Terminate"):
		s.Reason += "; its process Terminate, which weir suspended, is resumed before it"
		s.Do = step.SetProcesses{Group: g.Name, Resume: []string{"Terminate"}}
		return true
	}
	if why := drainWaits(g); why != "" {
		c.report(diag.Warning, o, "drain-waits", o.unwanted()+" and it is drained, but "+why, "")
		return false
	}
	s.Reason += "; " + strconv.Itoa(len(g.Instances)) + " of its machines are still being drained"
	s.Later = true
	return true
}

// drainWaits explains why machines of a drained group stay, "" if nothing keeps them. Scale-in
// spares protected machines and machines on standby, and stops while the process Terminate is
// suspended. Somebody else set these up for a reason that weir does not know.
func drainWaits(g observed.Group) string {
	var kept, standby, retained []string
	staying := 0
	for _, i := range g.Instances {
		if i.Retained() {
			retained = append(retained, i.ID)
		}
		if i.Leaving() {
			continue
		}
		staying++
		switch {
		case i.StandsBy():
			standby = append(standby, i.ID)
		case i.Protected:
			kept = append(kept, i.ID)
		}
	}
	switch {
	case staying > 0 && slices.Contains(g.SuspendedProcesses, "Terminate"):
		return "its process Terminate is suspended, so no machine goes"
	case len(kept) > 0:
		return "its machines " + strings.Join(kept, ", ") + " are protected from scale-in"
	case len(standby) > 0:
		return "its machines " + strings.Join(standby, ", ") + " are on standby"
	case len(retained) > 0:
		return "its machines " + strings.Join(retained, ", ") + " are retained until somebody ends them, because their termination hook was abandoned"
	}
	return ""
}

// hasMachines reports whether the orphan counts against the limit of deletions of a target that
// still has pools. The remaining parts of an earlier deletion do not count again: a template whose
// machines are gone, a group that is drained.
func (c *orphans) hasMachines(o orphan) bool {
	if o.claim.Resource == step.LaunchTemplate {
		return false
	}
	g, drains := c.drains(o)
	return !drains || !drainBegun(g)
}
