package observed

import (
	"strconv"
	"strings"
	"time"
)

// Launches is AWS's answer about the missing machines of a group.
type Launches struct {
	// Failure is the newest failed launch, zero if none failed recently.
	Failure LaunchFailure
	// Failed lists the recent failed launches, the newest first, at most MostFailed.
	Failed []LaunchFailure
	// Read is the time of AWS's answer, by AWS's clock.
	Read time.Time
	// Since is the start of the oldest launch in progress, zero for none.
	Since time.Time
}

// MostFailed is the number of a group's failed launches to remember.
const MostFailed = 100

// LaunchFailure is a failed launch of a machine, with AWS's message.
type LaunchFailure struct {
	Message string
	At      time.Time
	// Started says that the machine started, but ended before it was in service.
	Started bool
}

// Coming reports whether the instance is on its way into service.
func (i Instance) Coming() bool { return strings.HasPrefix(i.LifecycleState, "Pending") }

// AwaitsHook reports whether a lifecycle hook keeps the instance out of service.
func (i Instance) AwaitsHook() bool { return i.LifecycleState == "Pending:Wait" }

// AwaitsEnd reports whether the instance waits until something completes its terminating lifecycle hook.
func (i Instance) AwaitsEnd() bool { return i.LifecycleState == "Terminating:Wait" }

// BelowDesired reports whether the group has fewer instances, starting or in service, than it wants.
func (g Group) BelowDesired() bool {
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

// DesiredInstances returns the number of instances that make up the desired capacity. A group with weights
// counts in their units, and any instances that reach the capacity are enough. The vCPUs or MiB of an
// instance are unknown here, so a group with these units counts as complete.
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

// Leaving reports whether the instance is leaving its group. The states are values of LifecycleState in the
// Auto Scaling API.
func (i Instance) Leaving() bool {
	switch i.LifecycleState {
	case "Terminating", "Terminating:Wait", "Terminating:Proceed", "Terminated", "Detaching", "Detached",
		"Warmed:Terminating", "Warmed:Terminating:Wait", "Warmed:Terminating:Proceed", "Warmed:Terminated":
		return true
	}
	return i.Retained()
}

// Retained reports whether the instance no longer counts, but stays until somebody terminates it. This
// happens after its termination hook was abandoned in a group that retains such instances
// (InstanceLifecyclePolicy in the API reference).
// Assumed of AWS: retained-states.
func (i Instance) Retained() bool { return strings.HasSuffix(i.LifecycleState, ":Retained") }

// StandsBy reports whether the instance is in standby: it is not part of the capacity, and Auto Scaling
// leaves it alone.
func (i Instance) StandsBy() bool {
	return i.LifecycleState == "Standby" || i.LifecycleState == "EnteringStandby"
}

// Counts reports whether the instance is part of its group's capacity, or will be.
func (i Instance) Counts() bool { return !i.Leaving() && !i.StandsBy() }

// Ready reports whether Auto Scaling counts the instance as in service.
func (i Instance) Ready() bool { return i.LifecycleState == "InService" && i.Health == "Healthy" }

// A group that names a launch template by an alias launches the version that the alias means at that moment.
// So a version that weir makes would be used at the next scale-out, even while its rollout is held, and AWS
// refuses to roll back to an alias. Only adopted groups, and groups that a person changed, use an alias.

// Alias reports whether a reference follows the newest or the default version.
func (r TemplateRef) Alias() bool {
	return (r.ID != "" || r.Name != "") && (r.Version == "" || r.Version[0] == '$')
}

// ActivityQuery requests a group's scaling activities once for one finding.
type ActivityQuery struct {
	Group   string
	Finding string
}

// Activity is a scaling activity, with AWS's texts.
type Activity struct {
	Description string
	Cause       string
	At          time.Time
}

// Activities are the scaling activities of a group, the newest first.
type Activities struct {
	List []Activity
	// Refused explains why they could not be read.
	Refused string
}

// AWS returns the instance refreshes of one group per call. Reading many changing groups in every pass would
// use up the account's limit on reads, and a new commit would have to wait. The machines show the progress
// of a refresh, and a pass reads them anyway. So weir reads the refresh only in these cases: its group is
// set to the new configuration, machines went back to the old one, a cancellation has settled, or the
// machines have not changed for AskEvery. The reconciler also reads it before a step that uses the answer.

// DefaultAskEvery is the time for which weir does not read a refresh while its machines do not change.
const DefaultAskEvery = time.Minute
