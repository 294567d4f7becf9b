package convert

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// Nodegroup converts a nodegroup as DescribeNodegroup tells it.
func Nodegroup(n *types.Nodegroup) observed.Nodegroup {
	out := observed.Nodegroup{
		NodegroupName: observed.NodegroupName{Cluster: aws.ToString(n.ClusterName), Name: aws.ToString(n.NodegroupName)},
		ARN:           aws.ToString(n.NodegroupArn), Status: string(n.Status), NodeRole: aws.ToString(n.NodeRole),
		SubnetIDs: slices.Sorted(slices.Values(n.Subnets)), Tags: n.Tags, CreatedAt: aws.ToTime(n.CreatedAt), DescribedAtPass: true,
	}
	Carry(n, &out.NodegroupSettings)
	slices.SortFunc(out.Taints, func(a, b intent.Taint) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Effect, b.Effect))
	})
	if s := n.ScalingConfig; s != nil {
		out.MinSize, out.MaxSize, out.DesiredSize = aws.ToInt32(s.MinSize), aws.ToInt32(s.MaxSize), aws.ToInt32(s.DesiredSize)
	}
	if r := n.NodeRepairConfig; r != nil {
		out.NodeRepair, out.RepairOptions = r.Enabled, repairOptions(r)
	}
	if p := n.WarmPoolConfig; p != nil {
		out.WarmPool = &intent.NodegroupWarmPool{}
		Carry(p, out.WarmPool)
		if aws.ToInt32(p.MaxGroupPreparedCapacity) < 0 {
			out.WarmPool.MaxGroupPreparedCapacity = nil // how Auto Scaling says that no value is set
		}
	}
	if r := out.RemoteAccess; r != nil {
		r.SourceSecurityGroups = slices.Sorted(slices.Values(r.SourceSecurityGroups))
	}
	if t := n.LaunchTemplate; t != nil {
		out.Template = observed.TemplateRef{ID: aws.ToString(t.Id), Name: aws.ToString(t.Name), Version: aws.ToString(t.Version)}
	}
	if n.Resources != nil {
		for _, g := range n.Resources.AutoScalingGroups {
			out.GroupNames = append(out.GroupNames, aws.ToString(g.Name))
		}
		slices.Sort(out.GroupNames)
	}
	if n.Health != nil {
		for _, i := range n.Health.Issues {
			out.HealthIssues = append(out.HealthIssues, observed.HealthIssue{Code: string(i.Code), Message: aws.ToString(i.Message), ResourceIDs: i.ResourceIds})
		}
	}
	return out
}

// repairOptions are nil where Git leaves all to EKS: node repair as in EKS.
func repairOptions(r *types.NodeRepairConfig) *intent.RepairOptions {
	out := &intent.RepairOptions{}
	Carry(r, out)
	if reflect.ValueOf(*out).IsZero() {
		return nil
	}
	return out
}

// NodegroupUpdate converts an update.
func NodegroupUpdate(u *types.Update) observed.NodegroupUpdate {
	out := observed.NodegroupUpdate{ID: aws.ToString(u.Id), Type: string(u.Type), Status: string(u.Status), CreatedAt: aws.ToTime(u.CreatedAt)}
	for _, p := range u.Params {
		if p.Type == types.UpdateParamTypeLaunchTemplateVersion {
			out.TemplateVersion = aws.ToString(p.Value)
		}
	}
	for _, e := range u.Errors {
		out.Errors = append(out.Errors, observed.HealthIssue{Code: string(e.ErrorCode), Message: aws.ToString(e.ErrorMessage), ResourceIDs: e.ResourceIds})
	}
	return out
}

// Taints writes taints for a request.
func Taints(in []intent.Taint) (out []types.Taint) {
	Carry(in, &out)
	return out
}

// NodegroupRequest are the members of a nodegroup that requests send as a whole.
func NodegroupRequest(u *intent.UpdateConfig, repair *bool, options *intent.RepairOptions, warm *intent.NodegroupWarmPool) (*types.NodegroupUpdateConfig, *types.NodeRepairConfig, *types.WarmPoolConfig) {
	var update *types.NodegroupUpdateConfig
	var nodeRepair *types.NodeRepairConfig
	var pool *types.WarmPoolConfig
	if u != nil && *u != (intent.UpdateConfig{}) {
		Carry(u, &update)
	}
	if options != nil {
		Carry(options, &nodeRepair)
	}
	if repair != nil {
		nodeRepair = cmp.Or(nodeRepair, &types.NodeRepairConfig{})
		nodeRepair.Enabled = repair
	}
	if warm != nil {
		Carry(warm, &pool)
	}
	return update, nodeRepair, pool
}

// NodegroupTemplate names a template version: by id if it is known, for EKS
// refuses the two together.
func NodegroupTemplate(r observed.TemplateRef) *types.LaunchTemplateSpecification {
	if r == (observed.TemplateRef{}) {
		return nil
	}
	out := &types.LaunchTemplateSpecification{Version: StringOrNil(r.Version)}
	if r.ID != "" {
		out.Id = aws.String(r.ID)
	} else {
		out.Name = StringOrNil(r.Name)
	}
	return out
}
