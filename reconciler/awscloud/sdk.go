package awscloud

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
)

// The operations that weir uses, one by one: what stands here is what its IAM
// policy has to allow. They are held as functions rather than as the SDK's
// clients, because a client that is part of a value's type keeps all of its
// several hundred operations in the binary.

// call is one operation of a client with options O.
type call[In, Out, O any] func(context.Context, *In, ...func(*O)) (*Out, error)

type ec2Calls struct {
	CreateLaunchTemplate           call[ec2.CreateLaunchTemplateInput, ec2.CreateLaunchTemplateOutput, ec2.Options]
	CreateLaunchTemplateVersion    call[ec2.CreateLaunchTemplateVersionInput, ec2.CreateLaunchTemplateVersionOutput, ec2.Options]
	CreateTags                     call[ec2.CreateTagsInput, ec2.CreateTagsOutput, ec2.Options]
	DeleteLaunchTemplate           call[ec2.DeleteLaunchTemplateInput, ec2.DeleteLaunchTemplateOutput, ec2.Options]
	DeleteTags                     call[ec2.DeleteTagsInput, ec2.DeleteTagsOutput, ec2.Options]
	DeleteLaunchTemplateVersions   call[ec2.DeleteLaunchTemplateVersionsInput, ec2.DeleteLaunchTemplateVersionsOutput, ec2.Options]
	DescribeImages                 call[ec2.DescribeImagesInput, ec2.DescribeImagesOutput, ec2.Options]
	DescribeInstanceTypes          call[ec2.DescribeInstanceTypesInput, ec2.DescribeInstanceTypesOutput, ec2.Options]
	DescribeInstances              call[ec2.DescribeInstancesInput, ec2.DescribeInstancesOutput, ec2.Options]
	DescribeLaunchTemplateVersions call[ec2.DescribeLaunchTemplateVersionsInput, ec2.DescribeLaunchTemplateVersionsOutput, ec2.Options]
	DescribeLaunchTemplates        call[ec2.DescribeLaunchTemplatesInput, ec2.DescribeLaunchTemplatesOutput, ec2.Options]
	DescribeSecurityGroups         call[ec2.DescribeSecurityGroupsInput, ec2.DescribeSecurityGroupsOutput, ec2.Options]
	DescribeSubnets                call[ec2.DescribeSubnetsInput, ec2.DescribeSubnetsOutput, ec2.Options]
	DescribeVpcs                   call[ec2.DescribeVpcsInput, ec2.DescribeVpcsOutput, ec2.Options]
	ModifyLaunchTemplate           call[ec2.ModifyLaunchTemplateInput, ec2.ModifyLaunchTemplateOutput, ec2.Options]
}

