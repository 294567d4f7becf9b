package cloudtest

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
)

// describeUpdate returns an update of a nodegroup.
func (e *env) describeUpdate(n *types.Nodegroup, id *string) *types.Update {
	e.Helper()
	out, err := e.eks.DescribeUpdate(e.ctx, &eks.DescribeUpdateInput{Name: n.ClusterName, NodegroupName: n.NodegroupName, UpdateId: id})
	e.must(err)
	return out.Update
}

// updated waits for an update to succeed.
func (e *env) updated(n *types.Nodegroup, id *string) {
	e.Helper()
	e.eventually("the update to succeed", func() bool { return e.describeUpdate(n, id).Status == types.UpdateStatusSuccessful })
	e.active(n)
}

func configUpdate(e *env) {
	n := e.active(e.nodegroup(e.nodegroupInput(e.cluster(), "a")))
	in := &eks.UpdateNodegroupConfigInput{
		ClusterName: n.ClusterName, NodegroupName: n.NodegroupName, ScalingConfig: &types.NodegroupScalingConfig{MaxSize: aws.Int32(5)},
		Labels: &types.UpdateLabelsPayload{AddOrUpdateLabels: map[string]string{"b": "2"}, RemoveLabels: []string{"a"}},
		Taints: &types.UpdateTaintsPayload{RemoveTaints: n.Taints},
	}
	out, err := e.eks.UpdateNodegroupConfig(e.ctx, in)
	e.must(err)
	e.equal("the update", []any{types.UpdateTypeConfigUpdate, types.UpdateStatusInProgress}, []any{out.Update.Type, out.Update.Status})
	_, err = e.eks.UpdateNodegroupConfig(e.ctx, &eks.UpdateNodegroupConfigInput{ClusterName: n.ClusterName, NodegroupName: n.NodegroupName, ScalingConfig: &types.NodegroupScalingConfig{MaxSize: aws.Int32(6)}})
	e.refused(err, "ResourceInUseException", "InvalidRequestException")
	list, err := e.eks.ListUpdates(e.ctx, &eks.ListUpdatesInput{Name: n.ClusterName, NodegroupName: n.NodegroupName})
	e.must(err)
	e.equal("listed", []string{*out.Update.Id}, list.UpdateIds)
	e.updated(n, out.Update.Id)
	n = e.describeNodegroup(n)
	e.equal("labels", map[string]string{"b": "2"}, n.Labels)
	e.equal("sizes", []int32{0, 5, 1}, []int32{*n.ScalingConfig.MinSize, *n.ScalingConfig.MaxSize, *n.ScalingConfig.DesiredSize})
	e.equal("taints", 0, len(n.Taints))
	_, err = e.eks.DescribeUpdate(e.ctx, &eks.DescribeUpdateInput{Name: n.ClusterName, NodegroupName: n.NodegroupName, UpdateId: aws.String("00000000-0000-0000-0000-000000000000")})
	e.refused(err, "ResourceNotFoundException")
}

// withTemplate returns the input for a nodegroup with a template without an image.
func (e *env) withTemplate(cluster string, t *ec2types.LaunchTemplate) *eks.CreateNodegroupInput {
	in := e.nodegroupInput(cluster, "a")
	in.LaunchTemplate = &types.LaunchTemplateSpecification{Id: t.LaunchTemplateId, Version: aws.String("1")}
	return in
}

func versionUpdate(e *env) {
	t := e.imageless("lt")
	n := e.active(e.nodegroup(e.withTemplate(e.cluster(), t)))
	e.equal("the template", []string{*t.LaunchTemplateId, *t.LaunchTemplateName, "1"}, []string{aws.ToString(n.LaunchTemplate.Id), aws.ToString(n.LaunchTemplate.Name), aws.ToString(n.LaunchTemplate.Version)})
	e.imagelessVersion(t)
	out, err := e.eks.UpdateNodegroupVersion(e.ctx, &eks.UpdateNodegroupVersionInput{
		ClusterName: n.ClusterName, NodegroupName: n.NodegroupName, LaunchTemplate: &types.LaunchTemplateSpecification{Id: t.LaunchTemplateId, Version: aws.String("2")},
	})
	e.must(err)
	e.equal("the update", types.UpdateTypeVersionUpdate, out.Update.Type)
	e.updated(n, out.Update.Id)
	e.equal("the version", "2", aws.ToString(e.describeNodegroup(n).LaunchTemplate.Version))
}

func nodegroupTags(e *env) {
	n := e.active(e.nodegroup(e.nodegroupInput(e.cluster(), "a")))
	_, err := e.eks.TagResource(e.ctx, &eks.TagResourceInput{ResourceArn: n.NodegroupArn, Tags: map[string]string{"k": "v", "drop": "1"}})
	e.must(err)
	_, err = e.eks.UntagResource(e.ctx, &eks.UntagResourceInput{ResourceArn: n.NodegroupArn, TagKeys: []string{"drop", "never"}})
	e.must(err)
	e.equal("tags", map[string]string{tagMark: e.mark, "k": "v"}, e.describeNodegroup(n).Tags)
	_, err = e.eks.TagResource(e.ctx, &eks.TagResourceInput{ResourceArn: aws.String(*n.NodegroupArn + "0"), Tags: map[string]string{"k": "v"}})
	e.refused(err, "NotFoundException", "ResourceNotFoundException")
}

func nodegroupTemplateRules(e *env) {
	in := e.withTemplate(e.cluster(), e.imageless("lt"))
	in.DiskSize = aws.Int32(50)
	_, err := e.eks.CreateNodegroup(e.ctx, in)
	e.refused(err, "InvalidParameterException", "InvalidRequestException")
}

// nodegroupTypesTwice checks that instance types are set either in the template or in the nodegroup.
func nodegroupTypesTwice(e *env) {
	in := e.withTemplate(e.cluster(), e.templateWith("lt", &ec2types.RequestLaunchTemplateData{InstanceType: ec2types.InstanceTypeM5Large}))
	_, err := e.eks.CreateNodegroup(e.ctx, in)
	e.refused(err, "InvalidRequestException")
}

// nodegroupNothing checks that EKS refuses a request without changes, and a request that would let more
// nodes be unavailable than exist.
func nodegroupNothing(e *env) {
	n := e.active(e.nodegroup(e.nodegroupInput(e.cluster(), "a")))
	for what, in := range map[string]*eks.UpdateNodegroupConfigInput{
		"nothing": {}, "labels that are none": {Labels: &types.UpdateLabelsPayload{}},
		"more than there are": {UpdateConfig: &types.NodegroupUpdateConfig{MaxUnavailable: aws.Int32(4)}},
	} {
		in.ClusterName, in.NodegroupName = n.ClusterName, n.NodegroupName
		if _, err := e.eks.UpdateNodegroupConfig(e.ctx, in); code(err) != "InvalidParameterException" {
			e.Errorf("%s: got the error %v", what, err)
		}
	}
	many := e.nodegroupInput(*n.ClusterName, "b")
	many.UpdateConfig = &types.NodegroupUpdateConfig{MaxUnavailable: aws.Int32(4)}
	_, err := e.eks.CreateNodegroup(e.ctx, many)
	e.refused(err, "InvalidParameterException")
}

func nodegroupTokens(e *env) {
	in := e.nodegroupInput(e.cluster(), "a")
	in.ClientRequestToken = aws.String(e.mark)
	first := e.nodegroup(in)
	again, err := e.eks.CreateNodegroup(e.ctx, in)
	e.must(err)
	e.equal("the repeated create", first.NodegroupArn, again.Nodegroup.NodegroupArn)
}
