package eks

import "slices"

// NodegroupFault causes health issues in a managed nodegroup. An empty selector matches every nodegroup.
type NodegroupFault struct {
	Cluster   string `json:"cluster"`
	Nodegroup string `json:"nodegroup"`

	// Issue is a code of EKS's health issues. While the fault is armed, the nodegroup is DEGRADED and
	// reports the issue.
	Issue     string   `json:"issue"`
	Message   string   `json:"message"`
	Resources []string `json:"resources"`
	// Evictions protects pods with a disruption budget. A version update then fails with PodEvictionFailure
	// after it has replaced nodes, unless it is forced.
	Evictions bool `json:"evictions"`
}

// scripted returns the health issues that faults cause.
func (ng *nodegroup) scripted(r *Region) []healthIssue {
	var out []healthIssue
	for _, f := range r.faultsOf(ng) {
		if f.Issue != "" {
			out = append(out, healthIssue{f.Issue, f.Message, orEmpty(f.Resources)})
		}
	}
	return out
}

// protected reports whether the nodegroup has pods that cannot be evicted.
func (ng *nodegroup) protected(r *Region) bool {
	return slices.ContainsFunc(r.faultsOf(ng), func(f *NodegroupFault) bool { return f.Evictions })
}

// faultsOf returns the faults of a nodegroup.
func (r *Region) faultsOf(ng *nodegroup) []*NodegroupFault {
	return slices.DeleteFunc(slices.Clone(r.nodegroupFaults.List()), func(n *NodegroupFault) bool {
		return n.Cluster != "" && n.Cluster != ng.Cluster || n.Nodegroup != "" && n.Nodegroup != ng.Name
	})
}
