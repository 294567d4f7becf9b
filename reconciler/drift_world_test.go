package reconciler_test

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/weir-gitops/weir/reconciler/observed"
)

func (w *world) subnets() []string {
	w.t.Helper()
	out, err := w.ec2().DescribeSubnets(context.Background(), &ec2.DescribeSubnetsInput{})
	w.check(nil, err)
	var ids []string
	for _, s := range out.Subnets {
		ids = append(ids, aws.ToString(s.SubnetId))
	}
	slices.Sort(ids)
	return ids
}

// templateOf is the version that a group is set to.
func (w *world) templateOf(group string) *observed.TemplateRef {
	w.t.Helper()
	g := w.group(group)
	spec := g.LaunchTemplate
	if spec == nil {
		spec = g.MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification
	}
	return &observed.TemplateRef{ID: aws.ToString(spec.LaunchTemplateId), Name: aws.ToString(spec.LaunchTemplateName), Version: aws.ToString(spec.Version)}
}

func (w *world) moveDefault(template, version string) {
	w.t.Helper()
	w.check(w.ec2().ModifyLaunchTemplate(context.Background(), &ec2.ModifyLaunchTemplateInput{LaunchTemplateName: aws.String(template), DefaultVersion: aws.String(version)}))
}

func (w *world) tagTemplate(template, key, value string) {
	w.t.Helper()
	w.check(w.ec2().CreateTags(context.Background(), &ec2.CreateTagsInput{Resources: []string{aws.ToString(w.template(template).LaunchTemplateId)},
		Tags: []types.Tag{{Key: aws.String(key), Value: aws.String(value)}}}))
}

func (w *world) deleteTemplate(name string) {
	w.t.Helper()
	w.clock.Advance(time.Hour) // whatever client tokens were sent before are old
	w.check(w.ec2().DeleteLaunchTemplate(context.Background(), &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String(name)}))
}

func (w *world) untagNodegroup(name, key string) {
	w.t.Helper()
	out, err := w.eks().DescribeNodegroup(context.Background(), &eks.DescribeNodegroupInput{ClusterName: aws.String("demo"), NodegroupName: aws.String(name)})
	w.check(nil, err)
	w.check(w.eks().UntagResource(context.Background(), &eks.UntagResourceInput{ResourceArn: out.Nodegroup.NodegroupArn, TagKeys: []string{key}}))
}
