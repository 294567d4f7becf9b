package doctor

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/weir-gitops/weir/reconciler/awscloud/probe"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
)

// call is an operation of a service's client, held as a function: a client in a value's
// type would keep all of its operations in the binary.
type call[In, Out, Options any] = func(context.Context, *In, ...func(*Options)) (*Out, error)

// calls are the operations of a visit.
type calls struct {
	createTemplate   call[ec2.CreateLaunchTemplateInput, ec2.CreateLaunchTemplateOutput, ec2.Options]
	createVersion    call[ec2.CreateLaunchTemplateVersionInput, ec2.CreateLaunchTemplateVersionOutput, ec2.Options]
	deleteTemplate   call[ec2.DeleteLaunchTemplateInput, ec2.DeleteLaunchTemplateOutput, ec2.Options]
	deleteVersions   call[ec2.DeleteLaunchTemplateVersionsInput, ec2.DeleteLaunchTemplateVersionsOutput, ec2.Options]
	describeVersions call[ec2.DescribeLaunchTemplateVersionsInput, ec2.DescribeLaunchTemplateVersionsOutput, ec2.Options]
	templates        call[ec2.DescribeLaunchTemplatesInput, ec2.DescribeLaunchTemplatesOutput, ec2.Options]
	images           call[ec2.DescribeImagesInput, ec2.DescribeImagesOutput, ec2.Options]
	subnets          call[ec2.DescribeSubnetsInput, ec2.DescribeSubnetsOutput, ec2.Options]
	securityGroups   call[ec2.DescribeSecurityGroupsInput, ec2.DescribeSecurityGroupsOutput, ec2.Options]
	vpcs             call[ec2.DescribeVpcsInput, ec2.DescribeVpcsOutput, ec2.Options]
	run              call[ec2.RunInstancesInput, ec2.RunInstancesOutput, ec2.Options]
	instanceTypes    call[ec2.DescribeInstanceTypesInput, ec2.DescribeInstanceTypesOutput, ec2.Options]

	groups          call[autoscaling.DescribeAutoScalingGroupsInput, autoscaling.DescribeAutoScalingGroupsOutput, autoscaling.Options]
	activities      call[autoscaling.DescribeScalingActivitiesInput, autoscaling.DescribeScalingActivitiesOutput, autoscaling.Options]
	refreshes       call[autoscaling.DescribeInstanceRefreshesInput, autoscaling.DescribeInstanceRefreshesOutput, autoscaling.Options]
	hooks           call[autoscaling.DescribeLifecycleHooksInput, autoscaling.DescribeLifecycleHooksOutput, autoscaling.Options]
	createGroup     call[autoscaling.CreateAutoScalingGroupInput, autoscaling.CreateAutoScalingGroupOutput, autoscaling.Options]
	updateGroup     call[autoscaling.UpdateAutoScalingGroupInput, autoscaling.UpdateAutoScalingGroupOutput, autoscaling.Options]
	deleteGroup     call[autoscaling.DeleteAutoScalingGroupInput, autoscaling.DeleteAutoScalingGroupOutput, autoscaling.Options]
	tagGroups       call[autoscaling.CreateOrUpdateTagsInput, autoscaling.CreateOrUpdateTagsOutput, autoscaling.Options]
	enableMetrics   call[autoscaling.EnableMetricsCollectionInput, autoscaling.EnableMetricsCollectionOutput, autoscaling.Options]
	startRefresh    call[autoscaling.StartInstanceRefreshInput, autoscaling.StartInstanceRefreshOutput, autoscaling.Options]
	putHook         call[autoscaling.PutLifecycleHookInput, autoscaling.PutLifecycleHookOutput, autoscaling.Options]
	deleteHook      call[autoscaling.DeleteLifecycleHookInput, autoscaling.DeleteLifecycleHookOutput, autoscaling.Options]
	heartbeat       call[autoscaling.RecordLifecycleActionHeartbeatInput, autoscaling.RecordLifecycleActionHeartbeatOutput, autoscaling.Options]
	completeAction  call[autoscaling.CompleteLifecycleActionInput, autoscaling.CompleteLifecycleActionOutput, autoscaling.Options]
	rollbackRefresh call[autoscaling.RollbackInstanceRefreshInput, autoscaling.RollbackInstanceRefreshOutput, autoscaling.Options]
	cancelRefresh   call[autoscaling.CancelInstanceRefreshInput, autoscaling.CancelInstanceRefreshOutput, autoscaling.Options]

	clusters        call[eks.ListClustersInput, eks.ListClustersOutput, eks.Options]
	nodegroups      call[eks.ListNodegroupsInput, eks.ListNodegroupsOutput, eks.Options]
	cluster         call[eks.DescribeClusterInput, eks.DescribeClusterOutput, eks.Options]
	nodegroup       call[eks.DescribeNodegroupInput, eks.DescribeNodegroupOutput, eks.Options]
	createNodegroup call[eks.CreateNodegroupInput, eks.CreateNodegroupOutput, eks.Options]
	updateConfig    call[eks.UpdateNodegroupConfigInput, eks.UpdateNodegroupConfigOutput, eks.Options]
	updateVersion   call[eks.UpdateNodegroupVersionInput, eks.UpdateNodegroupVersionOutput, eks.Options]
	deleteNodegroup call[eks.DeleteNodegroupInput, eks.DeleteNodegroupOutput, eks.Options]

	parameters call[ssm.GetParametersInput, ssm.GetParametersOutput, ssm.Options]

	quota        call[servicequotas.GetServiceQuotaInput, servicequotas.GetServiceQuotaOutput, servicequotas.Options]
	targetGroups call[elb.DescribeTargetGroupsInput, elb.DescribeTargetGroupsOutput, elb.Options]
	prober       *probe.Prober

	placementGroups call[ec2.DescribePlacementGroupsInput, ec2.DescribePlacementGroupsOutput, ec2.Options]
}

