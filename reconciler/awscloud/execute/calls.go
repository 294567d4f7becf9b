package execute

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
)

// Operations are held as functions and not as the SDK's clients: a client that is part of
// a value's type keeps all of its several hundred operations in the binary, 40 MB of them.

// EC2Calls are the calls of EC2 that write.
type EC2Calls struct {
	CreateLaunchTemplate         func(context.Context, *ec2.CreateLaunchTemplateInput, ...func(*ec2.Options)) (*ec2.CreateLaunchTemplateOutput, error)
	CreateLaunchTemplateVersion  func(context.Context, *ec2.CreateLaunchTemplateVersionInput, ...func(*ec2.Options)) (*ec2.CreateLaunchTemplateVersionOutput, error)
	CreateTags                   func(context.Context, *ec2.CreateTagsInput, ...func(*ec2.Options)) (*ec2.CreateTagsOutput, error)
	DeleteLaunchTemplate         func(context.Context, *ec2.DeleteLaunchTemplateInput, ...func(*ec2.Options)) (*ec2.DeleteLaunchTemplateOutput, error)
	DeleteLaunchTemplateVersions func(context.Context, *ec2.DeleteLaunchTemplateVersionsInput, ...func(*ec2.Options)) (*ec2.DeleteLaunchTemplateVersionsOutput, error)
	DeleteTags                   func(context.Context, *ec2.DeleteTagsInput, ...func(*ec2.Options)) (*ec2.DeleteTagsOutput, error)
	ModifyLaunchTemplate         func(context.Context, *ec2.ModifyLaunchTemplateInput, ...func(*ec2.Options)) (*ec2.ModifyLaunchTemplateOutput, error)
}

// OfEC2 takes them from a client.
func OfEC2(c *ec2.Client) EC2Calls {
	return EC2Calls{
		CreateLaunchTemplate:         c.CreateLaunchTemplate,
		CreateLaunchTemplateVersion:  c.CreateLaunchTemplateVersion,
		CreateTags:                   c.CreateTags,
		DeleteLaunchTemplate:         c.DeleteLaunchTemplate,
		DeleteLaunchTemplateVersions: c.DeleteLaunchTemplateVersions,
		DeleteTags:                   c.DeleteTags,
		ModifyLaunchTemplate:         c.ModifyLaunchTemplate,
	}
}

// AutoScalingCalls are those of Auto Scaling.
type AutoScalingCalls struct {
	AttachTrafficSources           func(context.Context, *autoscaling.AttachTrafficSourcesInput, ...func(*autoscaling.Options)) (*autoscaling.AttachTrafficSourcesOutput, error)
	CancelInstanceRefresh          func(context.Context, *autoscaling.CancelInstanceRefreshInput, ...func(*autoscaling.Options)) (*autoscaling.CancelInstanceRefreshOutput, error)
	CompleteLifecycleAction        func(context.Context, *autoscaling.CompleteLifecycleActionInput, ...func(*autoscaling.Options)) (*autoscaling.CompleteLifecycleActionOutput, error)
	CreateAutoScalingGroup         func(context.Context, *autoscaling.CreateAutoScalingGroupInput, ...func(*autoscaling.Options)) (*autoscaling.CreateAutoScalingGroupOutput, error)
	CreateOrUpdateTags             func(context.Context, *autoscaling.CreateOrUpdateTagsInput, ...func(*autoscaling.Options)) (*autoscaling.CreateOrUpdateTagsOutput, error)
	DeleteAutoScalingGroup         func(context.Context, *autoscaling.DeleteAutoScalingGroupInput, ...func(*autoscaling.Options)) (*autoscaling.DeleteAutoScalingGroupOutput, error)
	DeleteLifecycleHook            func(context.Context, *autoscaling.DeleteLifecycleHookInput, ...func(*autoscaling.Options)) (*autoscaling.DeleteLifecycleHookOutput, error)
	DeleteTags                     func(context.Context, *autoscaling.DeleteTagsInput, ...func(*autoscaling.Options)) (*autoscaling.DeleteTagsOutput, error)
	DeleteWarmPool                 func(context.Context, *autoscaling.DeleteWarmPoolInput, ...func(*autoscaling.Options)) (*autoscaling.DeleteWarmPoolOutput, error)
	DetachTrafficSources           func(context.Context, *autoscaling.DetachTrafficSourcesInput, ...func(*autoscaling.Options)) (*autoscaling.DetachTrafficSourcesOutput, error)
	DisableMetricsCollection       func(context.Context, *autoscaling.DisableMetricsCollectionInput, ...func(*autoscaling.Options)) (*autoscaling.DisableMetricsCollectionOutput, error)
	EnableMetricsCollection        func(context.Context, *autoscaling.EnableMetricsCollectionInput, ...func(*autoscaling.Options)) (*autoscaling.EnableMetricsCollectionOutput, error)
	PutLifecycleHook               func(context.Context, *autoscaling.PutLifecycleHookInput, ...func(*autoscaling.Options)) (*autoscaling.PutLifecycleHookOutput, error)
	PutWarmPool                    func(context.Context, *autoscaling.PutWarmPoolInput, ...func(*autoscaling.Options)) (*autoscaling.PutWarmPoolOutput, error)
	RecordLifecycleActionHeartbeat func(context.Context, *autoscaling.RecordLifecycleActionHeartbeatInput, ...func(*autoscaling.Options)) (*autoscaling.RecordLifecycleActionHeartbeatOutput, error)
	RollbackInstanceRefresh        func(context.Context, *autoscaling.RollbackInstanceRefreshInput, ...func(*autoscaling.Options)) (*autoscaling.RollbackInstanceRefreshOutput, error)
	ResumeProcesses                func(context.Context, *autoscaling.ResumeProcessesInput, ...func(*autoscaling.Options)) (*autoscaling.ResumeProcessesOutput, error)
	StartInstanceRefresh           func(context.Context, *autoscaling.StartInstanceRefreshInput, ...func(*autoscaling.Options)) (*autoscaling.StartInstanceRefreshOutput, error)
	SuspendProcesses               func(context.Context, *autoscaling.SuspendProcessesInput, ...func(*autoscaling.Options)) (*autoscaling.SuspendProcessesOutput, error)
	UpdateAutoScalingGroup         func(context.Context, *autoscaling.UpdateAutoScalingGroupInput, ...func(*autoscaling.Options)) (*autoscaling.UpdateAutoScalingGroupOutput, error)
}

