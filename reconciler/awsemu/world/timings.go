package world

import "time"

// Timings are the durations of the state machines, on the emulator's clock.
type Timings struct {
	InstancePending  time.Duration // a launched instance: pending to running
	InstanceShutdown time.Duration // a terminated one: shutting-down to terminated
	InstanceForget   time.Duration // terminated to no longer described
	ClusterCreate    time.Duration // EKS cluster: CREATING to ACTIVE
	ClusterDelete    time.Duration // EKS cluster: DELETING to gone
	NodegroupCreate  time.Duration // nodegroup: CREATING to ACTIVE
	NodegroupUpdate  time.Duration // nodegroup: UPDATING to ACTIVE
	NodegroupDelete  time.Duration // nodegroup: DELETING to gone
	RefreshBatch     time.Duration // one batch of an instance refresh
	Warmups          bool          // a refresh also waits for instance warm-ups
	TableChange      time.Duration // DynamoDB table: end of CREATING, UPDATING, DELETING or a change of its time to live
}

// Fast returns durations for demonstrations and tests: seconds for AWS's minutes.
func Fast() Timings {
	return Timings{
		InstancePending:  time.Second,
		InstanceShutdown: time.Second,
		InstanceForget:   time.Minute,
		ClusterCreate:    3 * time.Second,
		ClusterDelete:    3 * time.Second,
		NodegroupCreate:  3 * time.Second,
		NodegroupUpdate:  3 * time.Second,
		NodegroupDelete:  3 * time.Second,
		RefreshBatch:     2 * time.Second,
		TableChange:      time.Second,
	}
}

// Realistic returns durations similar to AWS's.
func Realistic() Timings {
	return Timings{
		InstancePending:  40 * time.Second,
		InstanceShutdown: 60 * time.Second,
		InstanceForget:   time.Hour,
		ClusterCreate:    9 * time.Minute,
		ClusterDelete:    5 * time.Minute,
		NodegroupCreate:  150 * time.Second,
		NodegroupUpdate:  5 * time.Minute,
		NodegroupDelete:  4 * time.Minute,
		RefreshBatch:     3 * time.Minute,
		TableChange:      10 * time.Second,
	}
}