type autoscalingCalls struct {
	AttachTrafficSources      call[autoscaling.AttachTrafficSourcesInput, autoscaling.AttachTrafficSourcesOutput, autoscaling.Options]
	CancelInstanceRefresh     call[autoscaling.CancelInstanceRefreshInput, autoscaling.CancelInstanceRefreshOutput, autoscaling.Options]
	CreateAutoScalingGroup    call[autoscaling.CreateAutoScalingGroupInput, autoscaling.CreateAutoScalingGroupOutput, autoscaling.Options]
	CreateOrUpdateTags        call[autoscaling.CreateOrUpdateTagsInput, autoscaling.CreateOrUpdateTagsOutput, autoscaling.Options]
	DeleteAutoScalingGroup    call[autoscaling.DeleteAutoScalingGroupInput, autoscaling.DeleteAutoScalingGroupOutput, autoscaling.Options]
	DeleteLifecycleHook       call[autoscaling.DeleteLifecycleHookInput, autoscaling.DeleteLifecycleHookOutput, autoscaling.Options]
	DeleteTags                call[autoscaling.DeleteTagsInput, autoscaling.DeleteTagsOutput, autoscaling.Options]
	DeleteWarmPool            call[autoscaling.DeleteWarmPoolInput, autoscaling.DeleteWarmPoolOutput, autoscaling.Options]
	DescribeAutoScalingGroups call[autoscaling.DescribeAutoScalingGroupsInput, autoscaling.DescribeAutoScalingGroupsOutput, autoscaling.Options]
	DescribeInstanceRefreshes call[autoscaling.DescribeInstanceRefreshesInput, autoscaling.DescribeInstanceRefreshesOutput, autoscaling.Options]
	DescribeLifecycleHooks    call[autoscaling.DescribeLifecycleHooksInput, autoscaling.DescribeLifecycleHooksOutput, autoscaling.Options]
	DescribeScalingActivities call[autoscaling.DescribeScalingActivitiesInput, autoscaling.DescribeScalingActivitiesOutput, autoscaling.Options]
	DetachTrafficSources      call[autoscaling.DetachTrafficSourcesInput, autoscaling.DetachTrafficSourcesOutput, autoscaling.Options]
	DisableMetricsCollection  call[autoscaling.DisableMetricsCollectionInput, autoscaling.DisableMetricsCollectionOutput, autoscaling.Options]
	EnableMetricsCollection   call[autoscaling.EnableMetricsCollectionInput, autoscaling.EnableMetricsCollectionOutput, autoscaling.Options]
	PutLifecycleHook          call[autoscaling.PutLifecycleHookInput, autoscaling.PutLifecycleHookOutput, autoscaling.Options]
	PutWarmPool               call[autoscaling.PutWarmPoolInput, autoscaling.PutWarmPoolOutput, autoscaling.Options]
	ResumeProcesses           call[autoscaling.ResumeProcessesInput, autoscaling.ResumeProcessesOutput, autoscaling.Options]
	StartInstanceRefresh      call[autoscaling.StartInstanceRefreshInput, autoscaling.StartInstanceRefreshOutput, autoscaling.Options]
	SuspendProcesses          call[autoscaling.SuspendProcessesInput, autoscaling.SuspendProcessesOutput, autoscaling.Options]
	UpdateAutoScalingGroup    call[autoscaling.UpdateAutoScalingGroupInput, autoscaling.UpdateAutoScalingGroupOutput, autoscaling.Options]
}

type eksCalls struct {
	CreateNodegroup        call[eks.CreateNodegroupInput, eks.CreateNodegroupOutput, eks.Options]
	DeleteNodegroup        call[eks.DeleteNodegroupInput, eks.DeleteNodegroupOutput, eks.Options]
	DescribeCluster        call[eks.DescribeClusterInput, eks.DescribeClusterOutput, eks.Options]
	DescribeNodegroup      call[eks.DescribeNodegroupInput, eks.DescribeNodegroupOutput, eks.Options]
	DescribeUpdate         call[eks.DescribeUpdateInput, eks.DescribeUpdateOutput, eks.Options]
	ListClusters           call[eks.ListClustersInput, eks.ListClustersOutput, eks.Options]
	ListNodegroups         call[eks.ListNodegroupsInput, eks.ListNodegroupsOutput, eks.Options]
	ListUpdates            call[eks.ListUpdatesInput, eks.ListUpdatesOutput, eks.Options]
	TagResource            call[eks.TagResourceInput, eks.TagResourceOutput, eks.Options]
	UntagResource          call[eks.UntagResourceInput, eks.UntagResourceOutput, eks.Options]
	UpdateNodegroupConfig  call[eks.UpdateNodegroupConfigInput, eks.UpdateNodegroupConfigOutput, eks.Options]
	UpdateNodegroupVersion call[eks.UpdateNodegroupVersionInput, eks.UpdateNodegroupVersionOutput, eks.Options]
}

type ssmCalls struct {
	AddTagsToResource   call[ssm.AddTagsToResourceInput, ssm.AddTagsToResourceOutput, ssm.Options]
	DeleteParameter     call[ssm.DeleteParameterInput, ssm.DeleteParameterOutput, ssm.Options]
	DescribeParameters  call[ssm.DescribeParametersInput, ssm.DescribeParametersOutput, ssm.Options]
	GetParameters       call[ssm.GetParametersInput, ssm.GetParametersOutput, ssm.Options]
	ListTagsForResource call[ssm.ListTagsForResourceInput, ssm.ListTagsForResourceOutput, ssm.Options]
	PutParameter        call[ssm.PutParameterInput, ssm.PutParameterOutput, ssm.Options]
}

