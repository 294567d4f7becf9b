package resolve

import (
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// candidates are the subnets of a network, from which a pool uses some.
type candidates struct {
	subnets []Subnet
	// source names the origin of the subnets, for errors.
	source string
	// all makes a pool without zones use all subnets, because a person chose them for it.
	all     bool
	warning string
	// lapsed is the problem that the default VPC is not the region's only one.
	lapsed string
	// public holds ids that the manifests call public.
	public map[string]bool
}

// subnetSearch finds the subnets of the network of the pool's cluster.
type subnetSearch struct{ clusterSearch }

// find returns the subnets of the first source that has any: the target's configuration, the
// cluster's manifests, EKS, tags, the default VPC.
func (q *subnetSearch) find() (candidates, observed.Answer, bool) {
	for _, try := range []func() (candidates, observed.Answer, step){q.fromTarget, q.fromManifests, q.fromEKS, q.fromTags, q.fromDefaultVPC} {
		c, a, s := try()
		switch {
		case q.waits:
			return candidates{}, observed.Answer{}, false
		case s == stops:
			return candidates{}, a, false
		case s == answers:
			return c, observed.Answer{}, true
		}
	}
	return candidates{}, problem("network-unknown", q.unknown()), false
}

// unknown is the problem that no source has subnets.
func (q *subnetSearch) unknown() string {
	return "weir cannot find out in which subnets the pool's machines go; tried: " + strings.Join(q.tried, "; ") +
		". Name subnets in the pool, or set network.subnetIDs in the target's configuration"
}

// fromTarget reads the network of the target's configuration.
func (q *subnetSearch) fromTarget() (candidates, observed.Answer, step) {
	if len(q.Network.SubnetIDs) > 0 {
		found, a, ok := subnetsByID(q.question, q.Network.SubnetIDs, "the target's configuration names it")
		if !ok {
			return candidates{}, a, stops
		}
		return candidates{subnets: found, all: true, source: "the target's configuration"}, a, answers
	}
	if q.Network.VPCID == "" {
		return candidates{}, observed.Answer{}, q.pass("the target's configuration names no network")
	}
	return q.fromVPC(q.Network.VPCID, "the VPC "+q.Network.VPCID+" of the target's configuration")
}

// fromVPC returns the subnets of a VPC.
func (q *subnetSearch) fromVPC(id, source string) (candidates, observed.Answer, step) {
	found, a, ok := know(q.question, q.facts.subnetsIn.get(id), problem("subnets-not-found", source+" has no subnet"))
	if !ok {
		return candidates{}, a, stops
	}
	return candidates{subnets: found, source: source}, a, answers
}

// fromManifests reads spec.network of the cluster's objects. The manifests do not have the ids of
// subnets that Cluster API creates.
func (q *subnetSearch) fromManifests() (candidates, observed.Answer, step) {
	n := q.Cluster.Network
	c := candidates{source: "the cluster's manifests", public: map[string]bool{}}
	var ids []string
	for _, s := range n.Subnets {
		if strings.HasPrefix(s.ID, "subnet-") {
			ids = append(ids, s.ID)
			c.public[s.ID] = s.Public
		}
	}
	if len(ids) > 0 {
		found, a, ok := subnetsByID(q.question, ids, "the cluster's manifests name it")
		if !ok {
			return candidates{}, a, stops
		}
		c.subnets = found
		return c, a, answers
	}
	if n.VPCID == "" {
		return candidates{}, observed.Answer{}, q.pass("the cluster's manifests name no subnet by id and no VPC")
	}
	return q.fromVPC(n.VPCID, "the VPC "+n.VPCID+" of the cluster's manifests")
}

// fromEKS returns the subnets of the EKS cluster.
func (q *subnetSearch) fromEKS() (candidates, observed.Answer, step) {
	c, found, a, s := q.eks()
	if !found {
		return candidates{}, a, s
	}
	if len(c.SubnetIDs) == 0 {
		return candidates{}, a, q.pass("the EKS cluster " + c.Name + " has no subnets")
	}
	subnets, a, ok := subnetsByID(q.question, c.SubnetIDs, "the EKS cluster "+c.Name+" uses it")
	if !ok {
		return candidates{}, a, stops
	}
	return candidates{subnets: subnets, source: "the EKS cluster " + c.Name}, a, answers
}

// fromTags returns the subnets that are tagged with the cluster's name.
func (q *subnetSearch) fromTags() (candidates, observed.Answer, step) {
	name := q.Cluster.TagName
	if name == "" {
		return candidates{}, observed.Answer{}, q.pass("the cluster has no name to look for in tags")
	}
	f := q.facts.subnetsOf.get(name)
	if f.state == absent {
		return candidates{}, observed.Answer{}, q.pass("no subnet is tagged " + tagCAPACluster + name + " or " + tagKubernetes + name)
	}
	found, a, ok := know(q.question, f, observed.Answer{})
	if !ok {
		return candidates{}, a, stops
	}
	return candidates{subnets: found, source: "the subnets tagged for the cluster " + name}, a, answers
}

// fromDefaultVPC returns the subnets of the default VPC, with a warning or a problem.
func (q *subnetSearch) fromDefaultVPC() (candidates, observed.Answer, step) {
	vpc, only, a, s := q.defaultVPC()
	if s != answers {
		return candidates{}, a, s
	}
	c, a, s := q.fromVPC(vpc, "the default VPC "+vpc)
	switch {
	case only:
		c.warning = "no network is named for the pool's cluster, so the subnets of the default VPC " + vpc +
			" are used, which is the region's only VPC; name subnets in the pool or in the target's configuration"
	case s == answers:
		c.lapsed = q.unknown()
	case !q.waits: // the problem of the default VPC is not the one to solve
		s = passes
	}
	return c, a, s
}
