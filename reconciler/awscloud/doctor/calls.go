package doctor

import (
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

// calls contains the operations of a visit.
type calls struct {
	createTemplate   sdk.Call[ec2.CreateLaunchTemplateInput, ec2.CreateLaunchTemplateOutput, ec2.Options]
	createVersion    sdk.Call[ec2.CreateLaunchTemplateVersionInput, ec2.CreateLaunchTemplateVersionOutput, ec2.Options]
	deleteTemplate   sdk.Call[ec2.DeleteLaunchTemplateInput, ec2.DeleteLaunchTemplateOutput, ec2.Options]
	deleteVersions   sdk.Call[ec2.DeleteLaunchTemplateVersionsInput, ec2.DeleteLaunchTemplateVersionsOutput, ec2.Options]
	describeVersions sdk.Call[ec2.DescribeLaunchTemplateVersionsInput, ec2.DescribeLaunchTemplateVersionsOutput, ec2.Options]
	templates        sdk.Call[ec2.DescribeLaunchTemplatesInput, ec2.DescribeLaunchTemplatesOutput, ec2.Options]
	images           sdk.Call[ec2.DescribeImagesInput, ec2.DescribeImagesOutput, ec2.Options]
	subnets          sdk.Call[ec2.DescribeSubnetsInput, ec2.DescribeSubnetsOutput, ec2.Options]
	securityGroups   sdk.Call[ec2.DescribeSecurityGroupsInput, ec2.DescribeSecurityGroupsOutput, ec2.Options]
	vpcs             sdk.Call[ec2.DescribeVpcsInput, ec2.DescribeVpcsOutput, ec2.Options]
	run              sdk.Call[ec2.RunInstancesInput, ec2.RunInstancesOutput, ec2.Options]
	instanceTypes    sdk.Call[ec2.DescribeInstanceTypesInput, ec2.DescribeInstanceTypesOutput, ec2.Options]

	groups          sdk.Call[autoscaling.DescribeAutoScalingGroupsInput, autoscaling.DescribeAutoScalingGroupsOutput, autoscaling.Options]
	activities      sdk.Call[autoscaling.DescribeScalingActivitiesInput, autoscaling.DescribeScalingActivitiesOutput, autoscaling.Options]
	refreshes       sdk.Call[autoscaling.DescribeInstanceRefreshesInput, autoscaling.DescribeInstanceRefreshesOutput, autoscaling.Options]
	hooks           sdk.Call[autoscaling.DescribeLifecycleHooksInput, autoscaling.DescribeLifecycleHooksOutput, autoscaling.Options]
	createGroup     sdk.Call[autoscaling.CreateAutoScalingGroupInput, autoscaling.CreateAutoScalingGroupOutput, autoscaling.Options]
	updateGroup     sdk.Call[autoscaling.UpdateAutoScalingGroupInput, autoscaling.UpdateAutoScalingGroupOutput, autoscaling.Options]
	deleteGroup     sdk.Call[autoscaling.DeleteAutoScalingGroupInput, autoscaling.DeleteAutoScalingGroupOutput, autoscaling.Options]
	tagGroups       sdk.Call[autoscaling.CreateOrUpdateTagsInput, autoscaling.CreateOrUpdateTagsOutput, autoscaling.Options]
	enableMetrics   sdk.Call[autoscaling.EnableMetricsCollectionInput, autoscaling.EnableMetricsCollectionOutput, autoscaling.Options]
	startRefresh    sdk.Call[autoscaling.StartInstanceRefreshInput, autoscaling.StartInstanceRefreshOutput, autoscaling.Options]
	putHook         sdk.Call[autoscaling.PutLifecycleHookInput, autoscaling.PutLifecycleHookOutput, autoscaling.Options]
	deleteHook      sdk.Call[autoscaling.DeleteLifecycleHookInput, autoscaling.DeleteLifecycleHookOutput, autoscaling.Options]
	heartbeat       sdk.Call[autoscaling.RecordLifecycleActionHeartbeatInput, autoscaling.RecordLifecycleActionHeartbeatOutput, autoscaling.Options]
	completeAction  sdk.Call[autoscaling.CompleteLifecycleActionInput, autoscaling.CompleteLifecycleActionOutput, autoscaling.Options]
	rollbackRefresh sdk.Call[autoscaling.RollbackInstanceRefreshInput, autoscaling.RollbackInstanceRefreshOutput, autoscaling.Options]
	cancelRefresh   sdk.Call[autoscaling.CancelInstanceRefreshInput, autoscaling.CancelInstanceRefreshOutput, autoscaling.Options]

	clusters        sdk.Call[eks.ListClustersInput, eks.ListClustersOutput, eks.Options]
	nodegroups      sdk.Call[eks.ListNodegroupsInput, eks.ListNodegroupsOutput, eks.Options]
	cluster         sdk.Call[eks.DescribeClusterInput, eks.DescribeClusterOutput, eks.Options]
	nodegroup       sdk.Call[eks.DescribeNodegroupInput, eks.DescribeNodegroupOutput, eks.Options]
	createNodegroup sdk.Call[eks.CreateNodegroupInput, eks.CreateNodegroupOutput, eks.Options]
	updateConfig    sdk.Call[eks.UpdateNodegroupConfigInput, eks.UpdateNodegroupConfigOutput, eks.Options]
	updateVersion   sdk.Call[eks.UpdateNodegroupVersionInput, eks.UpdateNodegroupVersionOutput, eks.Options]
	deleteNodegroup sdk.Call[eks.DeleteNodegroupInput, eks.DeleteNodegroupOutput, eks.Options]

	parameters sdk.Call[ssm.GetParametersInput, ssm.GetParametersOutput, ssm.Options]

	quota        sdk.Call[servicequotas.GetServiceQuotaInput, servicequotas.GetServiceQuotaOutput, servicequotas.Options]
	targetGroups sdk.Call[elb.DescribeTargetGroupsInput, elb.DescribeTargetGroupsOutput, elb.Options]
	prober       *probe.Prober

	placementGroups sdk.Call[ec2.DescribePlacementGroupsInput, ec2.DescribePlacementGroupsOutput, ec2.Options]
}

// callsOf returns the calls of AWS's SDK that the doctor makes with a client.
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
