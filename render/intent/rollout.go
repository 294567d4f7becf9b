package intent

import "time"

// FleetRollout orders how pools of its source are rolled: in waves, with gates between
// them. It holds rollouts and never begins one.
type FleetRollout struct {
	Key    Key       `json:"key"`
	Object ObjectRef `json:"object"`
	// Selector says which pools of the source are governed.
	Selector PoolSelector `json:"selector"`
	// Waves run one after another; pools that none of them selects come after the last.
	Waves []Wave `json:"waves"`
	// BakeTime is the time that a share and a wave must have run before the next one starts.
	BakeTime time.Duration `json:"bakeTime,omitempty"`
	// MaxMachines bounds the machines that are replaced at a time; 0 is no bound.
	MaxMachines int32 `json:"maxMachines,omitempty"`
	// FailureBudget is the number of pools that may fail before the change is stopped.
	FailureBudget int32 `json:"failureBudget,omitempty"`
	// Rollback says that pools return to their earlier version when the change is stopped.
	Rollback bool          `json:"rollback,omitempty"`
	Gates    []RolloutGate `json:"gates,omitempty"`
}

// PoolSelector selects pools: those that fit each of its members that is not empty.
type PoolSelector struct {
	// Targets are names of targets, in which * stands for any text.
	Targets    []string `json:"targets,omitempty"`
	Namespaces []string `json:"namespaces,omitempty"`
	// Labels are labels of the pool's MachinePool.
	Labels map[string]string `json:"matchLabels,omitempty"`
}

// Wave is the pools of a FleetRollout that are rolled at a time: those that Selector
// selects, or Pools of them, or as many as hold Percent of the machines of all governed
// pools together with the waves before.
type Wave struct {
	Name     string        `json:"name,omitempty"`
	Selector *PoolSelector `json:"selector,omitempty"`
	Pools    int32         `json:"pools,omitempty" check:"min=1"`
	Percent  int32         `json:"percent,omitempty" check:"min=1,max=100"`
	// Shares are the percentages of each pool's machines that are replaced before the
	// next wait; the last is 100. A nodegroup is rolled as a whole.
	Shares []int32 `json:"shares,omitempty"`
	// BakeTime takes the place of the FleetRollout's.
	BakeTime *time.Duration `json:"bakeTime,omitempty"`
}

// RolloutGate is a question that must be answered with yes before the next share or wave
// begins. Exactly one of its members beside Name is set.
type RolloutGate struct {
	Name             string                `json:"name" check:"required,minlen=1"`
	NodesReady       *NodesReadyGate       `json:"nodesReady,omitempty"`
	FailedActivities *FailedActivitiesGate `json:"failedActivities,omitempty"`
	CloudWatchAlarms *AlarmsGate           `json:"cloudWatchAlarms,omitempty"`
	Prometheus       *PrometheusGate       `json:"prometheus,omitempty"`
}

// NodesReadyGate asks that the machines of the new version are ready nodes.
type NodesReadyGate struct {
	// Within is the time that a machine may take from its launch.
	Within time.Duration `json:"within" check:"required"`
	// Required says that instances in service do not count if the workload cluster
	// cannot be reached.
	Required bool `json:"required,omitempty"`
}

// FailedActivitiesGate asks that no more scaling activities have failed since the share
// began.
type FailedActivitiesGate struct {
	Max int32 `json:"max,omitempty" check:"min=0"`
}

// AlarmsGate asks that no alarm of CloudWatch is in state ALARM, in the account and region
// of each pool.
type AlarmsGate struct {
	Alarms []string `json:"alarms" check:"required"`
}

// PrometheusGate asks that each value of a query is within bounds.
type PrometheusGate struct {
	// Provider is a name of the configuration's gateProviders.
	Provider string   `json:"provider" check:"required,minlen=1"`
	Query    string   `json:"query" check:"required,minlen=1"`
	Min      *float64 `json:"min,omitempty"`
	Max      *float64 `json:"max,omitempty"`
}
