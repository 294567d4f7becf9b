package awscloud

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/intent"
)

// nodegroup converts a nodegroup as DescribeNodegroup tells it.
func nodegroup(n *types.Nodegroup) plan.Nodegroup {
	out := plan.Nodegroup{
		NodegroupName: plan.NodegroupName{Cluster: aws.ToString(n.ClusterName), Name: aws.ToString(n.NodegroupName)},
		ARN:           aws.ToString(n.NodegroupArn), Status: string(n.Status), Version: aws.ToString(n.Version),
		ReleaseVersion: aws.ToString(n.ReleaseVersion), AMIType: string(n.AmiType), CapacityType: string(n.CapacityType),
		InstanceTypes: n.InstanceTypes, DiskSize: aws.ToInt32(n.DiskSize), NodeRole: aws.ToString(n.NodeRole),
		SubnetIDs: sortedStrings(n.Subnets), Labels: n.Labels, Taints: taints(n.Taints), Tags: n.Tags,
		CreatedAt: aws.ToTime(n.CreatedAt), DescribedAtPass: true,
	}
	if s := n.ScalingConfig; s != nil {
		out.MinSize, out.MaxSize, out.DesiredSize = aws.ToInt32(s.MinSize), aws.ToInt32(s.MaxSize), aws.ToInt32(s.DesiredSize)
	}
	if u := n.UpdateConfig; u != nil {
		out.UpdateConfig = intent.UpdateConfig{MaxUnavailable: aws.ToInt32(u.MaxUnavailable), MaxUnavailablePercentage: aws.ToInt32(u.MaxUnavailablePercentage), UpdateStrategy: string(u.UpdateStrategy)}
	}
	if r := n.NodeRepairConfig; r != nil {
		out.NodeRepair, out.RepairOptions = r.Enabled, repairOptions(r)
	}
	if p := n.WarmPoolConfig; p != nil {
		out.WarmPool = &intent.NodegroupWarmPool{Enabled: p.Enabled, MaxGroupPreparedCapacity: p.MaxGroupPreparedCapacity, MinSize: p.MinSize, PoolState: string(p.PoolState), ReuseOnScaleIn: p.ReuseOnScaleIn}
		if aws.ToInt32(p.MaxGroupPreparedCapacity) < 0 {
			out.WarmPool.MaxGroupPreparedCapacity = nil // Auto Scaling's way to say that there is none
		}
	}
	if r := n.RemoteAccess; r != nil {
		out.RemoteAccess = &intent.RemoteAccess{EC2SSHKey: aws.ToString(r.Ec2SshKey), SourceSecurityGroups: sortedStrings(r.SourceSecurityGroups)}
	}
	if t := n.LaunchTemplate; t != nil {
		out.Template = plan.TemplateRef{ID: aws.ToString(t.Id), Name: aws.ToString(t.Name), Version: aws.ToString(t.Version)}
	}
	if n.Resources != nil {
		for _, g := range n.Resources.AutoScalingGroups {
			out.GroupNames = append(out.GroupNames, aws.ToString(g.Name))
		}
		slices.Sort(out.GroupNames)
	}
	if n.Health != nil {
		for _, i := range n.Health.Issues {
			out.HealthIssues = append(out.HealthIssues, plan.HealthIssue{Code: string(i.Code), Message: aws.ToString(i.Message), ResourceIDs: i.ResourceIds})
		}
	}
	return out
}

func taints(in []types.Taint) []intent.Taint {
	var out []intent.Taint
	for _, t := range in {
		out = append(out, intent.Taint{Key: aws.ToString(t.Key), Value: aws.ToString(t.Value), Effect: string(t.Effect)})
	}
	slices.SortFunc(out, func(a, b intent.Taint) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Effect, b.Effect))
	})
	return out
}

func requestTaints(in []intent.Taint) []types.Taint {
	var out []types.Taint
	for _, t := range in {
		out = append(out, types.Taint{Key: aws.String(t.Key), Value: stringOrNil(t.Value), Effect: types.TaintEffect(t.Effect)})
	}
	return out
}

func requestUpdateConfig(u intent.UpdateConfig) *types.NodegroupUpdateConfig {
	if u == (intent.UpdateConfig{}) {
		return nil
	}
	return &types.NodegroupUpdateConfig{MaxUnavailable: numberOrNil(u.MaxUnavailable), MaxUnavailablePercentage: numberOrNil(u.MaxUnavailablePercentage), UpdateStrategy: types.NodegroupUpdateStrategies(u.UpdateStrategy)}
}

