package plan

import (
	"github.com/weir-gitops/weir/render/diag"
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
			for _, in := range c.in.InstancesOf(pool) {
				if _, read := c.in.State.Launched[in.ID]; in.Ready() && !read {
					c.Needs.Launched = append(c.Needs.Launched, in.ID)
				}
			}
		}
	}
}

// nodesUnread says that the workload cluster did not tell which nodes are ready.
func (c *computation) nodesUnread() {
	if c.in.Nodes != nil && c.in.Nodes.Err != nil {
		c.Diags = append(c.Diags, diag.Diagnostic{Severity: diag.Warning, Code: "nodes-unread",
			Summary: "the nodes of the workload cluster could not be read, so instances in service are counted as ready: " + c.in.Nodes.Err.Error(),
			Detail:  diag.Hint("nodes-unread")})
	}
}
