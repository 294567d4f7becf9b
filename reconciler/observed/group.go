package observed

import (
	"strconv"
	"strings"
	"time"
)

// Launches is AWS's answer about the machines that a group waits for.
type Launches struct {
	// Failure is the newest launch that failed, zero where none did of late.
	Failure LaunchFailure
	// Failed are those that failed of late, the newest first; MostFailed at most.
	Failed []LaunchFailure
	// Read is the time of AWS's answer, by AWS's clock.
	Read time.Time
	// Since is the start of the oldest launch in progress, zero for none.
	Since time.Time
}

// MostFailed is the number of a group's failed launches to remember.
const MostFailed = 100

// LaunchFailure is why AWS last failed to launch a machine of a group, in its words.
type LaunchFailure struct {
	Message string
	At      time.Time
	// Started says that the machine had started, and ended before it was in service.
	Started bool
}

// Coming reports whether the instance is on its way into service.
func (i Instance) Coming() bool { return strings.HasPrefix(i.LifecycleState, "Pending") }

// AwaitsHook reports whether a lifecycle hook keeps the instance out of service.
func (i Instance) AwaitsHook() bool { return i.LifecycleState == "Pending:Wait" }

// AwaitsEnd says that something is to complete a terminating lifecycle hook.
func (i Instance) AwaitsEnd() bool { return i.LifecycleState == "Terminating:Wait" }

// Lacks reports whether the group has fewer instances, on their way or in service, than it wants.
func (g Group) Lacks() bool {
	return g.count(Instance.Counts) < g.DesiredInstances()
}

func (g Group) Short() bool {
	return g.count(func(i Instance) bool { return i.Counts() && !i.Coming() }) < g.DesiredInstances()
}

func (g Group) count(which func(Instance) bool) (n int32) {
	for _, i := range g.Instances {
		if which(i) {
			n++
		}
	}
	return n
}

// DesiredInstances returns the number of instances that make up the desired capacity. A group with
// weights counts in their units, and is complete with any instances that reach it. The vCPUs or MiB
// of an instance are unknown here, so a group in these units is complete with the instances that it
// has.
func (g Group) DesiredInstances() int32 {
	weights := map[string]int32{}
	if g.MixedInstancesPolicy != nil {
		for _, o := range g.MixedInstancesPolicy.Overrides {
			if n, err := strconv.ParseInt(o.WeightedCapacity, 10, 32); err == nil {
				weights[o.InstanceType] = int32(n)
			}
		}
	}
	unit := g.Options.DesiredCapacityType
	byUnit := unit != "" && unit != "units"
	if len(weights) == 0 && !byUnit || g.DesiredCapacity == 0 {
		return g.DesiredCapacity
	}
	n, units := int32(0), int32(0)
	for _, i := range g.Instances {
		if !i.Counts() {
			continue
		}
		n++
		units += max(weights[i.Type], 1)
	}
	if n == 0 || !byUnit && units < g.DesiredCapacity {
		return n + 1 // at least
	}
	return n
}

// Leaving reports whether the instance is on its way out of its group. The
// states are those of the Auto Scaling API's LifecycleState.
func (i Instance) Leaving() bool {
	switch i.LifecycleState {
	case "Terminating", "Terminating:Wait", "Terminating:Proceed", "Terminated", "Detaching", "Detached",
		"Warmed:Terminating", "Warmed:Terminating:Wait", "Warmed:Terminating:Proceed", "Warmed:Terminated":
		return true
	}
	return i.Retained()
}

// Retained reports whether the instance no longer counts and stays until somebody ends
// it: its termination hook was abandoned in a group that then retains instances
// (InstanceLifecyclePolicy in the API reference).
// Assumed of AWS: retained-states.
func (i Instance) Retained() bool { return strings.HasSuffix(i.LifecycleState, ":Retained") }

// StandsBy reports whether somebody took the instance out of service for a while: it is
// no part of the capacity, and Auto Scaling leaves it alone.
func (i Instance) StandsBy() bool {
	return i.LifecycleState == "Standby" || i.LifecycleState == "EnteringStandby"
}

// Counts reports whether the instance is part of its group's capacity, or will be.
func (i Instance) Counts() bool { return !i.Leaving() && !i.StandsBy() }

// Ready reports whether Auto Scaling counts on the instance.
func (i Instance) Ready() bool { return i.LifecycleState == "InService" && i.Health == "Healthy" }

// A group that names a launch template by an alias launches whatever the alias means
// at that moment: a version that weir makes would go live at the next scale-out, while
// its rollout is held, and AWS refuses to roll back to an alias. Such groups are
// adopted ones, and those that were set to one by hand.

// Alias reports whether a reference follows the newest or the default version.
func (r TemplateRef) Alias() bool {
	return (r.ID != "" || r.Name != "") && (r.Version == "" || r.Version[0] == '$')
}

// ActivityQuery asks for a group's scaling activities once for one finding.
type ActivityQuery struct {
	Group   string
	Finding string
}

// Activity is a scaling activity in AWS's words.
type Activity struct {
	Description string
	Cause       string
	At          time.Time
}

// Activities are those that were read of a group, newest first.
type Activities struct {
	List []Activity
	// Refused says why they could not be read.
	Refused string
}

// AWS returns one group's instance refreshes per call. Reading many changing groups in every pass
// would use up the account's limit on reads, and a new commit would wait behind it. The machines
// show the progress of a refresh, and they are in the pages that a pass reads anyway. weir reads
// the refresh itself when the machines show that AWS must have more to say: the group is set to the
// new configuration, machines went back to the old one, or a cancellation has settled. It also
// reads it when the machines have not changed for AskEvery, and the reconciler reads it before a
// step that uses the answer.

// DefaultAskEvery is the time for which weir does not read a refresh whose machines show nothing
// new.
const DefaultAskEvery = time.Minute
