package resolve

import (
	"slices"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// clusterSearch looks for the network of the pool's cluster in one source after the other.
type clusterSearch struct {
	*question
	// tried lists in order why the earlier sources have no answer.
	tried []string
}

// step is the result of one source of a search.
type step int

const (
	// passes: the source does not apply, so the search continues.
	passes step = iota
	// answers: the source has the answer.
	answers
	// stops: the source applies and has a problem, which ends the search.
	stops
)

// pass notes why a source does not apply.
func (q *clusterSearch) pass(why string) step {
	q.tried = append(q.tried, why)
	return passes
}

// eks returns the pool's EKS cluster. found is false if the pool's cluster is no EKS cluster or does
// not exist.
func (q *clusterSearch) eks() (c observed.EKSCluster, found bool, a observed.Answer, s step) {
	name := q.Cluster.EKSName
	if name == "" {
		return c, false, a, q.pass("the cluster is no EKS cluster")
	}
	f := q.facts.clusters.get(name)
	if f.state == absent {
		return c, false, a, q.pass("there is no EKS cluster " + name)
	}
	c, a, ok := know(q.question, f, observed.Answer{})
	if !ok {
		return c, false, a, stops
	}
	return c, true, a, answers
}

// defaultVPC returns the region's default VPC. only says that the region has no other VPC, so that
// nobody designed another network for the cluster. If an EKS cluster does not exist, no network is
// right for its nodes, so the search stops.
func (q *clusterSearch) defaultVPC() (id string, only bool, a observed.Answer, s step) {
	if name := q.Cluster.EKSName; name != "" && q.facts.clusters.get(name).state == absent {
		return "", false, noCluster(name), stops
	}
	vpcs, a, ok := know(q.question, q.facts.vpcs.get(""), observed.Answer{})
	if !ok && a.Problem != "" {
		return "", false, a, stops
	}
	i := slices.IndexFunc(vpcs, func(v VPC) bool { return v.Default })
	if i < 0 || len(vpcs) > 1 {
		q.tried = append(q.tried, "the default VPC is not the region's only one")
	}
	if i < 0 {
		return "", false, a, passes
	}
	return vpcs[i].ID, len(vpcs) == 1, a, answers
}
