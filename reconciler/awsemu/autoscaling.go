package awsemu

import "github.com/weir-gitops/weir/reconciler/awsemu/model"

// asgState is Auto Scaling's part of a region.
type asgState struct {
	Groups table[*asgGroup] // by name
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

// autoscalingService is EC2 Auto Scaling.
func autoscalingService() *service {
	sv := &service{
		Service: model.Services()["autoscaling"], dialect: queryDialect(), instanceChanged: groupInstanceChanged,
		timers: map[string]timerFunc{
			timerScale: runScale, timerRetry: runScale, timerUnhealthy: runUnhealthy, timerHook: runHook,
			timerRefresh: runRefresh, timerWarmPool: runWarmPoolGone,
		},
	}
	sv.register(
		queryOp("CreateAutoScalingGroup", writes, parseCreateGroup, createAutoScalingGroup),
		queryOp("UpdateAutoScalingGroup", writes, parseUpdateGroup, updateAutoScalingGroup),
		queryOp("DeleteAutoScalingGroup", writes, parseDeleteGroup, deleteAutoScalingGroup),
		queryOp("DescribeAutoScalingGroups", reads, parseDescribeGroups, describeAutoScalingGroups),
		queryOp("CreateOrUpdateTags", writes, parseGroupTags, createOrUpdateTags),
		queryOp("DeleteTags", writes, parseGroupTags, deleteGroupTags),
		queryOp("DescribeTags", reads, parseDescribeGroupTags, describeGroupTags),
		queryOp("SuspendProcesses", writes, parseProcesses, suspendProcesses),
		queryOp("ResumeProcesses", writes, parseProcesses, resumeProcesses),
		queryOp("SetDesiredCapacity", writes, parseSetDesired, setDesiredCapacity),
		queryOp("EnableMetricsCollection", writes, parseEnableMetrics, enableMetrics),
		queryOp("DisableMetricsCollection", writes, parseMetrics, disableMetrics),
		queryOp("AttachTrafficSources", writes, parseTrafficSources, attachTrafficSources),
		queryOp("DetachTrafficSources", writes, parseTrafficSources, detachTrafficSources),
		queryOp("DescribeTrafficSources", reads, parseDescribeSources, describeTrafficSources),
		queryOp("TerminateInstanceInAutoScalingGroup", writes, parseTerminateMember, terminateInstanceInGroup),
		queryOp("DescribeAccountLimits", reads, func(*params) struct{} { return struct{}{} }, describeAccountLimits),
		queryOp("DescribeScalingActivities", reads, parseDescribeActivities, describeScalingActivities),
		queryOp("StartInstanceRefresh", writes, parseStartRefresh, startInstanceRefresh),
		queryOp("DescribeInstanceRefreshes", reads, parseDescribeRefreshes, describeInstanceRefreshes),
		queryOp("CancelInstanceRefresh", writes, parseCancelRefresh, cancelInstanceRefresh),
		queryOp("RollbackInstanceRefresh", writes, nameOf, rollbackInstanceRefresh),
		queryOp("PutLifecycleHook", writes, parsePutHook, putLifecycleHook),
		queryOp("DescribeLifecycleHooks", reads, parseDescribeHooks, describeLifecycleHooks),
		queryOp("DeleteLifecycleHook", writes, parseDeleteHook, deleteLifecycleHook),
		queryOp("PutWarmPool", writes, parsePutWarmPool, putWarmPool),
		queryOp("DescribeWarmPool", reads, parseDescribeWarmPool, describeWarmPool),
		queryOp("DeleteWarmPool", writes, parseDeleteGroup, deleteWarmPool),
		queryOp("AttachLoadBalancerTargetGroups", writes, parseTargetGroups, attachTargetGroups),
		queryOp("DetachLoadBalancerTargetGroups", writes, parseTargetGroups, detachTargetGroups),
	)
	return sv
}
