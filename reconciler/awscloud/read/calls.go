package read

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
)

// Operations are held as functions and not as the SDK's clients: a client that is part of
// a value's type keeps all of its several hundred operations in the binary, 40 MB of them.

// EC2Calls are the calls of EC2 that are made here.
type EC2Calls struct {
	DescribeInstances              func(context.Context, *ec2.DescribeInstancesInput, ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error)
	DescribeLaunchTemplateVersions func(context.Context, *ec2.DescribeLaunchTemplateVersionsInput, ...func(*ec2.Options)) (*ec2.DescribeLaunchTemplateVersionsOutput, error)
	DescribeLaunchTemplates        func(context.Context, *ec2.DescribeLaunchTemplatesInput, ...func(*ec2.Options)) (*ec2.DescribeLaunchTemplatesOutput, error)
}

// OfEC2 takes them from a client.
func OfEC2(c *ec2.Client) EC2Calls {
	return EC2Calls{
		DescribeInstances:              c.DescribeInstances,
		DescribeLaunchTemplateVersions: c.DescribeLaunchTemplateVersions,
		DescribeLaunchTemplates:        c.DescribeLaunchTemplates,
	}
}

// AutoScalingCalls are those of Auto Scaling.
type AutoScalingCalls struct {
	DescribeAutoScalingGroups    func(context.Context, *autoscaling.DescribeAutoScalingGroupsInput, ...func(*autoscaling.Options)) (*autoscaling.DescribeAutoScalingGroupsOutput, error)
	DescribeInstanceRefreshes    func(context.Context, *autoscaling.DescribeInstanceRefreshesInput, ...func(*autoscaling.Options)) (*autoscaling.DescribeInstanceRefreshesOutput, error)
	DescribeLaunchConfigurations func(context.Context, *autoscaling.DescribeLaunchConfigurationsInput, ...func(*autoscaling.Options)) (*autoscaling.DescribeLaunchConfigurationsOutput, error)
	DescribeLifecycleHooks       func(context.Context, *autoscaling.DescribeLifecycleHooksInput, ...func(*autoscaling.Options)) (*autoscaling.DescribeLifecycleHooksOutput, error)
	DescribeScalingActivities    func(context.Context, *autoscaling.DescribeScalingActivitiesInput, ...func(*autoscaling.Options)) (*autoscaling.DescribeScalingActivitiesOutput, error)
}

// OfAutoScaling takes them from a client.
func OfAutoScaling(c *autoscaling.Client) AutoScalingCalls {
	return AutoScalingCalls{
		DescribeAutoScalingGroups:    c.DescribeAutoScalingGroups,
		DescribeInstanceRefreshes:    c.DescribeInstanceRefreshes,
		DescribeLaunchConfigurations: c.DescribeLaunchConfigurations,
		DescribeLifecycleHooks:       c.DescribeLifecycleHooks,
		DescribeScalingActivities:    c.DescribeScalingActivities,
	}
}

// EKSCalls are those of EKS.
type EKSCalls struct {
	DescribeNodegroup func(context.Context, *eks.DescribeNodegroupInput, ...func(*eks.Options)) (*eks.DescribeNodegroupOutput, error)
	DescribeUpdate    func(context.Context, *eks.DescribeUpdateInput, ...func(*eks.Options)) (*eks.DescribeUpdateOutput, error)
	ListClusters      func(context.Context, *eks.ListClustersInput, ...func(*eks.Options)) (*eks.ListClustersOutput, error)
	ListNodegroups    func(context.Context, *eks.ListNodegroupsInput, ...func(*eks.Options)) (*eks.ListNodegroupsOutput, error)
	ListUpdates       func(context.Context, *eks.ListUpdatesInput, ...func(*eks.Options)) (*eks.ListUpdatesOutput, error)
}

// OfEKS takes them from a client.
func OfEKS(c *eks.Client) EKSCalls {
	return EKSCalls{
		DescribeNodegroup: c.DescribeNodegroup,
		DescribeUpdate:    c.DescribeUpdate,
		ListClusters:      c.ListClusters,
		ListNodegroups:    c.ListNodegroups,
		ListUpdates:       c.ListUpdates,
	}
}

// CloudWatchCalls are those of CloudWatch.
type CloudWatchCalls struct {
	DescribeAlarms func(context.Context, *cloudwatch.DescribeAlarmsInput, ...func(*cloudwatch.Options)) (*cloudwatch.DescribeAlarmsOutput, error)
}

// OfCloudWatch takes them from a client.
func OfCloudWatch(c *cloudwatch.Client) CloudWatchCalls {
	return CloudWatchCalls{DescribeAlarms: c.DescribeAlarms}
}
