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

// groupSearch finds the security groups that every node of the cluster has.
type groupSearch struct{ clusterSearch }

// answer returns the groups of the first source that has any: the target's configuration, the
// cluster's manifests, EKS, tags, the default VPC.
func (q *groupSearch) answer() observed.Answer {
	if len(q.Network.SecurityGroupIDs) > 0 {
		return groupsByID(q.question, q.Network.SecurityGroupIDs...)
	}
	q.tried = append(q.tried, "the target's configuration names no security groups")
	for _, try := range []func() (observed.Answer, step){q.fromOverrides, q.fromEKS, q.fromTags, q.fromDefaultVPC} {
		a, s := try()
		switch {
		case q.waits:
			return observed.Answer{}
		case s != passes:
			return a
		}
	}
	return problem("security-groups-unknown", q.unknown())
}

// unknown is the problem that no source has security groups.
func (q *groupSearch) unknown() string {
	return "weir cannot find out which security groups the pool's machines need; tried: " + strings.Join(q.tried, "; ") +
		". Set network.securityGroupIDs in the target's configuration, or network.securityGroupOverrides in the cluster's manifest"
}

// groupsAnswer returns security groups and the available facts about their VPCs.
func groupsAnswer(ids []string, vpcs ...string) observed.Answer {
	return observed.Answer{SecurityGroups: distinct(ids), VPCs: distinct(vpcs)}
}

// groupsByID returns the groups with some ids, and reads their VPCs. A group that AWS does not return
// has no known VPC.
func groupsByID(q *question, ids ...string) observed.Answer {
	var vpcs []string
	for _, id := range distinct(ids) {
		g, _, _ := know(q, q.facts.groups.get(id), observed.Answer{})
		vpcs = append(vpcs, g.VPCID)
	}
	return groupsAnswer(ids, vpcs...)
}

// fromOverrides returns the manifests' securityGroupOverrides. Nodes of EKS also get the group that
// EKS created for the cluster.
func (q *groupSearch) fromOverrides() (observed.Answer, step) {
	o := q.Cluster.Network.SecurityGroups
	if q.Cluster.EKSName == "" {
		if o[roleNode] == "" {
			return observed.Answer{}, q.pass("the cluster's manifest has no securityGroupOverrides for the role " + roleNode)
		}
		return groupsByID(q.question, o[roleNode], o[roleLB]), answers
	}
	if o[roleEKSNode] == "" {
		return observed.Answer{}, q.pass("the cluster's manifest has no securityGroupOverrides for the role " + roleEKSNode)
	}
	f := q.facts.clusters.get(q.Cluster.EKSName)
	c, a, ok := know(q.question, f, problem("cluster-not-found", "there is no EKS cluster "+q.Cluster.EKSName+", whose security group the nodes need"))
	if !ok {
		return a, stops
	}
	out := groupsByID(q.question, o[roleEKSNode])
	return groupsAnswer(append(out.SecurityGroups, c.ClusterSecurityGroupID), append(out.VPCs, c.VPCID)...), answers
}

// fromEKS returns the groups of the EKS cluster.
func (q *groupSearch) fromEKS() (observed.Answer, step) {
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

// fromTags returns the groups that Cluster API created for the cluster. Like Cluster API, it includes
// the group for load balancers if that exists.
func (q *groupSearch) fromTags() (observed.Answer, step) {
	name := q.Cluster.TagName
	if name == "" {
		return observed.Answer{}, q.pass("the cluster has no name to look for in tags")
	}
	f := q.facts.groupsOf.get(name)
	groups, a, ok := know(q.question, f, observed.Answer{})
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

// fromDefaultVPC returns the default group of the default VPC, with a warning or a problem.
func (q *groupSearch) fromDefaultVPC() (observed.Answer, step) {
	vpc, only, a, s := q.defaultVPC()
	if s != answers {
		return a, s
	}
	key := intent.JoinFilters([]intent.Filter{{Name: "group-name", Values: []string{"default"}}, {Name: "vpc-id", Values: []string{vpc}}})
	groups, a, ok := know(q.question, q.facts.groupsWith.get(key), problem("security-groups-unknown", "the default VPC "+vpc+" has no security group named default"))
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
	subnets, _, ok := know(q.question, q.facts.subnetsIn.get(vpc), observed.Answer{})
	if !ok {
		return observed.Answer{}, passes
	}
	out.Problem, out.Code, out.Lapsed = q.unknown(), "security-groups-unknown", subnetIDs(subnets)
	return out, answers
}

// groupsByFilter returns the groups that match the pool's filters.
func groupsByFilter(q *question) observed.Answer {
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
