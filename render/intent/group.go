package intent

// Group is the Auto Scaling group of an AWSMachinePool.
type Group struct {
	Name    string `json:"name"`
	MinSize int32  `json:"minSize"`
	MaxSize int32  `json:"maxSize"`
	Subnets Lookup `json:"subnets"`
	GroupSettings
	MixedInstancesPolicy *MixedInstances `json:"mixedInstancesPolicy,omitempty"`
	// TypesOfOptions says that PoolOptions name the instance types of the policy, and not the
	// pool's own object.
	TypesOfOptions bool    `json:"-"`
	Refresh        Refresh `json:"refresh"`
	// SuspendedProcesses holds the processes in the manifest, sorted by process; a process that is
	// not in it stays as it is in AWS.
	SuspendedProcesses []Process `json:"suspendedProcesses,omitempty"`
	// LifecycleHooks are sorted by name.
	LifecycleHooks []LifecycleHook `json:"lifecycleHooks,omitempty"`
	// Drainer drains machines before they end; nil means no drainer. Its hook is among
	// LifecycleHooks.
	Drainer *Drainer `json:"drainer,omitempty"`
	// Tags are put on the group, none of them propagated at launch.
	Tags map[string]string `json:"tags,omitempty"`
}

// Process is a scaling process and whether it is declared suspended (true) or
// declared running (false).
type Process struct {
	Name      string `json:"name"`
	Suspended bool   `json:"suspended"`
}

// Refresh is refreshPreferences, of the pool and of its PoolOptions: the members of
// RefreshPreferences of the Auto Scaling API, and the strategy. A nil pointer and an empty text
// leave the value to AWS; SkipMatching is true unless declared.
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

// LifecycleHook is one hook. HeartbeatTimeout is in seconds; 0 and empty values
// leave the member to AWS.
type LifecycleHook struct {
	Name                  string `json:"name"`
	LifecycleTransition   string `json:"lifecycleTransition"`
	NotificationTargetARN string `json:"notificationTargetARN,omitempty"`
	RoleARN               string `json:"roleARN,omitempty"`
	HeartbeatTimeout      int32  `json:"heartbeatTimeout,omitempty"`
	DefaultResult         string `json:"defaultResult,omitempty"`
	NotificationMetadata  string `json:"notificationMetadata,omitempty"`
}
