// Package rollout decides which pools of a source may be rolled now, and how far: waves,
// shares, budgets and stops, as FleetRollouts in Git order them.
//
// Next is a pure function. It takes the Record of what was decided, the Specs that Git
// holds, the Pools as their owners report them and the Answers of gates, and makes the next
// Record, in which each governed pool has a Permit. The holder of the source's lease calls
// it with each report and now and then; the record is written in one transaction, and owners
// read their permits from it. So a weir that ends, or another that goes on in its place,
// changes nothing: all that matters is in the record and in AWS.
//
// A Permit only ever holds. It says up to which share of its machines a pool may run what
// Git wants, for one hash of what is launched; who has none for that hash starts nothing.
// Of several FleetRollouts that match a pool, each has to allow it.
package rollout

import (
	"time"

	"github.com/weir-gitops/weir/render/intent"
)

// ID names a pool of a source.
type ID struct {
	Target string `json:"target"`
	// Pool is "namespace/name".
	Pool string `json:"pool"`
}

// String returns the id in readable form.
func (id ID) String() string { return id.Target + " " + id.Pool }

// Spec is a FleetRollout, and the target whose render holds it.
type Spec struct {
	intent.FleetRollout
	Target string `json:"target"`
}

// Pool is the state of a governed pool, as the owner of its account and region reports it.
type Pool struct {
	ID
	Namespace string            `json:"namespace"`
	Labels    map[string]string `json:"labels,omitempty"`
	Cluster   string            `json:"cluster,omitempty"`
	// Account and Region are where the pool is; Zones are those of its machines.
	Account string   `json:"account,omitempty"`
	Region  string   `json:"region,omitempty"`
	Zones   []string `json:"zones,omitempty"`
	// Whole pools have no shares: EKS rolls a nodegroup from one end to the other.
	Whole bool `json:"whole,omitempty"`
	// Keeps says that its machines stay until something else ends them: weir replaces none.
	Keeps bool `json:"keeps,omitempty"`
	// Revision is the commit from which the pool's owner planned it.
	Revision string `json:"revision"`
	// Hash identifies the wanted launch configuration of the pool's machines: the hash of the body
	// of its launch template version, with the image as AWS resolved it. It is empty while that is
	// unknown.
	Hash string `json:"hash"`
	// Fault is why it could not be planned; empty if it was.
	Fault string `json:"fault,omitempty"`
	// Held names what holds its rollout other than its waves, and why; empty for nothing.
	Held string `json:"held,omitempty"`
	// Watched says that gates ask about it, by the permit that its owner had.
	Watched bool `json:"watched,omitempty"`
	// Machines is the desired number of machines, New the number that have Hash.
	Machines int32 `json:"machines"`
	New      int32 `json:"new"`
	// Pending says that machines are to be replaced that are not of Hash: a rollout is
	// under way or would begin.
	Pending bool `json:"pending,omitempty"`
	// Earlier is the version that most machines have that are not of Hash, Others are those
	// that come next: what was found bad is nothing to go back to.
	Earlier *Version  `json:"earlier,omitempty"`
	Others  []Version `json:"others,omitempty"`
	Moving  *Move     `json:"moving,omitempty"`
	// Change is the difference between Earlier and the wanted machines, if some must be replaced.
	// Still is the hash of a stopped change that is still in Hash.
	Change []Field `json:"change,omitempty"`
	Still  string  `json:"still,omitempty"`
	// Failed says why the last rollout to Hash failed; empty if it did not.
	Failed string `json:"failed,omitempty"`
	// Facts holds the facts by which gates judge.
	Facts Facts `json:"facts,omitzero"`
}

// idle reports whether a rollout of the pool would replace no machine.
func (p Pool) idle() bool { return p.Keeps || p.Machines <= p.New }

// Version is a version of a launch template, with the mixed instances policy that went with it.
type Version struct {
	Template string `json:"template"`
	Number   int64  `json:"number"`
	Hash     string `json:"hash,omitempty"`
	// Policy is the group's policy. Plain says that it had none. If neither is recorded, the policy
	// is unknown.
	Policy *intent.MixedInstances `json:"policy,omitempty"`
	Plain  bool                   `json:"plain,omitempty"`
	// Pin is the image of the version, or its number where the pool brings its launch template
	// along, if that alone differs from what is wanted: AWS answered a lookup otherwise, and
	// nobody changed what Git says. It is empty for any other version.
	Pin string `json:"pin,omitempty"`
}

// Move is an instance refresh or a nodegroup's update that is under way.
type Move struct {
	// ID identifies the refresh or update, Hash its wanted configuration, and Share how far it
	// goes.
	ID    string `json:"id"`
	Hash  string `json:"hash"`
	Share int32  `json:"share"`
	// Left is the number of machines that it will still replace.
	Left  int32     `json:"left"`
	Since time.Time `json:"since"`
	// Cancelling says that AWS has taken its cancellation.
	Cancelling bool `json:"cancelling,omitempty"`
}