type iamCalls struct {
	GetRole call[iam.GetRoleInput, iam.GetRoleOutput, iam.Options]
}

func newEC2Calls(c *ec2.Client) ec2Calls {
	return ec2Calls{
		CreateLaunchTemplate:           c.CreateLaunchTemplate,
		CreateLaunchTemplateVersion:    c.CreateLaunchTemplateVersion,
		CreateTags:                     c.CreateTags,
		DeleteLaunchTemplate:           c.DeleteLaunchTemplate,
		DeleteTags:                     c.DeleteTags,
		DeleteLaunchTemplateVersions:   c.DeleteLaunchTemplateVersions,
		DescribeInstances:              c.DescribeInstances,
		DescribeImages:                 c.DescribeImages,
		DescribeInstanceTypes:          c.DescribeInstanceTypes,
		DescribeLaunchTemplateVersions: c.DescribeLaunchTemplateVersions,
		DescribeLaunchTemplates:        c.DescribeLaunchTemplates,
		DescribeSecurityGroups:         c.DescribeSecurityGroups,
		DescribeSubnets:                c.DescribeSubnets,
		DescribeVpcs:                   c.DescribeVpcs,
		ModifyLaunchTemplate:           c.ModifyLaunchTemplate,
	}
}

func newAutoScalingCalls(c *autoscaling.Client) autoscalingCalls {
	return autoscalingCalls{
		AttachTrafficSources:      c.AttachTrafficSources,
		CancelInstanceRefresh:     c.CancelInstanceRefresh,
		CreateAutoScalingGroup:    c.CreateAutoScalingGroup,
		CreateOrUpdateTags:        c.CreateOrUpdateTags,
		DeleteAutoScalingGroup:    c.DeleteAutoScalingGroup,
		DeleteLifecycleHook:       c.DeleteLifecycleHook,
		DeleteTags:                c.DeleteTags,
		DeleteWarmPool:            c.DeleteWarmPool,
		DescribeAutoScalingGroups: c.DescribeAutoScalingGroups,
		DescribeInstanceRefreshes: c.DescribeInstanceRefreshes,
		DescribeLifecycleHooks:    c.DescribeLifecycleHooks,
		DescribeScalingActivities: c.DescribeScalingActivities,
		DetachTrafficSources:      c.DetachTrafficSources,
		DisableMetricsCollection:  c.DisableMetricsCollection,
		EnableMetricsCollection:   c.EnableMetricsCollection,
		PutLifecycleHook:          c.PutLifecycleHook,
		PutWarmPool:               c.PutWarmPool,
		ResumeProcesses:           c.ResumeProcesses,
		StartInstanceRefresh:      c.StartInstanceRefresh,
		SuspendProcesses:          c.SuspendProcesses,
		UpdateAutoScalingGroup:    c.UpdateAutoScalingGroup,
	}
}

func newEKSCalls(c *eks.Client) eksCalls {
	return eksCalls{
		CreateNodegroup:        c.CreateNodegroup,
		DeleteNodegroup:        c.DeleteNodegroup,
		DescribeCluster:        c.DescribeCluster,
		DescribeNodegroup:      c.DescribeNodegroup,
		DescribeUpdate:         c.DescribeUpdate,
		ListClusters:           c.ListClusters,
		ListNodegroups:         c.ListNodegroups,
		ListUpdates:            c.ListUpdates,
		TagResource:            c.TagResource,
		UntagResource:          c.UntagResource,
		UpdateNodegroupConfig:  c.UpdateNodegroupConfig,
		UpdateNodegroupVersion: c.UpdateNodegroupVersion,
	}
}

func newSSMCalls(c *ssm.Client) ssmCalls {
	return ssmCalls{
		AddTagsToResource:   c.AddTagsToResource,
		DeleteParameter:     c.DeleteParameter,
		DescribeParameters:  c.DescribeParameters,
		GetParameters:       c.GetParameters,
		ListTagsForResource: c.ListTagsForResource,
		PutParameter:        c.PutParameter,
	}
}

func newIAMCalls(c *iam.Client) iamCalls {
	return iamCalls{
		GetRole: c.GetRole,
	}
}
