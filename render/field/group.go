package field

// group lists the members of an Auto Scaling group in intent.GroupSettings that its pool sets. The defaults
// of absent members are from the API reference of CreateAutoScalingGroup.
var group = []Row{
	{AWS: "DefaultCooldown", Pool: "defaultCoolDown", Default: "300", Absent: "300", Doc: "in seconds"},
	{AWS: "DefaultInstanceWarmup", Pool: "defaultInstanceWarmup", Default: "300", Absent: "-1", Doc: "in seconds"},
	{AWS: "CapacityRebalance", Pool: "capacityRebalance", Default: "false", Absent: "false"},
}

// groupOptions lists the members in intent.GroupOptions, which PoolOptions sets.
var groupOptions = []Row{
	{AWS: "AvailabilityZoneDistribution.CapacityDistributionStrategy", Required: true, Values: "balanced-only|balanced-best-effort|reservations-then-balanced", Absent: "balanced-best-effort"},
	{AWS: "AvailabilityZoneImpairmentPolicy.ImpairedZoneHealthCheckBehavior", Values: "ReplaceUnhealthy|IgnoreUnhealthy", Absent: "ReplaceUnhealthy"},
	{AWS: "AvailabilityZoneImpairmentPolicy.ZonalShiftEnabled", Absent: "false"},
	{AWS: "CapacityReservationSpecification.CapacityReservationPreference", Values: "capacity-reservations-only|capacity-reservations-first|none|default", Absent: "default"},
	{AWS: "CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationIds", Special: "plan: they have no order"},
	{AWS: "CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationResourceGroupArns", Special: "plan: they have no order"},
	{AWS: "DeletionProtection", Values: "none|prevent-force-deletion|prevent-all-deletion", Absent: "none"},
	// Assumed of AWS: unit-of-capacity.
	{AWS: "DesiredCapacityType", Values: "units|vcpu|memory-mib", Absent: "units", Special: "plan: other units need a policy that chooses types by their attributes"},
	{AWS: "HealthCheckGracePeriod", Min: n(0), Absent: "0"},
	{AWS: "HealthCheckType", Absent: "EC2", Special: "plan: kinds of checks have no order, and EC2 is always among them"},
	{AWS: "InstanceLifecyclePolicy.RetentionTriggers.TerminateHookAbandon", Required: true, Values: "retain|terminate", Absent: "terminate"},
	{AWS: "InstanceMaintenancePolicy.MaxHealthyPercentage", Required: true, Min: n(-1), Max: n(200), Absent: "-1"},
	{AWS: "InstanceMaintenancePolicy.MinHealthyPercentage", Required: true, Min: n(-1), Max: n(100), Absent: "-1", Special: "awscloud: -1 clears a policy, so a new group is sent none"},
	{AWS: "LoadBalancerNames", By: "AttachTrafficSources", Special: attached},
	{AWS: "MaxInstanceLifetime", Min: n(0), Max: n(31536000), Absent: "0"},
	{AWS: "MetricsCollection.Granularity", By: "EnableMetricsCollection", Values: "1Minute", Default: "1Minute", Special: metrics},
	{AWS: "MetricsCollection.Metrics", By: "EnableMetricsCollection", Special: metrics},
	{AWS: "NewInstancesProtectedFromScaleIn", Absent: "false"},
	{AWS: "PlacementGroup"},
	{AWS: "ServiceLinkedRoleARN"},
	{AWS: "SkipZonalShiftValidation", By: createGroup, Special: "plan: it goes with requests that shift zones or traffic; groups have none"},
	{AWS: "TargetGroupARNs", By: "AttachTrafficSources", Special: attached},
	{AWS: "TerminationPolicies"},
	{AWS: "TrafficSources[].Identifier", By: "AttachTrafficSources", Required: true, Special: attached},
	{AWS: "TrafficSources[].Type", By: "AttachTrafficSources", Values: "elb|elbv2|vpc-lattice", Special: attached},
	{AWS: "WarmPool.InstanceReusePolicy.ReuseOnScaleIn", By: "PutWarmPool", Special: warm},
	{AWS: "WarmPool.MaxGroupPreparedCapacity", By: "PutWarmPool", Min: n(-1), Default: "-1", Special: warm},
	{AWS: "WarmPool.MinSize", By: "PutWarmPool", Min: n(0), Default: "0", Special: warm},
	{AWS: "WarmPool.PoolState", By: "PutWarmPool", Values: "Stopped|Running|Hibernated", Default: "Stopped", Special: warm},
	{AWS: "DeleteWarmPool", By: "DeleteWarmPool", Special: "plan: it says that there is to be no warm pool"},
}

// refresh lists the members of intent.Refresh, the preferences of an instance refresh.
var refresh = []Row{
	{AWS: "AlarmSpecification.Alarms", Required: true},
	{AWS: "AutoRollback"},
	{AWS: "BakeTime", Min: n(0), Max: n(172800)},
	{AWS: "CheckpointDelay", Min: n(0), Max: n(172800)},
	{AWS: "CheckpointPercentages"},
	{AWS: "Disable", Pool: "refreshPreferences.disable", Special: "plan: no instance refresh is started"},
	{AWS: "InstanceWarmup", Pool: "refreshPreferences.instanceWarmup"},
	{AWS: "MaxHealthyPercentage", Pool: "refreshPreferences.maxHealthyPercentage"},
	{AWS: "MinHealthyPercentage", Pool: "refreshPreferences.minHealthyPercentage"},
	{AWS: "ScaleInProtectedInstances", Values: "Refresh|Ignore|Wait"},
	{AWS: "SkipMatching", Special: "awscloud: sent as true where nobody writes it, so that a refresh that is asked for twice replaces nothing"},
	{AWS: "StandbyInstances", Values: "Terminate|Ignore|Wait"},
	{AWS: "Strategy", Values: "Rolling|ReplaceRootVolume", Special: "awscloud: a parameter of StartInstanceRefresh beside the preferences; plan: which one a change takes"},
}

const (
	attached = "plan: Auto Scaling attaches and detaches them one by one, and lists all kinds together"
	metrics  = "plan: Auto Scaling enables and disables metrics one by one"
	warm     = "plan: a warm pool is put as a whole, and takes time to go"
)