// OfAutoScaling takes them from a client.
func OfAutoScaling(c *autoscaling.Client) AutoScalingCalls {
	return AutoScalingCalls{
		AttachTrafficSources:           c.AttachTrafficSources,
		CancelInstanceRefresh:          c.CancelInstanceRefresh,
		CompleteLifecycleAction:        c.CompleteLifecycleAction,
		CreateAutoScalingGroup:         c.CreateAutoScalingGroup,
		CreateOrUpdateTags:             c.CreateOrUpdateTags,
		DeleteAutoScalingGroup:         c.DeleteAutoScalingGroup,
		DeleteLifecycleHook:            c.DeleteLifecycleHook,
		DeleteTags:                     c.DeleteTags,
		DeleteWarmPool:                 c.DeleteWarmPool,
		DetachTrafficSources:           c.DetachTrafficSources,
		DisableMetricsCollection:       c.DisableMetricsCollection,
		EnableMetricsCollection:        c.EnableMetricsCollection,
		PutLifecycleHook:               c.PutLifecycleHook,
		PutWarmPool:                    c.PutWarmPool,
		RecordLifecycleActionHeartbeat: c.RecordLifecycleActionHeartbeat,
		RollbackInstanceRefresh:        c.RollbackInstanceRefresh,
		ResumeProcesses:                c.ResumeProcesses,
		StartInstanceRefresh:           c.StartInstanceRefresh,
		SuspendProcesses:               c.SuspendProcesses,
		UpdateAutoScalingGroup:         c.UpdateAutoScalingGroup,
	}
}

// EKSCalls are those of EKS.
type EKSCalls struct {
	CreateNodegroup        func(context.Context, *eks.CreateNodegroupInput, ...func(*eks.Options)) (*eks.CreateNodegroupOutput, error)
	DeleteNodegroup        func(context.Context, *eks.DeleteNodegroupInput, ...func(*eks.Options)) (*eks.DeleteNodegroupOutput, error)
	TagResource            func(context.Context, *eks.TagResourceInput, ...func(*eks.Options)) (*eks.TagResourceOutput, error)
	UntagResource          func(context.Context, *eks.UntagResourceInput, ...func(*eks.Options)) (*eks.UntagResourceOutput, error)
	UpdateNodegroupConfig  func(context.Context, *eks.UpdateNodegroupConfigInput, ...func(*eks.Options)) (*eks.UpdateNodegroupConfigOutput, error)
	UpdateNodegroupVersion func(context.Context, *eks.UpdateNodegroupVersionInput, ...func(*eks.Options)) (*eks.UpdateNodegroupVersionOutput, error)
}

// OfEKS takes them from a client.
func OfEKS(c *eks.Client) EKSCalls {
	return EKSCalls{
		CreateNodegroup:        c.CreateNodegroup,
		DeleteNodegroup:        c.DeleteNodegroup,
		TagResource:            c.TagResource,
		UntagResource:          c.UntagResource,
		UpdateNodegroupConfig:  c.UpdateNodegroupConfig,
		UpdateNodegroupVersion: c.UpdateNodegroupVersion,
	}
}
