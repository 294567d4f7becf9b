package execute

import (
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
)

// EC2Calls contains the writing calls of EC2.
type EC2Calls struct {
	CreateLaunchTemplate         sdk.Call[ec2.CreateLaunchTemplateInput, ec2.CreateLaunchTemplateOutput, ec2.Options]
	CreateLaunchTemplateVersion  sdk.Call[ec2.CreateLaunchTemplateVersionInput, ec2.CreateLaunchTemplateVersionOutput, ec2.Options]
	CreateTags                   sdk.Call[ec2.CreateTagsInput, ec2.CreateTagsOutput, ec2.Options]
	DeleteLaunchTemplate         sdk.Call[ec2.DeleteLaunchTemplateInput, ec2.DeleteLaunchTemplateOutput, ec2.Options]
	DeleteLaunchTemplateVersions sdk.Call[ec2.DeleteLaunchTemplateVersionsInput, ec2.DeleteLaunchTemplateVersionsOutput, ec2.Options]
	DeleteTags                   sdk.Call[ec2.DeleteTagsInput, ec2.DeleteTagsOutput, ec2.Options]
	ModifyLaunchTemplate         sdk.Call[ec2.ModifyLaunchTemplateInput, ec2.ModifyLaunchTemplateOutput, ec2.Options]
}

// OfEC2 returns the calls of a client.
func OfEC2(c *ec2.Client) EC2Calls {
	return EC2Calls{
		CreateLaunchTemplate: c.CreateLaunchTemplate, CreateLaunchTemplateVersion: c.CreateLaunchTemplateVersion, CreateTags: c.CreateTags,
		DeleteLaunchTemplate: c.DeleteLaunchTemplate, DeleteLaunchTemplateVersions: c.DeleteLaunchTemplateVersions, DeleteTags: c.DeleteTags,
		ModifyLaunchTemplate: c.ModifyLaunchTemplate,
	}
}

// AutoScalingCalls contains the writing calls of Auto Scaling.
type AutoScalingCalls struct {
	AttachTrafficSources           sdk.Call[autoscaling.AttachTrafficSourcesInput, autoscaling.AttachTrafficSourcesOutput, autoscaling.Options]
	CancelInstanceRefresh          sdk.Call[autoscaling.CancelInstanceRefreshInput, autoscaling.CancelInstanceRefreshOutput, autoscaling.Options]
	CompleteLifecycleAction        sdk.Call[autoscaling.CompleteLifecycleActionInput, autoscaling.CompleteLifecycleActionOutput, autoscaling.Options]
	CreateAutoScalingGroup         sdk.Call[autoscaling.CreateAutoScalingGroupInput, autoscaling.CreateAutoScalingGroupOutput, autoscaling.Options]
	CreateOrUpdateTags             sdk.Call[autoscaling.CreateOrUpdateTagsInput, autoscaling.CreateOrUpdateTagsOutput, autoscaling.Options]
	DeleteAutoScalingGroup         sdk.Call[autoscaling.DeleteAutoScalingGroupInput, autoscaling.DeleteAutoScalingGroupOutput, autoscaling.Options]
	DeleteLifecycleHook            sdk.Call[autoscaling.DeleteLifecycleHookInput, autoscaling.DeleteLifecycleHookOutput, autoscaling.Options]
	DeleteTags                     sdk.Call[autoscaling.DeleteTagsInput, autoscaling.DeleteTagsOutput, autoscaling.Options]
	DeleteWarmPool                 sdk.Call[autoscaling.DeleteWarmPoolInput, autoscaling.DeleteWarmPoolOutput, autoscaling.Options]
	DetachTrafficSources           sdk.Call[autoscaling.DetachTrafficSourcesInput, autoscaling.DetachTrafficSourcesOutput, autoscaling.Options]
	DisableMetricsCollection       sdk.Call[autoscaling.DisableMetricsCollectionInput, autoscaling.DisableMetricsCollectionOutput, autoscaling.Options]
	EnableMetricsCollection        sdk.Call[autoscaling.EnableMetricsCollectionInput, autoscaling.EnableMetricsCollectionOutput, autoscaling.Options]
	PutLifecycleHook               sdk.Call[autoscaling.PutLifecycleHookInput, autoscaling.PutLifecycleHookOutput, autoscaling.Options]
	PutWarmPool                    sdk.Call[autoscaling.PutWarmPoolInput, autoscaling.PutWarmPoolOutput, autoscaling.Options]
	RecordLifecycleActionHeartbeat sdk.Call[autoscaling.RecordLifecycleActionHeartbeatInput, autoscaling.RecordLifecycleActionHeartbeatOutput, autoscaling.Options]
	RollbackInstanceRefresh        sdk.Call[autoscaling.RollbackInstanceRefreshInput, autoscaling.RollbackInstanceRefreshOutput, autoscaling.Options]
	ResumeProcesses                sdk.Call[autoscaling.ResumeProcessesInput, autoscaling.ResumeProcessesOutput, autoscaling.Options]
	StartInstanceRefresh           sdk.Call[autoscaling.StartInstanceRefreshInput, autoscaling.StartInstanceRefreshOutput, autoscaling.Options]
	SuspendProcesses               sdk.Call[autoscaling.SuspendProcessesInput, autoscaling.SuspendProcessesOutput, autoscaling.Options]
	UpdateAutoScalingGroup         sdk.Call[autoscaling.UpdateAutoScalingGroupInput, autoscaling.UpdateAutoScalingGroupOutput, autoscaling.Options]
}

