package awsemu

import "slices"

// NodegroupFault makes a managed nodegroup ail as EKS reports it. The zero value of
// a selector matches every nodegroup.
type NodegroupFault struct {
	Cluster   string
	Nodegroup string

	// Issue is a code of EKS's health issues: while the fault is armed, the
	// nodegroup is DEGRADED and says so.
	Issue     string
	Message   string
	Resources []string
	// Evictions has pods that a disruption budget protects: an update of the
	// version fails with PodEvictionFailure once it has replaced nodes, unless it
	// is forced.
	Evictions bool
}

// AddNodegroup arms a fault of nodegroups and returns a function that removes it.
func (f *Faults) AddNodegroup(fault NodegroupFault) (remove func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	armed := &fault
	f.nodegroups = append(f.nodegroups, armed)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.nodegroups = slices.DeleteFunc(slices.Clone(f.nodegroups), func(n *NodegroupFault) bool { return n == armed })
	}
}

// ofNodegroup returns the faults of a nodegroup.
func (f *Faults) ofNodegroup(ng *nodegroup) []*NodegroupFault {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.nodegroups), func(n *NodegroupFault) bool {
		return n.Cluster != "" && n.Cluster != ng.Cluster || n.Nodegroup != "" && n.Nodegroup != ng.Name
	})
}

// scripted are the health issues that faults have the nodegroup report.
func (ng *nodegroup) scripted(r *region) []healthIssue {
	var out []healthIssue
	for _, f := range r.srv.faults.ofNodegroup(ng) {
		if f.Issue != "" {
			out = append(out, healthIssue{f.Issue, f.Message, orEmpty(f.Resources)})
		}
	}
	return out
}

// protected says that pods of the nodegroup cannot be evicted.
func (ng *nodegroup) protected(r *region) bool {
	return slices.ContainsFunc(r.srv.faults.ofNodegroup(ng), func(f *NodegroupFault) bool { return f.Evictions })
}