// Facts holds what an owner observes of the machines with a pool's wanted hash.
type Facts struct {
	// NodesFrom is FromNodes where the workload cluster was asked, else FromInService;
	// NodesUnknown says why it could not be read.
	NodesFrom    string `json:"nodesFrom,omitempty"`
	NodesUnknown string `json:"nodesUnknown,omitempty"`
	// Ready is the number of ready machines of Hash. Waiting holds the machines that have waited
	// longest without being ready, MostWaiting at most.
	Ready   int32     `json:"ready"`
	Waiting []Machine `json:"waiting,omitempty"`
	// Activities are the failed scaling activities that were seen, the newest first.
	Activities []Activity `json:"activities,omitempty"`
	// ActivitiesRead is the time when AWS listed them; zero if weir did not ask.
	ActivitiesRead time.Time `json:"activitiesRead,omitzero"`
	// Alarms are those of the pool's account and region that gates name; AlarmsUnknown says
	// why they could not be read.
	Alarms        []Alarm `json:"alarms,omitempty"`
	AlarmsUnknown string  `json:"alarmsUnknown,omitempty"`
	// ReadAt is the time of AWS's and the cluster's answers.
	ReadAt time.Time `json:"readAt,omitzero"`
}

// Machine is one of a pool that is not ready.
type Machine struct {
	Instance string `json:"instance"`
	// Since is the time since which it should have been ready; zero if unknown.
	Since time.Time `json:"since,omitzero"`
	Why   string    `json:"why,omitempty"`
}

// MostWaiting bounds the machines that are not ready in a report.
const MostWaiting = 20

// The sources of the readiness of machines.
const (
	FromNodes     = "nodes"
	FromInService = "InService"
)

// Alarm is an alarm of CloudWatch.
type Alarm struct {
	Name string `json:"name"`
	// State is OK, ALARM or INSUFFICIENT_DATA, empty if the alarm does not exist.
	State string `json:"state,omitempty"`
}

// Activity is a failed scaling activity.
type Activity struct {
	At    time.Time `json:"at"`
	Cause string    `json:"cause"`
}

// Permit bounds what a governed pool may do.
type Permit struct {
	ID
	// Hash identifies the permitted configuration: for any other the pool starts and continues
	// nothing.
	Hash string `json:"hash"`
	// Share is the percentage of its machines that may run Hash; 0 holds the pool.
	Share int32 `json:"share"`
	// Rollouts are the FleetRollouts that govern it.
	Rollouts []string `json:"rollouts"`
	// Wait says what the pool waits for: until when or for what, and who can end it. It is
	// empty where Share is 100.
	Wait string `json:"wait,omitempty"`
	// Gate says that this is a gate of the pool's own wave. Ends says who or what ends it, where that is not the
	// waves themselves.
	Gate bool   `json:"gate,omitempty"`
	Ends string `json:"ends,omitempty"`
	// Stopped says that the hash is bad: a refresh to it that is weir's own is cancelled,
	// and machines that are not of it are no drift.
	Stopped bool `json:"stopped,omitempty"`
	// Back is the version to which machines of a stopped hash go back; nil leaves them.
	Back *Version `json:"back,omitempty"`
	// Watched says that gates ask about the pool now: its owner looks at it often.
	Watched bool `json:"watched,omitempty"`
	// Alarms are those of CloudWatch that they ask about, in order.
	Alarms []string `json:"alarms,omitempty"`
	// Seq is the Seq of the record that last changed the permit.
	Seq int64 `json:"seq"`
	// Stops are the changes of the pool that were stopped. The record has them once, for all permits.
	Stops []Bad `json:"-"`
}

// Bad is a hash that is rolled out no more to a pool until somebody asks for it.
type Bad struct {
	ID
	Hash string `json:"hash"`
	// Rollout is the FleetRollout under which it was found, Why what was.
	Rollout string    `json:"rollout"`
	Why     string    `json:"why"`
	At      time.Time `json:"at"`
	// Earlier is the version that the pool ran before. Rollback says that the pool goes back to it.
	Earlier  *Version `json:"earlier,omitempty"`
	Rollback bool     `json:"rollback,omitempty"`
	// Fields lists what the stopped change set, tags last. Without fields the hash alone counts:
	// records of earlier releases have none.
	Fields []Field `json:"fields,omitempty"`
}

// Verdict is the answer to a gate.
type Verdict string

// Verdicts. Unknown holds.
const (
	Pass    Verdict = "pass"
	Fail    Verdict = "fail"
	Unknown Verdict = "unknown"
)

// Answer is a gate's answer about pools.
type Answer struct {
	Verdict Verdict `json:"verdict"`
	// What says what was found, or what is unknown, with its value.
	What string `json:"what"`
	// At is the time when its facts were read.
	At time.Time `json:"at"`
}

// Ask is a question to a gate about the pools of a wave.
type Ask struct {
	Rollout string             `json:"rollout"`
	Gate    intent.RolloutGate `json:"gate"`
	// Pools are those that it is about, each with the hash to which it goes.
	Pools []Subject `json:"pools"`
	// Since is the start of the wave.
	Since time.Time `json:"since"`
}

// Key is under which the answer to it is looked up.
func (a Ask) Key() string { return a.Rollout + "|" + a.Gate.Name }

// Subject is a pool with the hash to which it goes.
type Subject struct {
	ID
	Hash string `json:"hash"`
}
