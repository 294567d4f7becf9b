package plan

import (
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// Cluster API counts a machine as available once it has been ready for
// minReadySeconds. AWS does not tell since when an instance is in service, so
// weir remembers when it first saw it there; a process that has just started
// takes the launch time in its place, which is at most a boot too early.

// needLaunchTimes asks for the launch times of instances in service, in the
// first pass of a process and for pools with minReadySeconds only.
func (c *computation) needLaunchTimes() {
	if c.in.Memory.InService != nil || c.in.Nodes != nil {
		return
	}
	for i := range c.in.Set.Pools {
		if pool := &c.in.Set.Pools[i]; pool.MinReadySeconds > 0 {
			for _, in := range c.in.instancesOf(pool) {
				if _, read := c.in.State.Launched[in.ID]; in.Ready() && !read {
					c.needs.Launched = append(c.needs.Launched, in.ID)
				}
			}
		}
	}
}

// nodesUnread says that the workload cluster did not tell which nodes are ready.
func (c *computation) nodesUnread() {
	if c.in.Nodes != nil && c.in.Nodes.Err != nil {
		c.diags = append(c.diags, diag.Diagnostic{Severity: diag.Warning, Code: "nodes-unread",
			Summary: "the nodes of the workload cluster could not be read, so instances in service are counted as ready: " + c.in.Nodes.Err.Error(),
			Detail:  diag.Hint("nodes-unread")})
	}
}

// InService says since when the instances of pools with minReadySeconds, or whose
// nodes are read, are in service: what memory.InService is in the next pass. It is never nil.
func InService(in Input) map[string]time.Time {
	out := map[string]time.Time{}
	for i := range in.Set.Pools {
		if pool := &in.Set.Pools[i]; pool.MinReadySeconds > 0 || in.Nodes != nil {
			for _, instance := range in.instancesOf(pool) {
				if instance.Ready() {
					out[instance.ID] = in.inService(instance.ID)
				}
			}
		}
	}
	return out
}

// inService is since when an instance that is in service has been so.
func (in Input) inService(id string) time.Time {
	if since, seen := in.Memory.InService[id]; seen {
		return since
	}
	if launched := in.State.Launched[id]; !launched.IsZero() {
		return launched
	}
	return in.Now
}

// instancesOf are the instances of a pool: those of its group, or of the groups
// behind its nodegroups, of which it has two while one is replaced.
func (in Input) instancesOf(pool *intent.Pool) []observed.Instance {
	if pool.Group != nil {
		return in.State.Groups[pool.Group.Name].Instances
	}
	if pool.Nodegroup == nil {
		return nil
	}
	var out []observed.Instance
	for _, n := range in.nodegroupsOf(pool) {
		for _, g := range n.GroupNames {
			out = append(out, in.State.Groups[g].Instances...)
		}
	}
	return out
}

// machine says of an instance whether it is ready, and available besides.
func (in Input) machine(pool *intent.Pool, i observed.Instance) (ready, available bool) {
	since := time.Time{}
	if in.Nodes != nil && in.Nodes.Err == nil {
		node, joined := in.Nodes.ByInstance[i.ID]
		if ready = joined && node.Ready; ready {
			since = node.Since
		}
	} else if ready = i.Ready(); ready && pool.MinReadySeconds > 0 {
		since = in.inService(i.ID)
	}
	if !ready {
		return false, false
	}
	return true, in.Now.Sub(since) >= time.Duration(pool.MinReadySeconds)*time.Second
}