// OfAutoScaling returns the calls of a client.
func OfAutoScaling(c *autoscaling.Client) AutoScalingCalls {
	return AutoScalingCalls{
		AttachTrafficSources: c.AttachTrafficSources, CancelInstanceRefresh: c.CancelInstanceRefresh, CompleteLifecycleAction: c.CompleteLifecycleAction,
		CreateAutoScalingGroup: c.CreateAutoScalingGroup, CreateOrUpdateTags: c.CreateOrUpdateTags, DeleteAutoScalingGroup: c.DeleteAutoScalingGroup,
		DeleteLifecycleHook: c.DeleteLifecycleHook, DeleteTags: c.DeleteTags, DeleteWarmPool: c.DeleteWarmPool, DetachTrafficSources: c.DetachTrafficSources,
		DisableMetricsCollection: c.DisableMetricsCollection, EnableMetricsCollection: c.EnableMetricsCollection, PutLifecycleHook: c.PutLifecycleHook,
		PutWarmPool: c.PutWarmPool, RecordLifecycleActionHeartbeat: c.RecordLifecycleActionHeartbeat, RollbackInstanceRefresh: c.RollbackInstanceRefresh,
		ResumeProcesses: c.ResumeProcesses, StartInstanceRefresh: c.StartInstanceRefresh, SuspendProcesses: c.SuspendProcesses,
		UpdateAutoScalingGroup: c.UpdateAutoScalingGroup,
	}
}

// EKSCalls contains the writing calls of EKS.
type EKSCalls struct {
	CreateNodegroup        sdk.Call[eks.CreateNodegroupInput, eks.CreateNodegroupOutput, eks.Options]
	DeleteNodegroup        sdk.Call[eks.DeleteNodegroupInput, eks.DeleteNodegroupOutput, eks.Options]
	TagResource            sdk.Call[eks.TagResourceInput, eks.TagResourceOutput, eks.Options]
	UntagResource          sdk.Call[eks.UntagResourceInput, eks.UntagResourceOutput, eks.Options]
	UpdateNodegroupConfig  sdk.Call[eks.UpdateNodegroupConfigInput, eks.UpdateNodegroupConfigOutput, eks.Options]
	UpdateNodegroupVersion sdk.Call[eks.UpdateNodegroupVersionInput, eks.UpdateNodegroupVersionOutput, eks.Options]
}

// OfEKS returns the calls of a client.
func OfEKS(c *eks.Client) EKSCalls {
	return EKSCalls{
		CreateNodegroup: c.CreateNodegroup, DeleteNodegroup: c.DeleteNodegroup, TagResource: c.TagResource, UntagResource: c.UntagResource,
		UpdateNodegroupConfig: c.UpdateNodegroupConfig, UpdateNodegroupVersion: c.UpdateNodegroupVersion,
	}
}
