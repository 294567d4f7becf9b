// Package asg is EC2 Auto Scaling: groups, their members, warm pools, hooks and
// instance refreshes.
//
// A group moves towards its desired capacity whenever something touches it: members
// that are not healthy are replaced, missing ones launched and surplus ones ended.
// An instance refresh, or its rollback, replaces members in batches between checkpoints,
// step by step on a timer. Launches fail as EC2 says, and are tried again later each
// time. EKS makes the groups of its nodegroups here.
package asg

import (
	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// Region is Auto Scaling's part of a region.
type Region struct {
	*world.Region `json:"-"`
	ec2           *ec2.Region
	hookFaults    *world.Script[HookFault]

	Groups world.Table[*Group] // by name
	// Gone are the last activities of deleted groups, oldest first.
	Gone []*activity
	// ActivitySeq is the number of activities so far.
	ActivitySeq uint64
}

// maxGone is how many activities of deleted groups are kept.
const maxGone = 500

// The timer kinds of Auto Scaling; the key is that of a group, for refreshes
// followed by the refresh's.
const (
	timerScale     = "asg.scale"
	timerRetry     = "asg.retry"
	timerUnhealthy = "asg.unhealthy"
	timerHook      = "asg.hook" // with what the hook does of itself
	timerRefresh   = "asg.refresh"
	timerWarmPool  = "asg.warm-pool-gone"
)

// request is a call to the service.
type request = wire.Request[*Region]

// Service is EC2 Auto Scaling.
func Service() *wire.Service {
	return wire.NewService("autoscaling", wire.QueryDialect(),
		wire.FormOp("CreateAutoScalingGroup", wire.Writes, parseCreateGroup, createAutoScalingGroup),
		wire.FormOp("UpdateAutoScalingGroup", wire.Writes, parseUpdateGroup, updateAutoScalingGroup),
		wire.FormOp("DeleteAutoScalingGroup", wire.Writes, parseDeleteGroup, deleteAutoScalingGroup),
		wire.FormOp("DescribeAutoScalingGroups", wire.Reads, parseDescribeGroups, describeAutoScalingGroups),
		wire.FormOp("CreateOrUpdateTags", wire.Writes, parseGroupTags, createOrUpdateTags),
		wire.FormOp("DeleteTags", wire.Writes, parseGroupTags, deleteGroupTags),
		wire.FormOp("DescribeTags", wire.Reads, parseDescribeGroupTags, describeGroupTags),
		wire.FormOp("SuspendProcesses", wire.Writes, parseProcesses, suspendProcesses),
		wire.FormOp("ResumeProcesses", wire.Writes, parseProcesses, resumeProcesses),
		wire.FormOp("SetDesiredCapacity", wire.Writes, parseSetDesired, setDesiredCapacity),
		wire.FormOp("EnableMetricsCollection", wire.Writes, parseEnableMetrics, enableMetrics),
		wire.FormOp("DisableMetricsCollection", wire.Writes, parseMetrics, disableMetrics),
		wire.FormOp("AttachTrafficSources", wire.Writes, parseTrafficSources, attachTrafficSources),
		wire.FormOp("DetachTrafficSources", wire.Writes, parseTrafficSources, detachTrafficSources),
		wire.FormOp("DescribeTrafficSources", wire.Reads, parseDescribeSources, describeTrafficSources),
		wire.FormOp("TerminateInstanceInAutoScalingGroup", wire.Writes, parseTerminateMember, terminateInstanceInGroup),
		wire.FormOp("DescribeAccountLimits", wire.Reads, func(*wire.Params) struct{} { return struct{}{} }, describeAccountLimits),
		wire.FormOp("DescribeScalingActivities", wire.Reads, parseDescribeActivities, describeScalingActivities),
		wire.FormOp("StartInstanceRefresh", wire.Writes, parseStartRefresh, startInstanceRefresh),
		wire.FormOp("DescribeInstanceRefreshes", wire.Reads, parseDescribeRefreshes, describeInstanceRefreshes),
		wire.FormOp("CancelInstanceRefresh", wire.Writes, parseCancelRefresh, cancelInstanceRefresh),
		wire.FormOp("RollbackInstanceRefresh", wire.Writes, nameOf, rollbackInstanceRefresh),
		wire.FormOp("PutLifecycleHook", wire.Writes, parsePutHook, putLifecycleHook),
		wire.FormOp("DescribeLifecycleHooks", wire.Reads, parseDescribeHooks, describeLifecycleHooks),
		wire.FormOp("DeleteLifecycleHook", wire.Writes, parseDeleteHook, deleteLifecycleHook),
		wire.FormOp("PutWarmPool", wire.Writes, parsePutWarmPool, putWarmPool),
		wire.FormOp("DescribeWarmPool", wire.Reads, parseDescribeWarmPool, describeWarmPool),
		wire.FormOp("DeleteWarmPool", wire.Writes, parseDeleteGroup, deleteWarmPool),
		wire.FormOp("AttachLoadBalancerTargetGroups", wire.Writes, parseTargetGroups, attachTargetGroups),
		wire.FormOp("DetachLoadBalancerTargetGroups", wire.Writes, parseTargetGroups, detachTargetGroups),
	)
}

// Timers are what happens later in Auto Scaling, by kind.
func Timers() map[string]func(*Region, string) {
	return map[string]func(*Region, string){
		timerScale: runScale, timerRetry: runScale, timerUnhealthy: runUnhealthy, timerHook: runHook,
		timerRefresh: runRefresh, timerWarmPool: runWarmPoolGone,
	}
}

// Join connects the region, which is new or was read from JSON, with EC2, of which
// groups launch their instances.
func (r *Region) Join(base *world.Region, machines *ec2.Region, hooks *world.Script[HookFault]) {
	r.Region, r.ec2, r.hookFaults = base, machines, hooks
}
