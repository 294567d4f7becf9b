package cloudtest

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

func nodegroupContracts() []contract {
	return []contract{
		{"a nodegroup comes back as it was made", nil, nodegroupComesBack},
		{"a name is taken once", nil, takenNodegroupName},
		{"what is not there is not found", nil, missingNodegroups},
		{"a cluster that is not there has no list", []Capability{MissingResources}, missingCluster},
		{"nodegroups come in pages", nil, nodegroupPages},
		{"a nodegroup passes through states", []Capability{NodegroupStates}, nodegroupStates},
		{"a tagged group is behind a nodegroup", []Capability{NodegroupGroups}, groupBehind},
		{"a config update is an object, one at a time", []Capability{NodegroupUpdates, NodegroupStates}, configUpdate},
		{"a version update moves to a template version", []Capability{NodegroupUpdates, NodegroupStates}, versionUpdate},
		{"a nodegroup is tagged by ARN", []Capability{NodegroupTags}, nodegroupTags},
		{"a template excludes what it decides", nil, nodegroupTemplateRules},
		{"instance types stand in one place", []Capability{NodegroupStates}, nodegroupTypesTwice},
		{"an update of nothing is refused", []Capability{NodegroupUpdates, NodegroupStates}, nodegroupNothing},
		{"a repeated token makes one nodegroup", []Capability{ClientTokens}, nodegroupTokens},
	}
}

// cluster returns the name of the cluster for nodegroups.
func (e *env) cluster() string {
	e.Helper()
	if e.h.Cluster != "" {
		return e.h.Cluster
	}
	name := e.name("cluster")
	_, err := e.eks.CreateCluster(e.ctx, &eks.CreateClusterInput{Name: aws.String(name), RoleArn: aws.String(e.role()), ResourcesVpcConfig: &types.VpcConfigRequest{SubnetIds: e.subnets()}})
	e.must(err)
	e.Cleanup(func() {
		// It may still be in use. Then it stays.
		_, _ = e.eks.DeleteCluster(e.background(), &eks.DeleteClusterInput{Name: aws.String(name)})
	})
	e.eventually("the cluster to be ACTIVE", func() bool {
		out, err := e.eks.DescribeCluster(e.ctx, &eks.DescribeClusterInput{Name: aws.String(name)})
		e.must(err)
		return out.Cluster.Status == types.ClusterStatusActive
	})
	return name
}

// role returns the role of the nodes.
func (e *env) role() string {
	e.Helper()
	const name = "nodes.cluster-api-provider-aws.sigs.k8s.io"
	if out, err := e.iam.GetRole(e.ctx, &iam.GetRoleInput{RoleName: aws.String(name)}); err == nil {
		return *out.Role.Arn
	}
	who, err := e.sts.GetCallerIdentity(e.ctx, &sts.GetCallerIdentityInput{})
	e.must(err)
	return "arn:aws:iam::" + *who.Account + ":role/" + name
}

func (e *env) nodegroupInput(cluster, suffix string) *eks.CreateNodegroupInput {
	return &eks.CreateNodegroupInput{
		ClusterName: aws.String(cluster), NodegroupName: aws.String(e.name(suffix)), NodeRole: aws.String(e.role()), Subnets: e.subnets(),
		ScalingConfig: &types.NodegroupScalingConfig{MinSize: aws.Int32(0), MaxSize: aws.Int32(3), DesiredSize: aws.Int32(1)},
		InstanceTypes: []string{"m5.large"}, AmiType: types.AMITypesAl2023X8664Standard, CapacityType: types.CapacityTypesOnDemand,
		Labels: map[string]string{"a": "1"}, Taints: []types.Taint{{Key: aws.String("k"), Value: aws.String("v"), Effect: types.TaintEffectNoSchedule}},
		Tags: map[string]string{tagMark: e.mark},
	}
}

// nodegroup creates a nodegroup that is deleted after the case.
func (e *env) nodegroup(in *eks.CreateNodegroupInput) *types.Nodegroup {
	e.Helper()
	out, err := e.eks.CreateNodegroup(e.ctx, in)
	e.must(err)
	e.Cleanup(func() {
		// The case may have deleted it already.
		_, _ = e.eks.DeleteNodegroup(e.background(), &eks.DeleteNodegroupInput{ClusterName: in.ClusterName, NodegroupName: in.NodegroupName})
	})
	return out.Nodegroup
}

func (e *env) describeNodegroup(n *types.Nodegroup) *types.Nodegroup {
	e.Helper()
	out, err := e.eks.DescribeNodegroup(e.ctx, &eks.DescribeNodegroupInput{ClusterName: n.ClusterName, NodegroupName: n.NodegroupName})
	e.must(err)
	return out.Nodegroup
}

func (e *env) active(n *types.Nodegroup) *types.Nodegroup {
	e.Helper()
	e.eventually("the nodegroup to be ACTIVE", func() bool { n = e.describeNodegroup(n); return n.Status == types.NodegroupStatusActive })
	return n
}

