package resolve

import (
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// Roles of security groups, as Cluster API Provider AWS names them.
const (
	roleNode    = "node"
	roleLB      = "lb"
	roleEKSNode = "node-eks-additional"
)

// coreSecurityGroups answers which groups every node of the cluster has: the
// first that answers of the target's configuration, the cluster's manifests,
// EKS, tags, the default VPC.
func (q *question) coreSecurityGroups() observed.Answer {
	if len(q.Network.SecurityGroupIDs) > 0 {
		return q.givenGroups(q.Network.SecurityGroupIDs...)
	}
	q.tried = append(q.tried, "the target's configuration names no security groups")
	for _, try := range []func() (observed.Answer, step){q.overriddenGroups, q.groupsOfEKS, q.taggedGroups, q.defaultGroup} {
		a, s := try()
		switch {
		case q.waits:
			return observed.Answer{}
		case s != passes:
			return a
		}
	}
	return problem("security-groups-unknown", q.unknownGroups())
}

func (q *question) unknownGroups() string {
	return "weir cannot find out which security groups the pool's machines need; tried: " + strings.Join(q.tried, "; ") +
		". Set network.securityGroupIDs in the target's configuration, or network.securityGroupOverrides in the cluster's manifest"
}

// groupsAnswer names security groups, which are in the VPCs as far as they are known.
func groupsAnswer(ids []string, vpcs ...string) observed.Answer {
	return observed.Answer{SecurityGroups: distinct(ids), VPCs: distinct(vpcs)}
}

// givenGroups answers for groups whose ids a manifest names. AWS says in which VPCs they are; a
// group that it does not return stays unknown.
func (q *question) givenGroups(ids ...string) observed.Answer {
	var vpcs []string
	for _, id := range distinct(ids) {
		g, _, _ := know(q, q.facts.groups.get(id), observed.Answer{})
		vpcs = append(vpcs, g.VPCID)
	}
	return groupsAnswer(ids, vpcs...)
}

// overriddenGroups are the manifests' securityGroupOverrides. Nodes of EKS also get the
// group that EKS made for the cluster.
func (q *question) overriddenGroups() (observed.Answer, step) {
	o := q.Cluster.Network.SecurityGroups
	if q.Cluster.EKSName == "" {
		if o[roleNode] == "" {
			return observed.Answer{}, q.pass("the cluster's manifest has no securityGroupOverrides for the role " + roleNode)
		}
		return q.givenGroups(o[roleNode], o[roleLB]), answers
	}
	if o[roleEKSNode] == "" {
		return observed.Answer{}, q.pass("the cluster's manifest has no securityGroupOverrides for the role " + roleEKSNode)
	}
	f := q.facts.clusters.get(q.Cluster.EKSName)
	c, a, ok := know(q, f, problem("cluster-not-found", "there is no EKS cluster "+q.Cluster.EKSName+", whose security group the nodes need"))
	if !ok {
		return a, stops
	}
	out := q.givenGroups(o[roleEKSNode])
	return groupsAnswer(append(out.SecurityGroups, c.ClusterSecurityGroupID), append(out.VPCs, c.VPCID)...), answers
}

func (q *question) groupsOfEKS() (observed.Answer, step) {
	c, found, a, s := q.eks()
	if !found {
		return a, s
	}
	ids := append([]string{c.ClusterSecurityGroupID}, c.SecurityGroupIDs...)
	if out := groupsAnswer(ids, c.VPCID); len(out.SecurityGroups) > 0 {
		return out, answers
	}
	return observed.Answer{}, q.pass("the EKS cluster " + c.Name + " has no security group")
}

// taggedGroups are those that Cluster API made for the cluster. The one for load
// balancers is taken along where it exists, as Cluster API does.
func (q *question) taggedGroups() (observed.Answer, step) {
	name := q.Cluster.TagName
	if name == "" {
		return observed.Answer{}, q.pass("the cluster has no name to look for in tags")
	}
	f := q.facts.groupsOf.get(name)
	groups, a, ok := know(q, f, observed.Answer{})
	if !ok && f.state != absent {
		return a, stops
	}
	var found []SecurityGroup
	node := false
	for _, g := range groups {
		switch g.Tags[tagCAPARole] {
		case roleNode:
			node = true
			found = append(found, g)
		case roleLB:
			found = append(found, g)
		}
	}
	if !node {
		return observed.Answer{}, q.pass("no security group is tagged " + tagCAPACluster + name + " with the role " + roleNode)
	}
	return groupsAnswer(groupIDs(found), groupVPCs(found)...), answers
}

func (q *question) defaultGroup() (observed.Answer, step) {
	vpc, only, a, s := q.defaultVPC()
	if s != answers {
		return a, s
	}
	key := intent.JoinFilters([]intent.Filter{{Name: "group-name", Values: []string{"default"}}, {Name: "vpc-id", Values: []string{vpc}}})
	groups, a, ok := know(q, q.facts.groupsWith.get(key), problem("security-groups-unknown", "the default VPC "+vpc+" has no security group named default"))
	out := groupsAnswer(groupIDs(groups), vpc)
	switch {
	case !ok && !only:
		return observed.Answer{}, passes
	case !ok:
		return a, stops
	case only:
		out.Code = "default-network"
		out.Warning = "no security groups are named for the pool's cluster, so the group default of the default VPC " + vpc +
			" is used, which is the region's only VPC; set network.securityGroupIDs in the target's configuration"
		return out, answers
	}
	subnets, _, ok := know(q, q.facts.subnetsIn.get(vpc), observed.Answer{})
	if !ok {
		return observed.Answer{}, passes
	}
	out.Problem, out.Code, out.Lapsed = q.unknownGroups(), "security-groups-unknown", subnetIDs(subnets)
	return out, answers
}

func (q *question) securityGroupsByFilter() observed.Answer {
	groups, a, ok := know(q, q.facts.groupsWith.get(q.Lookup.Filters), problem("security-groups-not-found", "no security group matches the pool's filters ("+q.Lookup.Filters+")"))
	if !ok {
		return a
	}
	return groupsAnswer(groupIDs(groups), groupVPCs(groups)...)
}

func groupIDs(in []SecurityGroup) []string {
	out := make([]string, 0, len(in))
	for _, g := range in {
		out = append(out, g.ID)
	}
	return out
}

func groupVPCs(in []SecurityGroup) []string {
	out := make([]string, 0, len(in))
	for _, g := range in {
		out = append(out, g.VPCID)
	}
	return out
}
