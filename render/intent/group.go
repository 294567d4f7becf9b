package intent

// Group is the Auto Scaling group of an AWSMachinePool.
type Group struct {
	Name    string `json:"name"`
	MinSize int32  `json:"minSize"`
	MaxSize int32  `json:"maxSize"`
	Subnets Lookup `json:"subnets"`
	GroupSettings
	MixedInstancesPolicy *MixedInstances `json:"mixedInstancesPolicy,omitempty"`
	// TypesOfOptions is true if the instance types of the policy are in the PoolOptions, not in the pool's
	// infrastructure object.
	TypesOfOptions bool    `json:"-"`
	Refresh        Refresh `json:"refresh"`
	// SuspendedProcesses lists the processes in the manifest, sorted by name. weir does not change any other
	// process.
	SuspendedProcesses []Process `json:"suspendedProcesses,omitempty"`
	// LifecycleHooks are sorted by name.
	LifecycleHooks []LifecycleHook `json:"lifecycleHooks,omitempty"`
	// Drainer drains machines before they end; nil means no drainer. Its hook is among
	// LifecycleHooks.
	Drainer *Drainer `json:"drainer,omitempty"`
	// Tags are the tags of the group. None of them is propagated to instances at launch.
	Tags map[string]string `json:"tags,omitempty"`
}

// Process is a scaling process that the manifest declares suspended (true) or running (false).
type Process struct {
	Name      string `json:"name"`
	Suspended bool   `json:"suspended"`
}

// Refresh is refreshPreferences of the pool and of its PoolOptions: RefreshPreferences of the Auto Scaling
// API, and the strategy. For nil pointers and empty strings, AWS chooses the value. SkipMatching is true by
// default.
type Refresh struct {
	Disable                   bool                `json:"disable,omitempty"`
	Strategy                  string              `json:"strategy"`
	AlarmSpecification        *AlarmSpecification `json:"alarmSpecification,omitempty"`
	AutoRollback              *bool               `json:"autoRollback,omitempty"`
	BakeTime                  *int32              `json:"bakeTime,omitempty"`        // seconds
	CheckpointDelay           *int32              `json:"checkpointDelay,omitempty"` // seconds
	CheckpointPercentages     []int32             `json:"checkpointPercentages,omitempty"`
	InstanceWarmup            *int32              `json:"instanceWarmup,omitempty"` // seconds
	MinHealthyPercentage      *int32              `json:"minHealthyPercentage,omitempty"`
	MaxHealthyPercentage      *int32              `json:"maxHealthyPercentage,omitempty"`
	ScaleInProtectedInstances string              `json:"scaleInProtectedInstances,omitempty"`
	SkipMatching              *bool               `json:"skipMatching,omitempty"`
	StandbyInstances          string              `json:"standbyInstances,omitempty"`
}

// AlarmSpecification names CloudWatch alarms that end a refresh.
type AlarmSpecification struct {
	Alarms []string `json:"alarms,omitempty"`
}

// LifecycleHook is a lifecycle hook of a group. HeartbeatTimeout is in seconds. For 0 and empty values, AWS
// chooses the value.
type LifecycleHook struct {
	Name                  string `json:"name"`
	LifecycleTransition   string `json:"lifecycleTransition"`
	NotificationTargetARN string `json:"notificationTargetARN,omitempty"`
	RoleARN               string `json:"roleARN,omitempty"`
	HeartbeatTimeout      int32  `json:"heartbeatTimeout,omitempty"`
	DefaultResult         string `json:"defaultResult,omitempty"`
	NotificationMetadata  string `json:"notificationMetadata,omitempty"`
}
