package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
)

const (
	// nodegroupMoves is the time that EKS may take for one step of a nodegroup.
	nodegroupMoves = 15 * time.Minute
	// keptTag is a tag for the group behind a nodegroup.
	keptTag = "weir.dev/doctor-kept"
)

// nodegroupChecks contains the checks that need nodegroups.
type nodegroupChecks struct{ *visit }

// run makes two nodegroups without machines, one of them with a launch template.
func (v nodegroupChecks) run(ctx context.Context) {
	cluster, err := v.calls.cluster(ctx, &eks.DescribeClusterInput{Name: aws.String(v.Cluster)})
	if v.notes.refused("nodegroup-defaults", "eks", "DescribeCluster", err) || cluster.Cluster == nil {
		return
	}
	subnets := []string{v.Subnet}
	if vpc := cluster.Cluster.ResourcesVpcConfig; v.Subnet == "" && vpc != nil {
		subnets = vpc.SubnetIds
	}
	v.Progress("making a nodegroup without machines")
	v.plainNodegroup(ctx, subnets)
	if ctx.Err() == nil {
		v.Progress("making a nodegroup with a launch template")
		v.templateNodegroup(ctx, subnets)
	}
}

func (v nodegroupChecks) nodegroupInput(name string, subnets []string) *eks.CreateNodegroupInput {
	return &eks.CreateNodegroupInput{
		ClusterName: aws.String(v.Cluster), NodegroupName: aws.String(name), NodeRole: aws.String(v.NodeRole), Subnets: subnets, Tags: v.tags(),
		ScalingConfig: &types.NodegroupScalingConfig{MinSize: aws.Int32(0), MaxSize: aws.Int32(1), DesiredSize: aws.Int32(0)},
	}
}

// active waits until a nodegroup is ready, and returns it. It returns nil if that takes too long.
func (v nodegroupChecks) active(ctx context.Context, about, name string) (n *types.Nodegroup) {
	v.until(ctx, nodegroupMoves, func() bool {
		out, err := v.calls.nodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: aws.String(v.Cluster), NodegroupName: aws.String(name)})
		if err != nil {
			return false
		}
		n = out.Nodegroup
		return n.Status != types.NodegroupStatusCreating && n.Status != types.NodegroupStatusUpdating
	})
	if n == nil || n.Status != types.NodegroupStatusActive {
		status := types.NodegroupStatus("not to be read")
		if n != nil {
			status = n.Status
		}
		v.notes.note(about, NotSeen, "the nodegroup was %s after %s", status, nodegroupMoves)
		return nil
	}
	return n
}

// plainNodegroup makes a nodegroup that sets as few values as possible.
func (v nodegroupChecks) plainNodegroup(ctx context.Context, subnets []string) {
	name := v.name("plain")
	in := v.nodegroupInput(name, subnets)
	if _, err := v.calls.createNodegroup(ctx, in); v.notes.refused("nodegroup-defaults", "eks", "CreateNodegroup", err) {
		return
	}
	again := *in
	again.ClientRequestToken = nil // another request for the same name
	_, err := v.calls.createNodegroup(ctx, &again)
	v.notes.kind("eks", "CreateNodegroup", err, observed.AlreadyThere)
	n := v.active(ctx, "nodegroup-defaults", name)
	if n == nil {
		return
	}
	strategy := types.NodegroupUpdateStrategies("")
	if n.UpdateConfig != nil {
		strategy = n.UpdateConfig.UpdateStrategy
	}
	asAssumed := aws.ToInt32(n.DiskSize) == 20 && slices.Equal(n.InstanceTypes, []string{"t3.medium"}) && (strategy == "" || strategy == types.NodegroupUpdateStrategiesDefault)
	v.notes.judge("nodegroup-defaults", asAssumed, "a nodegroup has %d GiB, %v and the update strategy %q", aws.ToInt32(n.DiskSize), n.InstanceTypes, strategy)
	v.launchHook(ctx, v.Cluster, name)
	v.groupBehind(ctx, n)
	v.nodegroupWarmPool(ctx, name)
}

// groupBehind tags the group behind a nodegroup, and checks both after an update. It writes the owner's tag
// too, because the policy allows no other request to tag such a group.
func (v nodegroupChecks) groupBehind(ctx context.Context, n *types.Nodegroup) {
	const about = "groups-behind-nodegroups"
	if n.Resources == nil || len(n.Resources.AutoScalingGroups) == 0 {
		v.notes.note(about, NotSeen, "EKS names no group of the nodegroup")
		return
	}
	group, name := aws.ToString(n.Resources.AutoScalingGroups[0].Name), aws.ToString(n.NodegroupName)
	in := &autoscaling.CreateOrUpdateTagsInput{}
	for _, tag := range [][2]string{{keptTag, v.Number}, {observed.TagOwner, Instance}} {
		in.Tags = append(in.Tags, astypes.Tag{Key: aws.String(tag[0]), Value: aws.String(tag[1]), ResourceId: aws.String(group), ResourceType: aws.String("auto-scaling-group"), PropagateAtLaunch: aws.Bool(false)})
	}
	_, err := v.calls.tagGroups(ctx, in)
	if v.notes.refused(about, "autoscaling", "CreateOrUpdateTags", err) {
		return
	}
	update := &eks.UpdateNodegroupConfigInput{ClusterName: n.ClusterName, NodegroupName: n.NodegroupName, Labels: &types.UpdateLabelsPayload{AddOrUpdateLabels: map[string]string{"weir-doctor": v.Number}}}
	if _, err := v.calls.updateConfig(ctx, update); v.notes.refused(about, "eks", "UpdateNodegroupConfig", err) {
		return
	}
	_, err = v.calls.updateConfig(ctx, &eks.UpdateNodegroupConfigInput{ClusterName: n.ClusterName, NodegroupName: n.NodegroupName, Labels: &types.UpdateLabelsPayload{AddOrUpdateLabels: map[string]string{"weir-doctor": "other"}}})
	v.busy(err)
	after := v.active(ctx, about, name)
	if after == nil {
		return
	}
	kept := slices.ContainsFunc(v.readGroup(ctx, group).Tags, func(t astypes.TagDescription) bool { return aws.ToString(t.Key) == keptTag })
	sound := after.Health == nil || len(after.Health.Issues) == 0
	v.notes.judge(about, kept && sound, "after an update the tag on the group is there: %t; the nodegroup is %s without issues: %t", kept, after.Status, sound)
}

