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

// drains reports whether the orphan is a group that weir deletes by draining.
func (c *orphans) drains(o orphan) (observed.Group, bool) {
	if o.claim.Resource != step.AutoScalingGroup || o.tags[observed.TagDelete] != model.DeleteDrain {
		return observed.Group{}, false
	}
	return c.in.State.Groups[o.claim.Name], true
}

// byForce reports whether the deletion of a group ends machines: those that it has,
// is about to have, or keeps in its warm pool. A group that is drained has none.
func byForce(g observed.Group) bool {
	return g.Tags[observed.TagDelete].Value != model.DeleteDrain && (len(g.Instances) > 0 || g.DesiredCapacity > 0 || g.Options.WarmPool != nil)
}

// deletionChanges show how a group goes: who approves one of an empty group, or one
// that drains, has not approved that machines are ended at once. They are the same for
// all steps of draining, and held steps carry them too, so that one approval is for the
// whole.
func deletionChanges(g observed.Group) []step.Change {
	switch {
	case g.Tags[observed.TagDelete].Value == model.DeleteDrain:
		return []step.Change{{Field: observed.TagDelete, From: model.DeleteDrain}}
	case !byForce(g):
		return []step.Change{{Field: "forceDelete", To: false}}
	}
	return nil
}

// protected reports whether AWS would not let the orphan go, and says so: a group that
// is protected from it, whose protection weir never lowers. Nothing of it is changed,
// for a group that is drained and then stays would be the worst of both.
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
			"set the protection to none, or to prevent-force-deletion where the group is to be drained"+lower)
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

// drainBegun reports whether a group is set to hold no machine.
func drainBegun(g observed.Group) bool {
	return g.MinSize == 0 && g.MaxSize == 0 && g.DesiredCapacity == 0
}

// drain replaces the deletion of an orphan that is deleted by draining with the next action: set its
// sizes to zero, wait for its machines, or delete it. AWS holds the progress, so it continues after
// any interruption. It returns false if nothing is left to do but to report what the machines wait
// for.
func (c *orphans) drain(o orphan, s *step.Step) bool {
	g, drains := c.drains(o)
	switch {
	case !drains:
		return true
	case g.Options.WarmPool != nil && !g.Options.DeleteWarmPool:
		// Before its machines, which might otherwise go there instead of ending.
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

// drainWaits says what keeps the machines of a drained group from going, "" where
// nothing does. Scale-in spares protected machines and those on standby, and does
// not happen while the process Terminate is suspended. Others have set up all of these
// for a reason that weir does not know.
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

// hasMachines reports whether the orphan counts against the limit of deletions of a
// target that still has pools. The rest of a deletion that was within the limit does
// not count again: a template whose machines are gone, a group that is drained.
func (c *orphans) hasMachines(o orphan) bool {
	if o.claim.Resource == step.LaunchTemplate {
		return false
	}
	g, drains := c.drains(o)
	return !drains || !drainBegun(g)
}
