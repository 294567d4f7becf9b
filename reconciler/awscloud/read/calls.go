package read

import (
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
)

// EC2Calls contains the reading calls of EC2.
type EC2Calls struct {
	DescribeInstances              sdk.Call[ec2.DescribeInstancesInput, ec2.DescribeInstancesOutput, ec2.Options]
	DescribeLaunchTemplateVersions sdk.Call[ec2.DescribeLaunchTemplateVersionsInput, ec2.DescribeLaunchTemplateVersionsOutput, ec2.Options]
	DescribeLaunchTemplates        sdk.Call[ec2.DescribeLaunchTemplatesInput, ec2.DescribeLaunchTemplatesOutput, ec2.Options]
}

// OfEC2 returns the calls of a client.
func OfEC2(c *ec2.Client) EC2Calls {
	return EC2Calls{
		DescribeInstances: c.DescribeInstances, DescribeLaunchTemplateVersions: c.DescribeLaunchTemplateVersions,
		DescribeLaunchTemplates: c.DescribeLaunchTemplates,
	}
}

// AutoScalingCalls contains the reading calls of Auto Scaling.
type AutoScalingCalls struct {
	DescribeAutoScalingGroups    sdk.Call[autoscaling.DescribeAutoScalingGroupsInput, autoscaling.DescribeAutoScalingGroupsOutput, autoscaling.Options]
	DescribeInstanceRefreshes    sdk.Call[autoscaling.DescribeInstanceRefreshesInput, autoscaling.DescribeInstanceRefreshesOutput, autoscaling.Options]
	DescribeLaunchConfigurations sdk.Call[autoscaling.DescribeLaunchConfigurationsInput, autoscaling.DescribeLaunchConfigurationsOutput, autoscaling.Options]
	DescribeLifecycleHooks       sdk.Call[autoscaling.DescribeLifecycleHooksInput, autoscaling.DescribeLifecycleHooksOutput, autoscaling.Options]
	DescribeScalingActivities    sdk.Call[autoscaling.DescribeScalingActivitiesInput, autoscaling.DescribeScalingActivitiesOutput, autoscaling.Options]
}

// OfAutoScaling returns the calls of a client.
func OfAutoScaling(c *autoscaling.Client) AutoScalingCalls {
	return AutoScalingCalls{
		DescribeAutoScalingGroups: c.DescribeAutoScalingGroups, DescribeInstanceRefreshes: c.DescribeInstanceRefreshes,
		DescribeLaunchConfigurations: c.DescribeLaunchConfigurations, DescribeLifecycleHooks: c.DescribeLifecycleHooks,
		DescribeScalingActivities: c.DescribeScalingActivities,
	}
}

// EKSCalls contains the reading calls of EKS.
type EKSCalls struct {
	DescribeNodegroup sdk.Call[eks.DescribeNodegroupInput, eks.DescribeNodegroupOutput, eks.Options]
	DescribeUpdate    sdk.Call[eks.DescribeUpdateInput, eks.DescribeUpdateOutput, eks.Options]
	ListClusters      sdk.Call[eks.ListClustersInput, eks.ListClustersOutput, eks.Options]
	ListNodegroups    sdk.Call[eks.ListNodegroupsInput, eks.ListNodegroupsOutput, eks.Options]
	ListUpdates       sdk.Call[eks.ListUpdatesInput, eks.ListUpdatesOutput, eks.Options]
}

// OfEKS returns the calls of a client.
func OfEKS(c *eks.Client) EKSCalls {
	return EKSCalls{
		DescribeNodegroup: c.DescribeNodegroup, DescribeUpdate: c.DescribeUpdate, ListClusters: c.ListClusters, ListNodegroups: c.ListNodegroups,
		ListUpdates: c.ListUpdates,
	}
}

// CloudWatchCalls contains the reading calls of CloudWatch.
type CloudWatchCalls struct {
	DescribeAlarms sdk.Call[cloudwatch.DescribeAlarmsInput, cloudwatch.DescribeAlarmsOutput, cloudwatch.Options]
}

// OfCloudWatch returns the calls of a client.
func OfCloudWatch(c *cloudwatch.Client) CloudWatchCalls {
	return CloudWatchCalls{DescribeAlarms: c.DescribeAlarms}
}