func nodegroupComesBack(e *env) {
	n := e.active(e.nodegroup(e.nodegroupInput(e.cluster(), "a")))
	e.equal("sizes", []int32{0, 3, 1}, []int32{*n.ScalingConfig.MinSize, *n.ScalingConfig.MaxSize, *n.ScalingConfig.DesiredSize})
	e.equal("labels", map[string]string{"a": "1"}, n.Labels)
	e.equal("tags", map[string]string{tagMark: e.mark}, n.Tags)
	if len(n.Taints) != 1 || *n.Taints[0].Key != "k" || n.Taints[0].Effect != types.TaintEffectNoSchedule {
		e.Errorf("taints %+v", n.Taints)
	}
	subnets := slices.Sorted(slices.Values(n.Subnets))
	e.equal("subnets", e.subnets(), subnets)
	e.equal("what it runs", []any{types.AMITypesAl2023X8664Standard, types.CapacityTypesOnDemand, []string{"m5.large"}, e.role()}, []any{n.AmiType, n.CapacityType, n.InstanceTypes, *n.NodeRole})
	if aws.ToString(n.NodegroupArn) == "" || n.CreatedAt == nil {
		e.Errorf("ARN %v, created %v", n.NodegroupArn, n.CreatedAt)
	}
}

func takenNodegroupName(e *env) {
	in := e.nodegroupInput(e.cluster(), "a")
	e.nodegroup(in)
	_, err := e.eks.CreateNodegroup(e.ctx, e.nodegroupInput(*in.ClusterName, "a"))
	e.refused(err, "ResourceInUseException")
}

func missingNodegroups(e *env) {
	none := aws.String(e.name("none"))
	_, err := e.eks.DescribeCluster(e.ctx, &eks.DescribeClusterInput{Name: none})
	e.refused(err, "ResourceNotFoundException")
	cluster := aws.String(e.cluster())
	_, err = e.eks.DescribeNodegroup(e.ctx, &eks.DescribeNodegroupInput{ClusterName: cluster, NodegroupName: none})
	e.refused(err, "ResourceNotFoundException")
	_, err = e.eks.DeleteNodegroup(e.ctx, &eks.DeleteNodegroupInput{ClusterName: cluster, NodegroupName: none})
	e.refused(err, "ResourceNotFoundException")
}

func missingCluster(e *env) {
	_, err := e.eks.ListNodegroups(e.ctx, &eks.ListNodegroupsInput{ClusterName: aws.String(e.name("none"))})
	e.refused(err, "ResourceNotFoundException")
}

func nodegroupPages(e *env) {
	cluster := e.cluster()
	want := []string{e.name("a"), e.name("b"), e.name("c")}
	for _, s := range []string{"a", "b", "c"} {
		e.nodegroup(e.nodegroupInput(cluster, s))
	}
	in := &eks.ListNodegroupsInput{ClusterName: aws.String(cluster), MaxResults: aws.Int32(2)}
	var got []string
	for range 1000 {
		out, err := e.eks.ListNodegroups(e.ctx, in)
		e.must(err)
		if len(out.Nodegroups) > 2 {
			e.Errorf("a page of two holds %d", len(out.Nodegroups))
		}
		for _, n := range out.Nodegroups {
			if strings.Contains(n, e.mark) {
				got = append(got, n)
			}
		}
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			break
		}
	}
	slices.Sort(got)
	e.equal("all pages", want, got)
}

func nodegroupStates(e *env) {
	n := e.nodegroup(e.nodegroupInput(e.cluster(), "a"))
	e.equal("at first", types.NodegroupStatusCreating, e.describeNodegroup(n).Status)
	e.active(n)
	_, err := e.eks.DeleteNodegroup(e.ctx, &eks.DeleteNodegroupInput{ClusterName: n.ClusterName, NodegroupName: n.NodegroupName})
	e.must(err)
	e.equal("at last", types.NodegroupStatusDeleting, e.describeNodegroup(n).Status)
	e.eventually("the nodegroup to be gone", func() bool {
		_, err := e.eks.DescribeNodegroup(e.ctx, &eks.DescribeNodegroupInput{ClusterName: n.ClusterName, NodegroupName: n.NodegroupName})
		return code(err) == "ResourceNotFoundException"
	})
}

func groupBehind(e *env) {
	n := e.active(e.nodegroup(e.nodegroupInput(e.cluster(), "a")))
	if n.Resources == nil || len(n.Resources.AutoScalingGroups) != 1 {
		e.Fatalf("resources %+v", n.Resources)
	}
	name := *n.Resources.AutoScalingGroups[0].Name
	g := e.inService(name, 1)
	e.equal("sizes", []int32{0, 3, 1}, []int32{*g.MinSize, *g.MaxSize, *g.DesiredCapacity})
	tags := e.tagsOf(name)
	e.equal("tags", []string{*n.ClusterName, *n.NodegroupName}, []string{tags["eks:cluster-name"], tags["eks:nodegroup-name"]})
	if _, inherited := tags[tagMark]; inherited {
		e.Error("the nodegroup's own tags are on the group")
	}
}
