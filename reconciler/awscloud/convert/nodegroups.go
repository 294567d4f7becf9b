package convert

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// Nodegroup converts a nodegroup from DescribeNodegroup.
func Nodegroup(n *types.Nodegroup) observed.Nodegroup {
	out := observed.Nodegroup{
		NodegroupName: observed.NodegroupName{Cluster: aws.ToString(n.ClusterName), Name: aws.ToString(n.NodegroupName)},
		ARN:           aws.ToString(n.NodegroupArn), Status: string(n.Status), NodeRole: aws.ToString(n.NodeRole),
		SubnetIDs: slices.Sorted(slices.Values(n.Subnets)), Tags: n.Tags, CreatedAt: aws.ToTime(n.CreatedAt), DescribedAtPass: true,
	}
	nodegroupSettings(n, &out.NodegroupSettings)
	slices.SortFunc(out.Taints, func(a, b intent.Taint) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Effect, b.Effect))
	})
	if s := n.ScalingConfig; s != nil {
		out.MinSize, out.MaxSize, out.DesiredSize = aws.ToInt32(s.MinSize), aws.ToInt32(s.MaxSize), aws.ToInt32(s.DesiredSize)
	}
	if p := out.WarmPool; p != nil && aws.ToInt32(p.MaxGroupPreparedCapacity) < 0 {
		p.MaxGroupPreparedCapacity = nil // Auto Scaling's value for unset
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

// Taints converts taints for a request.
func Taints(in []intent.Taint) (out []types.Taint) {
	Carry(in, &out)
	return out
}

// NodegroupSettings writes settings into a request about a nodegroup, at the places in the table. Absent
// settings are not sent.
func NodegroupSettings(s *intent.NodegroupSettings, in any) {
	for _, m := range field.NodegroupMembers() {
		v := m.Of(s)
		if v.IsZero() {
			continue
		}
		at := reflect.ValueOf(in)
		for _, name := range m.Path {
			at = pointed(at).FieldByName(name)
		}
		carryValue(v, at)
	}
}

// nodegroupSettings reads the settings of a nodegroup. A structure without any member of the intent is
// absent, unless it has a switch.
func nodegroupSettings(n *types.Nodegroup, s *intent.NodegroupSettings) {
	for _, m := range field.NodegroupMembers() {
		at, to := reflect.ValueOf(n), m.Of(s)
		for _, name := range m.Path {
			if at = reflect.Indirect(at); at.IsValid() {
				at = at.FieldByName(name)
			}
		}
		if !at.IsValid() || at.IsZero() {
			continue
		}
		carryValue(at, to)
		if m.Block != nil && m.Block.Form == field.Whole && m.Block.Switch == "" && to.Elem().IsZero() {
			to.SetZero()
		}
	}
}

// NodegroupTemplate returns a template version for a request. It uses the id if known, because EKS refuses
// id and name together.
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