// repairOptions are nil where all is left to EKS.
func repairOptions(r *types.NodeRepairConfig) *intent.RepairOptions {
	out := &intent.RepairOptions{
		MaxParallelNodesRepairedCount: aws.ToInt32(r.MaxParallelNodesRepairedCount), MaxParallelNodesRepairedPercentage: aws.ToInt32(r.MaxParallelNodesRepairedPercentage),
		MaxUnhealthyNodeThresholdCount: aws.ToInt32(r.MaxUnhealthyNodeThresholdCount), MaxUnhealthyNodeThresholdPercentage: aws.ToInt32(r.MaxUnhealthyNodeThresholdPercentage),
	}
	for _, o := range r.NodeRepairConfigOverrides {
		out.NodeRepairConfigOverrides = append(out.NodeRepairConfigOverrides, intent.RepairOverride{
			MinRepairWaitTimeMins: aws.ToInt32(o.MinRepairWaitTimeMins), NodeMonitoringCondition: aws.ToString(o.NodeMonitoringCondition),
			NodeUnhealthyReason: aws.ToString(o.NodeUnhealthyReason), RepairAction: string(o.RepairAction)})
	}
	if reflect.ValueOf(*out).IsZero() {
		return nil // node repair as EKS has it
	}
	return out
}

func requestRepair(enabled *bool, options *intent.RepairOptions) *types.NodeRepairConfig {
	if enabled == nil && options == nil {
		return nil
	}
	out := &types.NodeRepairConfig{Enabled: enabled}
	if o := options; o != nil {
		out.MaxParallelNodesRepairedCount, out.MaxParallelNodesRepairedPercentage = numberOrNil(o.MaxParallelNodesRepairedCount), numberOrNil(o.MaxParallelNodesRepairedPercentage)
		out.MaxUnhealthyNodeThresholdCount, out.MaxUnhealthyNodeThresholdPercentage = numberOrNil(o.MaxUnhealthyNodeThresholdCount), numberOrNil(o.MaxUnhealthyNodeThresholdPercentage)
		for _, v := range o.NodeRepairConfigOverrides {
			out.NodeRepairConfigOverrides = append(out.NodeRepairConfigOverrides, types.NodeRepairConfigOverrides{
				MinRepairWaitTimeMins: aws.Int32(v.MinRepairWaitTimeMins), NodeMonitoringCondition: aws.String(v.NodeMonitoringCondition),
				NodeUnhealthyReason: aws.String(v.NodeUnhealthyReason), RepairAction: types.RepairAction(v.RepairAction)})
		}
	}
	return out
}

func requestWarmPool(p *intent.NodegroupWarmPool) *types.WarmPoolConfig {
	if p == nil {
		return nil
	}
	return &types.WarmPoolConfig{Enabled: p.Enabled, MaxGroupPreparedCapacity: p.MaxGroupPreparedCapacity, MinSize: p.MinSize,
		PoolState: types.WarmPoolState(p.PoolState), ReuseOnScaleIn: p.ReuseOnScaleIn}
}

// requestTemplate names a template version: by id if it is known, for EKS
// refuses the two together.
func requestTemplate(r plan.TemplateRef) *types.LaunchTemplateSpecification {
	if r == (plan.TemplateRef{}) {
		return nil
	}
	out := &types.LaunchTemplateSpecification{Version: stringOrNil(r.Version)}
	if r.ID != "" {
		out.Id = aws.String(r.ID)
	} else {
		out.Name = stringOrNil(r.Name)
	}
	return out
}

// nodegroupUpdate converts an update.
func nodegroupUpdate(u *types.Update) plan.NodegroupUpdate {
	out := plan.NodegroupUpdate{ID: aws.ToString(u.Id), Type: string(u.Type), Status: string(u.Status), CreatedAt: aws.ToTime(u.CreatedAt)}
	for _, e := range u.Errors {
		out.Errors = append(out.Errors, plan.HealthIssue{Code: string(e.ErrorCode), Message: aws.ToString(e.ErrorMessage), ResourceIDs: e.ResourceIds})
	}
	return out
}