func callsOf(client *sdk.Client) calls {
	e := ec2.NewFromConfig(client.Config, func(o *ec2.Options) { sdk.Reach(&o.BaseEndpoint, client.Endpoint) })
	a := autoscaling.NewFromConfig(client.Config, func(o *autoscaling.Options) { sdk.Reach(&o.BaseEndpoint, client.Endpoint) })
	k := eks.NewFromConfig(client.Config, func(o *eks.Options) { sdk.Reach(&o.BaseEndpoint, client.Endpoint) })
	s := ssm.NewFromConfig(client.Config, func(o *ssm.Options) { sdk.Reach(&o.BaseEndpoint, client.Endpoint) })
	b := elb.NewFromConfig(client.Config, func(o *elb.Options) { sdk.Reach(&o.BaseEndpoint, client.Endpoint) })
	q := servicequotas.NewFromConfig(client.Config, func(o *servicequotas.Options) { sdk.Reach(&o.BaseEndpoint, client.Endpoint) })
	i := iam.NewFromConfig(client.Config, func(o *iam.Options) { sdk.Reach(&o.BaseEndpoint, client.Endpoint) })
	m := kms.NewFromConfig(client.Config, func(o *kms.Options) { sdk.Reach(&o.BaseEndpoint, client.Endpoint) })
	return calls{
		createTemplate: e.CreateLaunchTemplate, createVersion: e.CreateLaunchTemplateVersion, deleteTemplate: e.DeleteLaunchTemplate,
		deleteVersions: e.DeleteLaunchTemplateVersions, describeVersions: e.DescribeLaunchTemplateVersions, templates: e.DescribeLaunchTemplates,
		images: e.DescribeImages, subnets: e.DescribeSubnets, securityGroups: e.DescribeSecurityGroups, vpcs: e.DescribeVpcs,
		run: e.RunInstances, placementGroups: e.DescribePlacementGroups, instanceTypes: e.DescribeInstanceTypes,
		groups: a.DescribeAutoScalingGroups, activities: a.DescribeScalingActivities, refreshes: a.DescribeInstanceRefreshes,
		hooks: a.DescribeLifecycleHooks, createGroup: a.CreateAutoScalingGroup, updateGroup: a.UpdateAutoScalingGroup,
		deleteGroup: a.DeleteAutoScalingGroup, tagGroups: a.CreateOrUpdateTags, enableMetrics: a.EnableMetricsCollection,
		startRefresh: a.StartInstanceRefresh, putHook: a.PutLifecycleHook, deleteHook: a.DeleteLifecycleHook,
		heartbeat: a.RecordLifecycleActionHeartbeat, completeAction: a.CompleteLifecycleAction, rollbackRefresh: a.RollbackInstanceRefresh, cancelRefresh: a.CancelInstanceRefresh,
		clusters: k.ListClusters, nodegroups: k.ListNodegroups, cluster: k.DescribeCluster, nodegroup: k.DescribeNodegroup, createNodegroup: k.CreateNodegroup,
		updateConfig: k.UpdateNodegroupConfig, updateVersion: k.UpdateNodegroupVersion, deleteNodegroup: k.DeleteNodegroup,
		parameters: s.GetParameters, quota: q.GetServiceQuota, targetGroups: b.DescribeTargetGroups,
		prober: probe.New(probe.OfEC2(e), probe.OfIAM(i), probe.OfKMS(m), probe.OfElasticLoadBalancing(b), probe.OfServiceQuotas(q)),
	}
}
