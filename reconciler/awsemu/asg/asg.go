// Package asg is EC2 Auto Scaling: groups, their members, warm pools, hooks, instance refreshes, scheduled
// actions (package schedule) and scaling policies (package policy).
//
// A group moves towards its desired capacity after each change: unhealthy members are replaced, missing ones
// launched and surplus ones terminated. An instance refresh, or its rollback, replaces members in batches
// between checkpoints, step by step on a timer. Launches fail with EC2's errors, and are retried after a
// pause. EKS makes the groups of its nodegroups here.
package asg

import (
	"github.com/weir-gitops/weir/reconciler/awsemu/cloudwatch"
	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// Region is Auto Scaling's part of a region.
type Region struct {
	*world.Region `json:"-"`
	ec2           *ec2.Region
	alarms        *cloudwatch.Region
	listeners     *world.Script[HookListener]

	Groups        world.Table[*Group]        // by name
	LaunchConfigs world.Table[*LaunchConfig] // by name
	// Gone has the last activities of deleted groups, the oldest first.
	Gone []*activity
	// ActivitySeq is the number of activities so far.
	ActivitySeq uint64
}

// maxGone bounds the stored activities of deleted groups.
const maxGone = 500

// The timer kinds of Auto Scaling. The key is a group's key; for refreshes it is followed by the refresh's
// id.
const (
	timerScale     = "asg.scale"
	timerRetry     = "asg.retry"
	timerUnhealthy = "asg.unhealthy"
	timerHook      = "asg.hook"     // followed by the member's id and the token
	timerSchedule  = "asg.schedule" // followed by the action's name and id
	timerRefresh   = "asg.refresh"
	timerWarmPool  = "asg.warm-pool-gone"
)

// request is a call to the service.
type request = wire.Request[*Region]

// Service returns EC2 Auto Scaling.
func Service() *wire.Service {
	return wire.NewService("autoscaling", wire.QueryDialect(),
		wire.FormOp("CreateAutoScalingGroup", wire.Writes, createAutoScalingGroup),
		wire.FormOp("UpdateAutoScalingGroup", wire.Writes, updateAutoScalingGroup),
		wire.FormOp("DeleteAutoScalingGroup", wire.Writes, deleteAutoScalingGroup),
		wire.FormOp("DescribeAutoScalingGroups", wire.Reads, describeAutoScalingGroups),
		wire.FormOp("CreateLaunchConfiguration", wire.Writes, createLaunchConfiguration),
		wire.FormOp("DescribeLaunchConfigurations", wire.Reads, describeLaunchConfigurations),
		wire.FormOp("DeleteLaunchConfiguration", wire.Writes, deleteLaunchConfiguration),
		wire.FormOp("CreateOrUpdateTags", wire.Writes, createOrUpdateTags),
		wire.FormOp("DeleteTags", wire.Writes, deleteGroupTags),
		wire.FormOp("DescribeTags", wire.Reads, describeGroupTags),
		wire.FormOp("SuspendProcesses", wire.Writes, suspendProcesses),
		wire.FormOp("ResumeProcesses", wire.Writes, resumeProcesses),
		wire.FormOp("DescribeScalingProcessTypes", wire.Reads, describeProcessTypes),
		wire.FormOp("DescribeTerminationPolicyTypes", wire.Reads, describeTerminationPolicies),
		wire.FormOp("SetDesiredCapacity", wire.Writes, setDesiredCapacity),
		wire.FormOp("EnableMetricsCollection", wire.Writes, enableMetrics),
		wire.FormOp("DisableMetricsCollection", wire.Writes, disableMetrics),
		wire.FormOp("DescribeMetricCollectionTypes", wire.Reads, describeMetricTypes),
		wire.FormOp("AttachTrafficSources", wire.Writes, attachTrafficSources),
		wire.FormOp("DetachTrafficSources", wire.Writes, detachTrafficSources),
		wire.FormOp("DescribeTrafficSources", wire.Reads, describeTrafficSources),
		wire.FormOp("TerminateInstanceInAutoScalingGroup", wire.Writes, terminateInstanceInGroup),
		wire.FormOp("DescribeAccountLimits", wire.Reads, describeAccountLimits),
		wire.FormOp("DescribeScalingActivities", wire.Reads, describeScalingActivities),
		wire.FormOp("StartInstanceRefresh", wire.Writes, startInstanceRefresh),
		wire.FormOp("DescribeInstanceRefreshes", wire.Reads, describeInstanceRefreshes),
		wire.FormOp("CancelInstanceRefresh", wire.Writes, cancelInstanceRefresh),
		wire.FormOp("RollbackInstanceRefresh", wire.Writes, rollbackInstanceRefresh),
		wire.FormOp("PutLifecycleHook", wire.Writes, putLifecycleHook),
		wire.FormOp("DescribeLifecycleHooks", wire.Reads, describeLifecycleHooks),
		wire.FormOp("DeleteLifecycleHook", wire.Writes, deleteLifecycleHook),
		wire.FormOp("DescribeLifecycleHookTypes", wire.Reads, describeHookTypes),
		wire.FormOp("CompleteLifecycleAction", wire.Writes, completeLifecycleAction),
		wire.FormOp("RecordLifecycleActionHeartbeat", wire.Writes, recordHeartbeat),
		wire.FormOp("DescribeAutoScalingInstances", wire.Reads, describeAutoScalingInstances),
		wire.FormOp("SetInstanceProtection", wire.Writes, setInstanceProtection),
		wire.FormOp("SetInstanceHealth", wire.Writes, setInstanceHealth),
		wire.FormOp("EnterStandby", wire.Writes, enterStandby),
		wire.FormOp("ExitStandby", wire.Writes, exitStandby),
		wire.FormOp("AttachInstances", wire.Writes, attachInstances),
		wire.FormOp("DetachInstances", wire.Writes, detachInstances),
		wire.FormOp("PutScheduledUpdateGroupAction", wire.Writes, putScheduledAction),
		wire.FormOp("BatchPutScheduledUpdateGroupAction", wire.Writes, batchPutScheduledActions),
		wire.FormOp("DescribeScheduledActions", wire.Reads, describeScheduledActions),
		wire.FormOp("DeleteScheduledAction", wire.Writes, deleteScheduledAction),
		wire.FormOp("BatchDeleteScheduledAction", wire.Writes, batchDeleteScheduledActions),
		wire.FormOp("DescribeAdjustmentTypes", wire.Reads, describeAdjustmentTypes),
		wire.FormOp("PutScalingPolicy", wire.Writes, putScalingPolicy),
		wire.FormOp("DescribePolicies", wire.Reads, describePolicies),
		wire.FormOp("DeletePolicy", wire.Writes, deletePolicy),
		wire.FormOp("ExecutePolicy", wire.Writes, executePolicy),
		wire.FormOp("DescribeAutoScalingNotificationTypes", wire.Reads, describeNotificationTypes),
		wire.FormOp("PutNotificationConfiguration", wire.Writes, putNotification),
		wire.FormOp("DescribeNotificationConfigurations", wire.Reads, describeNotifications),
		wire.FormOp("DeleteNotificationConfiguration", wire.Writes, deleteNotification),
		wire.FormOp("PutWarmPool", wire.Writes, putWarmPool),
		wire.FormOp("DescribeWarmPool", wire.Reads, describeWarmPool),
		wire.FormOp("DeleteWarmPool", wire.Writes, deleteWarmPool),
		wire.FormOp("AttachLoadBalancerTargetGroups", wire.Writes, attachTargetGroups),
		wire.FormOp("DetachLoadBalancerTargetGroups", wire.Writes, detachTargetGroups),
		wire.FormOp("DescribeLoadBalancerTargetGroups", wire.Reads, describeTargetGroups),
		wire.FormOp("AttachLoadBalancers", wire.Writes, attachLoadBalancers),
		wire.FormOp("DetachLoadBalancers", wire.Writes, detachLoadBalancers),
		wire.FormOp("DescribeLoadBalancers", wire.Reads, describeLoadBalancers),
	)
}

// Timers returns the timed events of Auto Scaling, by kind.
func Timers() map[string]func(*Region, string) {
	return map[string]func(*Region, string){
		timerScale: runScale, timerRetry: runScale, timerUnhealthy: runUnhealthy, timerHook: runHook,
		timerSchedule: runSchedule, timerRefresh: runRefresh, timerWarmPool: runWarmPoolGone,
	}
}

// Join connects the region, new or read from JSON, with EC2, which launches the groups' instances, and with
// the alarms that end refreshes.
func (r *Region) Join(base *world.Region, machines *ec2.Region, alarms *cloudwatch.Region, listeners *world.Script[HookListener]) {
	r.Region, r.ec2, r.alarms, r.listeners = base, machines, alarms, listeners
}