// busy judges how EKS refuses an update while another runs. If the other update ended at once, EKS
// accepts the second.
func (v nodegroupChecks) busy(err error) {
	if err != nil {
		v.notes.kind("eks", "UpdateNodegroupConfig", err, observed.Busy)
	}
}

// nodegroupWarmPool gives a nodegroup a warm pool without a maximum capacity, then sets and removes the
// maximum.
func (v nodegroupChecks) nodegroupWarmPool(ctx context.Context, name string) {
	const about = "nodegroup-warm-pool-capacity"
	for _, bound := range []int32{0, 1, -1} {
		pool := &types.WarmPoolConfig{Enabled: aws.Bool(true)}
		if bound != 0 {
			pool.MaxGroupPreparedCapacity = aws.Int32(bound)
		}
		_, err := v.calls.updateConfig(ctx, &eks.UpdateNodegroupConfigInput{ClusterName: aws.String(v.Cluster), NodegroupName: aws.String(name), WarmPoolConfig: pool})
		if e := sdk.Classify("eks", "UpdateNodegroupConfig", err); e != nil {
			v.notes.judge(about, e.Kind != observed.Invalid, "a largest capacity of %d: %s", bound, e.Error())
			return
		}
		n := v.active(ctx, about, name)
		if n == nil {
			return
		}
		got := int32(-1)
		if n.WarmPoolConfig != nil && n.WarmPoolConfig.MaxGroupPreparedCapacity != nil {
			got = *n.WarmPoolConfig.MaxGroupPreparedCapacity
		}
		want := bound
		if bound == 0 {
			want = -1
		}
		sent := fmt.Sprint(bound)
		if bound == 0 {
			sent = "that was not sent"
		}
		v.notes.judge(about, n.WarmPoolConfig != nil && got == want, "a largest capacity %s reads as %d", sent, got)
	}
}

// templateNodegroup updates a nodegroup to another version of its template, and to the Kubernetes version
// that it already has.
func (v nodegroupChecks) templateNodegroup(ctx context.Context, subnets []string) {
	const about = "unchanged-version-is-taken"
	made, err := v.calls.createTemplate(ctx, &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String(v.name("nodes")), ClientToken: aws.String(v.name("nodes")), LaunchTemplateData: &ec2types.RequestLaunchTemplateData{EbsOptimized: aws.Bool(true)},
		TagSpecifications: []ec2types.TagSpecification{{ResourceType: ec2types.ResourceTypeLaunchTemplate, Tags: v.ec2Tags()}},
	})
	if v.notes.refused(about, "ec2", "CreateLaunchTemplate", err) || made.LaunchTemplate == nil {
		return
	}
	template := aws.ToString(made.LaunchTemplate.LaunchTemplateId)
	if _, err := v.version(ctx, template, "nodes-two", &ec2types.RequestLaunchTemplateData{EbsOptimized: aws.Bool(false)}); v.notes.refused(about, "ec2", "CreateLaunchTemplateVersion", err) {
		return
	}
	name := v.name("templated")
	in := v.nodegroupInput(name, subnets)
	in.LaunchTemplate = &types.LaunchTemplateSpecification{Id: aws.String(template), Version: aws.String("1")}
	if _, err := v.calls.createNodegroup(ctx, in); v.notes.refused(about, "eks", "CreateNodegroup", err) {
		return
	}
	n := v.active(ctx, about, name)
	if n == nil {
		return
	}
	_, err = v.calls.updateVersion(ctx, &eks.UpdateNodegroupVersionInput{
		ClusterName: aws.String(v.Cluster), NodegroupName: aws.String(name), Version: n.Version,
		LaunchTemplate: &types.LaunchTemplateSpecification{Id: aws.String(template), Version: aws.String("2")},
	})
	if e := sdk.Classify("eks", "UpdateNodegroupVersion", err); e != nil {
		v.notes.judge(about, e.Kind == observed.Denied, "%s", e.Error())
		return
	}
	if n := v.active(ctx, about, name); n != nil && n.LaunchTemplate != nil {
		v.notes.judge(about, aws.ToString(n.LaunchTemplate.Version) == "2", "an update to version %s of Kubernetes, which it had, led to version %s of the template", aws.ToString(n.Version), aws.ToString(n.LaunchTemplate.Version))
	}
}
