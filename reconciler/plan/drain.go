package plan

import (
	"slices"

	"github.com/weir-gitops/weir/render/diag"
)

// TagDelete is "drain" on a group that is scaled to zero before it is deleted: the
// manifest with the annotation is gone by then. Without it a group is deleted with
// its machines, as Cluster API Provider AWS does it: AWS then ends them at once and
// drops their lifecycle actions.
const TagDelete = ownTagPrefix + "delete"

const deleteDrain = "drain"

// drains reports whether the orphan is a group that goes by draining.
func (c *computation) drains(o orphan) (Group, bool) {
	if o.claim.Resource != AutoScalingGroup || o.tags[TagDelete] != deleteDrain {
		return Group{}, false
	}
	return c.in.State.Groups[o.claim.Name], true
}

// drainChanges tell a deletion that drains from one that ends the machines at once:
// who approves the one has not approved the other. It is the same for all that
// draining takes, and held steps have it too, so that one approval is for the whole.
func drainChanges(g Group) []Change {
	if g.Tags[TagDelete].Value != deleteDrain {
		return nil
	}
	return []Change{{Field: TagDelete, From: deleteDrain}}
}

// drainBegun reports whether a group is set to hold no machine.
func drainBegun(g Group) bool { return g.MinSize == 0 && g.MaxSize == 0 && g.DesiredCapacity == 0 }

// drain turns the deletion of an orphan that goes by draining into what comes
// next: setting its sizes to zero, waiting for its machines, deleting it. AWS holds
// how far that has come, so it goes on wherever it was stopped. It returns false
// where there is nothing to do but to say what the machines wait for.
func (c *computation) drain(o orphan, s *Step) bool {
	g, drains := c.drains(o)
	switch {
	case !drains:
		return true
	case !drainBegun(g):
		var zero int32
		s.Reason += "; its machines are drained before it is deleted"
		s.Do = UpdateGroup{Name: g.Name, MinSize: &zero, MaxSize: &zero, DesiredCapacity: &zero}
		return true
	case len(g.Instances) == 0:
		return true
	}
	if why := drainWaits(g); why != "" {
		c.orphanNote(diag.Warning, o, "drain-waits", "nothing in Git wants it any more and it is drained, but "+why, "")
		return false
	}
	s.Reason += "; " + itoa(len(g.Instances)) + " of its machines are still being drained"
	s.Later = true
	return true
}

// drainWaits says what keeps the machines of a drained group from going, "" where
// nothing does. Scale-in spares protected machines and those on standby, and does
// not happen while the process Terminate is suspended. All of these somebody has
// set up for a reason that weir does not know.
func drainWaits(g Group) string {
	var kept, standby, retained []string
	staying := 0
	for _, i := range g.Instances {
		if i.retained() {
			retained = append(retained, i.ID)
		}
		if i.Leaving() {
			continue
		}
		staying++
		switch {
		case i.LifecycleState == "Standby" || i.LifecycleState == "EnteringStandby":
			standby = append(standby, i.ID)
		case i.Protected:
			kept = append(kept, i.ID)
		}
	}
	switch {
	case staying > 0 && slices.Contains(g.SuspendedProcesses, "Terminate"):
		return "its process Terminate is suspended, so no machine goes"
	case len(kept) > 0:
		return "its machines " + join(kept) + " are protected from scale-in"
	case len(standby) > 0:
		return "its machines " + join(standby) + " are on standby"
	case len(retained) > 0:
		return "its machines " + join(retained) + " are retained until somebody ends them, because their termination hook was abandoned"
	}
	return ""
}

// counted reports whether the orphan counts against the limit of deletions of a
// target that still has pools. What is left of a deletion that was within the limit
// does not count again: a template whose machines are gone, a group that is drained.
func (c *computation) counted(o orphan) bool {
	if o.claim.Resource == LaunchTemplate {
		return false
	}
	g, drains := c.drains(o)
	return !drains || !drainBegun(g)
}
