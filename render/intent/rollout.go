package intent

import "time"

// FleetRollout defines the order in which pools of its source are rolled: in waves, with gates between them.
// It only delays rollouts and never starts one.
type FleetRollout struct {
	Key    Key       `json:"key"`
	Object ObjectRef `json:"object"`
	// Selector selects the governed pools of the source.
	Selector PoolSelector `json:"selector"`
	// Waves run one after another. Pools in none of them come after the last wave.
	Waves []Wave `json:"waves"`
	// BakeTime is the minimum time between a finished share or wave and the start of the next one.
	BakeTime time.Duration `json:"bakeTime,omitempty"`
	// MaxMachines limits the machines that are replaced at the same time. 0 means no limit.
	MaxMachines int32 `json:"maxMachines,omitempty"`
	// FailureBudget is the number of pools that may fail before weir stops the change.
	FailureBudget int32 `json:"failureBudget,omitempty"`
	// Rollback returns pools to their earlier version if the change is stopped.
	Rollback bool          `json:"rollback,omitempty"`
	Gates    []RolloutGate `json:"gates,omitempty"`
}

// PoolSelector selects the pools that match all of its non-empty members.
type PoolSelector struct {
	// Targets are names of targets. * matches any text.
	Targets    []string `json:"targets,omitempty"`
	Namespaces []string `json:"namespaces,omitempty"`
	// Labels are labels of the pool's MachinePool.
	Labels map[string]string `json:"matchLabels,omitempty"`
}

// Wave is a group of pools in a FleetRollout that are rolled at the same time. Selector, Pools or Percent
// select them. With Percent, the wave takes pools until it and the earlier waves have that percentage of the
// machines of all governed pools.
type Wave struct {
	Name     string        `json:"name,omitempty"`
	Selector *PoolSelector `json:"selector,omitempty"`
	Pools    int32         `json:"pools,omitempty" check:"min=1"`
	Percent  int32         `json:"percent,omitempty" check:"min=1,max=100"`
	// Shares are percentages of each pool's machines. When a share is replaced, the rollout waits before the
	// next one. The last share is 100. A nodegroup is rolled as a whole.
	Shares []int32 `json:"shares,omitempty"`
	// BakeTime overrides the BakeTime of the FleetRollout.
	BakeTime *time.Duration `json:"bakeTime,omitempty"`
}

// RolloutGate is a condition that must be true before the next share or wave starts. Exactly one of its
// members besides Name is set.
type RolloutGate struct {
	Name             string                `json:"name" check:"required,minlen=1"`
	NodesReady       *NodesReadyGate       `json:"nodesReady,omitempty"`
	FailedActivities *FailedActivitiesGate `json:"failedActivities,omitempty"`
	CloudWatchAlarms *AlarmsGate           `json:"cloudWatchAlarms,omitempty"`
	Prometheus       *PrometheusGate       `json:"prometheus,omitempty"`
}

// NodesReadyGate requires that the machines of the new version are ready nodes.
type NodesReadyGate struct {
	// Within is the time from launch in which a machine must become ready.
	Within time.Duration `json:"within" check:"required"`
	// Required makes the gate wait if the nodes cannot be read because the target has no kubeconfigFile.
	// By default, instances in service then count as ready nodes.
	Required bool `json:"required,omitempty"`
}

// FailedActivitiesGate requires that no more than Max scaling activities have failed since the share started.
type FailedActivitiesGate struct {
	Max int32 `json:"max,omitempty" check:"min=0"`
}

// AlarmsGate requires that none of the CloudWatch alarms is in state ALARM. weir reads them in the account
// and region of each pool.
type AlarmsGate struct {
	Alarms []string `json:"alarms" check:"required"`
}

// PrometheusGate requires that every value of a query is within bounds.
type PrometheusGate struct {
	// Provider is a name in gateProviders of weir's configuration.
	Provider string   `json:"provider" check:"required,minlen=1"`
	Query    string   `json:"query" check:"required,minlen=1"`
	Min      *float64 `json:"min,omitempty"`
	Max      *float64 `json:"max,omitempty"`
}
