package cloudtest

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
)

func nodegroupOptionContracts() []contract {
	return []contract{
		{"a nodegroup's options come back", []Capability{NodegroupUpdates, NodegroupStates}, nodegroupOptionsComeBack},
		{"what changes is not deleted, and its updates are remembered", []Capability{NodegroupUpdates, NodegroupStates}, nodegroupHistory},
		{"one cluster has two nodegroups", []Capability{NodegroupStates, NodegroupGroups}, nodegroupsBesideEachOther},
	}
}

// nodegroupOptionsComeBack sets and changes the settings of a nodegroup other than its sizes.
func nodegroupOptionsComeBack(e *env) {
	in := e.nodegroupInput(e.cluster(), "a")
	in.InstanceTypes = []string{"m5.large", "m5a.large"}
	in.UpdateConfig = &types.NodegroupUpdateConfig{MaxUnavailable: aws.Int32(2), UpdateStrategy: types.NodegroupUpdateStrategiesMinimal}
	in.NodeRepairConfig = &types.NodeRepairConfig{Enabled: aws.Bool(true), MaxParallelNodesRepairedCount: aws.Int32(2)}
	in.WarmPoolConfig = &types.WarmPoolConfig{Enabled: aws.Bool(true), MinSize: aws.Int32(1)}
	n := e.active(e.nodegroup(in))
	e.equal("instance types", in.InstanceTypes, n.InstanceTypes)
	e.equal("update strategy", types.NodegroupUpdateStrategiesMinimal, n.UpdateConfig.UpdateStrategy)
	if r := n.NodeRepairConfig; r == nil || !aws.ToBool(r.Enabled) || aws.ToInt32(r.MaxParallelNodesRepairedCount) != 2 {
		e.Errorf("node repair %+v", r)
	}
	if p := n.WarmPoolConfig; p == nil || !aws.ToBool(p.Enabled) || aws.ToInt32(p.MinSize) != 1 {
		e.Errorf("warm pool %+v", p)
	}
	if p := n.WarmPoolConfig; p != nil && aws.ToInt32(p.MaxGroupPreparedCapacity) > 0 {
		e.Errorf("a capacity that nobody set is %d", *p.MaxGroupPreparedCapacity)
	}
	for _, most := range []int32{4, -1} {
		out, err := e.eks.UpdateNodegroupConfig(e.ctx, &eks.UpdateNodegroupConfigInput{ClusterName: n.ClusterName, NodegroupName: n.NodegroupName,
			WarmPoolConfig: &types.WarmPoolConfig{Enabled: aws.Bool(true), MaxGroupPreparedCapacity: aws.Int32(most)}})
		e.must(err)
		e.updated(n, out.Update.Id)
		p := e.describeNodegroup(n).WarmPoolConfig
		e.equal("what was left out", int32(1), aws.ToInt32(p.MinSize))
		e.equal("the capacity", max(most, 0), max(aws.ToInt32(p.MaxGroupPreparedCapacity), 0))
	}
	out, err := e.eks.UpdateNodegroupConfig(e.ctx, &eks.UpdateNodegroupConfigInput{
		ClusterName: n.ClusterName, NodegroupName: n.NodegroupName,
		UpdateConfig:   &types.NodegroupUpdateConfig{MaxUnavailablePercentage: aws.Int32(50), UpdateStrategy: types.NodegroupUpdateStrategiesDefault},
		WarmPoolConfig: &types.WarmPoolConfig{Enabled: aws.Bool(false)},
	})
	e.must(err)
	e.updated(n, out.Update.Id)
	n = e.describeNodegroup(n)
	e.equal("changed", []int32{0, 50}, []int32{aws.ToInt32(n.UpdateConfig.MaxUnavailable), aws.ToInt32(n.UpdateConfig.MaxUnavailablePercentage)})
	if p := n.WarmPoolConfig; p != nil && aws.ToBool(p.Enabled) {
		e.Errorf("the warm pool is still there: %+v", p)
	}
}

// nodegroupHistory updates a nodegroup twice.
func nodegroupHistory(e *env) {
	n := e.active(e.nodegroup(e.nodegroupInput(e.cluster(), "a")))
	var want []string
	for _, size := range []int32{4, 5} {
		out, err := e.eks.UpdateNodegroupConfig(e.ctx, &eks.UpdateNodegroupConfigInput{ClusterName: n.ClusterName, NodegroupName: n.NodegroupName,
			ScalingConfig: &types.NodegroupScalingConfig{MaxSize: aws.Int32(size)}})
		e.must(err)
		_, err = e.eks.DeleteNodegroup(e.ctx, &eks.DeleteNodegroupInput{ClusterName: n.ClusterName, NodegroupName: n.NodegroupName})
		e.refused(err, "ResourceInUseException", "InvalidRequestException")
		e.updated(n, out.Update.Id)
		want = append(want, *out.Update.Id)
	}
	list, err := e.eks.ListUpdates(e.ctx, &eks.ListUpdatesInput{Name: n.ClusterName, NodegroupName: n.NodegroupName})
	e.must(err)
	slices.Sort(want)
	slices.Sort(list.UpdateIds)
	e.equal("updates", want, list.UpdateIds)
}

// nodegroupsBesideEachOther checks what a replacement relies on: each nodegroup has its own group, and the
// deletion of one does not affect the other.
func nodegroupsBesideEachOther(e *env) {
	cluster := e.cluster()
	old := e.active(e.nodegroup(e.nodegroupInput(cluster, "a")))
	in := e.nodegroupInput(cluster, "a-0a1b2c")
	in.CapacityType = types.CapacityTypesSpot
	fresh := e.active(e.nodegroup(in))
	a, b := *old.Resources.AutoScalingGroups[0].Name, *fresh.Resources.AutoScalingGroups[0].Name
	if a == b {
		e.Errorf("both have the group %s", a)
	}
	_, err := e.eks.DeleteNodegroup(e.ctx, &eks.DeleteNodegroupInput{ClusterName: old.ClusterName, NodegroupName: old.NodegroupName})
	e.must(err)
	e.eventually("the old nodegroup to be gone", func() bool {
		_, err := e.eks.DescribeNodegroup(e.ctx, &eks.DescribeNodegroupInput{ClusterName: old.ClusterName, NodegroupName: old.NodegroupName})
		return code(err) == "ResourceNotFoundException"
	})
	e.equal("the other one", types.NodegroupStatusActive, e.describeNodegroup(fresh).Status)
	e.inService(b, 1)
}
