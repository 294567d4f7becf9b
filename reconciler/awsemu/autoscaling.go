package awsemu

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
		name: "autoscaling", version: "2011-01-01", namespace: "http://autoscaling.amazonaws.com/doc/2011-01-01/",
		protocol: protocolQuery, dialect: queryDialect(), instanceChanged: groupInstanceChanged,
		timers: map[string]timerFunc{
			timerScale: runScale, timerRetry: runScale, timerUnhealthy: runUnhealthy, timerHook: runHook,
			timerRefresh: runRefresh, timerWarmPool: runWarmPoolGone,
		},
	}
	sv.register(
		voidOp(queryOp("CreateAutoScalingGroup", writes, parseCreateGroup, createAutoScalingGroup)),
		voidOp(queryOp("UpdateAutoScalingGroup", writes, parseUpdateGroup, updateAutoScalingGroup)),
		voidOp(queryOp("DeleteAutoScalingGroup", writes, parseDeleteGroup, deleteAutoScalingGroup)),
		queryOp("DescribeAutoScalingGroups", reads, parseDescribeGroups, describeAutoScalingGroups),
		voidOp(queryOp("CreateOrUpdateTags", writes, parseGroupTags, createOrUpdateTags)),
		voidOp(queryOp("DeleteTags", writes, parseGroupTags, deleteGroupTags)),
		queryOp("DescribeTags", reads, parseDescribeGroupTags, describeGroupTags),
		voidOp(queryOp("SuspendProcesses", writes, parseProcesses, suspendProcesses)),
		voidOp(queryOp("ResumeProcesses", writes, parseProcesses, resumeProcesses)),
		voidOp(queryOp("SetDesiredCapacity", writes, parseSetDesired, setDesiredCapacity)),
		voidOp(queryOp("EnableMetricsCollection", writes, parseEnableMetrics, enableMetrics)),
		voidOp(queryOp("DisableMetricsCollection", writes, parseMetrics, disableMetrics)),
		queryOp("AttachTrafficSources", writes, parseTrafficSources, attachTrafficSources),
		queryOp("DetachTrafficSources", writes, parseTrafficSources, detachTrafficSources),
		queryOp("DescribeTrafficSources", reads, parseDescribeSources, describeTrafficSources),
		queryOp("TerminateInstanceInAutoScalingGroup", writes, parseTerminateMember, terminateInstanceInGroup),
		queryOp("DescribeAccountLimits", reads, func(*params) struct{} { return struct{}{} }, describeAccountLimits),
		queryOp("DescribeScalingActivities", reads, parseDescribeActivities, describeScalingActivities),
		queryOp("StartInstanceRefresh", writes, parseStartRefresh, startInstanceRefresh),
		queryOp("DescribeInstanceRefreshes", reads, parseDescribeRefreshes, describeInstanceRefreshes),
		queryOp("CancelInstanceRefresh", writes, parseCancelRefresh, cancelInstanceRefresh),
		queryOp("RollbackInstanceRefresh", writes, parseGroupName, rollbackInstanceRefresh),
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
