package eks

import "slices"

// NodegroupFault makes a managed nodegroup ail as EKS reports it. The zero value of
// a selector matches every nodegroup.
type NodegroupFault struct {
	Cluster   string `json:"cluster"`
	Nodegroup string `json:"nodegroup"`

	// Issue is a code of EKS's health issues: while the fault is armed, the
	// nodegroup is DEGRADED and says so.
	Issue     string   `json:"issue"`
	Message   string   `json:"message"`
	Resources []string `json:"resources"`
	// Evictions puts pods there that a disruption budget protects: an update of the
	// version fails with PodEvictionFailure once it has replaced nodes, unless it
	// is forced.
	Evictions bool `json:"evictions"`
}

// scripted are the health issues that faults make the nodegroup report.
func (ng *nodegroup) scripted(r *Region) []healthIssue {
	var out []healthIssue
	for _, f := range r.faultsOf(ng) {
		if f.Issue != "" {
			out = append(out, healthIssue{f.Issue, f.Message, orEmpty(f.Resources)})
		}
	}
	return out
}

// protected says that pods of the nodegroup cannot be evicted.
func (ng *nodegroup) protected(r *Region) bool {
	return slices.ContainsFunc(r.faultsOf(ng), func(f *NodegroupFault) bool { return f.Evictions })
}

// faultsOf returns the faults of a nodegroup.
func (r *Region) faultsOf(ng *nodegroup) []*NodegroupFault {
	return slices.DeleteFunc(slices.Clone(r.nodegroupFaults.List()), func(n *NodegroupFault) bool {
		return n.Cluster != "" && n.Cluster != ng.Cluster || n.Nodegroup != "" && n.Nodegroup != ng.Name
	})
}
