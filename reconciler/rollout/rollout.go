// Package rollout decides which pools of a source may be rolled now, and how far. FleetRollouts in
// Git define the waves, shares, budgets and stops.
//
// Next is a pure function. Its input is the Record of earlier decisions, the Specs in Git, the
// Pools as their owners report them and the Answers of gates. It computes the next Record, in which
// each governed pool has a Permit. The holder of the source's lease calls it after each report and
// at times that Next returns. The record is written in one transaction, and owners read their
// permits from it. So it does not matter if a weir ends or another one continues: all state is in
// the record and in AWS.
//
// A Permit only restricts. It gives the share of a pool's machines that may run the wanted
// configuration, for one hash of the launch configuration. A pool without a permit for its hash
// starts nothing. If several FleetRollouts match a pool, all of them must permit it.
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

// Spec is a FleetRollout, with the target whose render contains it.
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
	// Account and Region give the place of the pool. Zones lists the zones of its machines.
	Account string   `json:"account,omitempty"`
	Region  string   `json:"region,omitempty"`
	Zones   []string `json:"zones,omitempty"`
	// Whole is set for a pool without shares: EKS always rolls a whole nodegroup.
	Whole bool `json:"whole,omitempty"`
	// Keeps is set if weir replaces none of the machines, so they stay until something else ends
	// them.
	Keeps bool `json:"keeps,omitempty"`
	// Revision is the commit from which the pool's owner planned it.
	Revision string `json:"revision"`
	// Hash identifies the wanted launch configuration of the pool's machines: the hash of the body
	// of its launch template version, with the image as AWS resolved it. It is empty while that is
	// unknown.
	Hash string `json:"hash"`
	// Fault explains why the pool could not be planned. It is empty if it was.
	Fault string `json:"fault,omitempty"`
	// Held names the hold on its rollout, with the reason, other than its waves. It is empty for
	// none.
	Held string `json:"held,omitempty"`
	// Watched reports whether gates need the pool's facts, according to its owner's permit.
	Watched bool `json:"watched,omitempty"`
	// Machines is the desired number of machines. New is the number of machines with Hash.
	Machines int32 `json:"machines"`
	New      int32 `json:"new"`
	// Pending reports whether machines without Hash must be replaced: a rollout is in progress or
	// due.
	Pending bool `json:"pending,omitempty"`
	// Earlier is the most frequent version among the machines without Hash. Others lists the next
	// most frequent ones, as a version that was found bad is no version to go back to.
	Earlier *Version  `json:"earlier,omitempty"`
	Others  []Version `json:"others,omitempty"`
	Moving  *Move     `json:"moving,omitempty"`
	// Change is the difference between Earlier and the wanted configuration, if machines must be
	// replaced. Still is the hash of a stopped change that Hash still contains.
	Change []Field `json:"change,omitempty"`
	Still  string  `json:"still,omitempty"`
	// Failed explains why the last rollout to Hash failed. It is empty if it did not.
	Failed string `json:"failed,omitempty"`
	// Facts contains the facts for gates.
	Facts Facts `json:"facts,omitzero"`
}

// idle reports whether a rollout of the pool would replace no machine.
func (p Pool) idle() bool { return p.Keeps || p.Machines <= p.New }

// Version is a version of a launch template, with the mixed instances policy that went with it.
type Version struct {
	Template string `json:"template"`
	Number   int64  `json:"number"`
	Hash     string `json:"hash,omitempty"`
	// Policy is the group's policy. Plain is set if it had none. If neither is set, the policy is
	// unknown.
	Policy *intent.MixedInstances `json:"policy,omitempty"`
	Plain  bool                   `json:"plain,omitempty"`
	// Pin is the image of the version, or its number if the pool brings its launch template along.
	// It is set only if nothing else differs from the wanted version: AWS's answer to a lookup
	// changed, and Git did not.
	Pin string `json:"pin,omitempty"`
}

// Move is an instance refresh or a nodegroup update in progress.
type Move struct {
	// ID identifies the refresh or update. Hash identifies its wanted configuration. Share is the
	// share at which it ends.
	ID    string `json:"id"`
	Hash  string `json:"hash"`
	Share int32  `json:"share"`
	// Left is the number of machines that it will still replace.
	Left  int32     `json:"left"`
	Since time.Time `json:"since"`
	// Cancelling reports whether AWS has accepted its cancellation.
	Cancelling bool `json:"cancelling,omitempty"`
}

// Facts contains an owner's observations of the machines with a pool's wanted hash.
type Facts struct {
	// NodesFrom is FromNodes if weir read the workload cluster, else FromInService. NodesUnknown
	// explains why it could not be read.
	NodesFrom    string `json:"nodesFrom,omitempty"`
	NodesUnknown string `json:"nodesUnknown,omitempty"`
	// Ready is the number of ready machines with Hash. Waiting lists the machines that have waited
	// longest without being ready, up to MostWaiting.
	Ready   int32     `json:"ready"`
	Waiting []Machine `json:"waiting,omitempty"`
	// Activities lists the failed scaling activities, newest first.
	Activities []Activity `json:"activities,omitempty"`
	// ActivitiesRead is the time when AWS listed them, zero if weir did not read them.
	ActivitiesRead time.Time `json:"activitiesRead,omitzero"`
	// Alarms lists the alarms of the pool's account and region that gates name. AlarmsUnknown
	// explains why they could not be read.
	Alarms        []Alarm `json:"alarms,omitempty"`
	AlarmsUnknown string  `json:"alarmsUnknown,omitempty"`
	// ReadAt is the time of AWS's and the cluster's answers.
	ReadAt time.Time `json:"readAt,omitzero"`
}

// Machine is a machine that is not ready.
type Machine struct {
	Instance string `json:"instance"`
	// Since is the time since which it should have been ready, zero if unknown.
	Since time.Time `json:"since,omitzero"`
	Why   string    `json:"why,omitempty"`
}

// MostWaiting is the maximum number of Waiting machines in a report.
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

// Permit limits the rollout of a governed pool.
type Permit struct {
	ID
	// Hash identifies the permitted configuration. The pool starts and continues nothing for any
	// other hash.
	Hash string `json:"hash"`
	// Share is the percentage of its machines that may run Hash. Zero holds the pool.
	Share int32 `json:"share"`
	// Rollouts lists the FleetRollouts that govern the pool.
	Rollouts []string `json:"rollouts"`
	// Wait explains why the pool waits, until when, and who can end that. It is empty if Share
	// is 100.
	Wait string `json:"wait,omitempty"`
	// Gate is set if the pool waits for a gate of its own wave. Ends describes who or what ends the
	// wait, if not the waves themselves.
	Gate bool   `json:"gate,omitempty"`
	Ends string `json:"ends,omitempty"`
	// Stopped is set if the hash is bad: weir cancels its own refresh to it, and machines without
	// it are no drift.
	Stopped bool `json:"stopped,omitempty"`
	// Back is the version to which machines of a stopped hash return. Nil leaves the machines as
	// they are.
	Back *Version `json:"back,omitempty"`
	// Watched is set if gates need the pool's facts now. Its owner then reads it often.
	Watched bool `json:"watched,omitempty"`
	// Alarms lists the CloudWatch alarms that these gates need, in order.
	Alarms []string `json:"alarms,omitempty"`
	// Seq is the Seq of the record that last changed the permit.
	Seq int64 `json:"seq"`
	// Stops lists the stopped changes of the pool. The record stores them once, for all permits.
	Stops []Bad `json:"-"`
}

// Bad is a hash that is not rolled out to a pool again until somebody requests it.
type Bad struct {
	ID
	Hash string `json:"hash"`
	// Rollout is the FleetRollout under which it was stopped. Why is the reason.
	Rollout string    `json:"rollout"`
	Why     string    `json:"why"`
	At      time.Time `json:"at"`
	// Earlier is the version that the pool ran before. Rollback is set if the pool returns to it.
	Earlier  *Version `json:"earlier,omitempty"`
	Rollback bool     `json:"rollback,omitempty"`
	// Fields lists the values that the stopped change set, tags last. If it is empty, as in records
	// of earlier releases, only the hash counts.
	Fields []Field `json:"fields,omitempty"`
}

// Verdict is the result of a gate.
type Verdict string

// Verdicts. Unknown makes the rollout wait.
const (
	Pass    Verdict = "pass"
	Fail    Verdict = "fail"
	Unknown Verdict = "unknown"
)

// Answer is a gate's answer about pools.
type Answer struct {
	Verdict Verdict `json:"verdict"`
	// What describes the finding with its value, or the missing fact.
	What string `json:"what"`
	// At is the time when the facts were read.
	At time.Time `json:"at"`
}

// Ask is a request to a gate about the pools of a wave.
type Ask struct {
	Rollout string             `json:"rollout"`
	Gate    intent.RolloutGate `json:"gate"`
	// Pools lists the pools to check, each with its wanted hash.
	Pools []Subject `json:"pools"`
	// Since is the start of the wave.
	Since time.Time `json:"since"`
}

// Key returns the key of the answer in Input.Answers.
func (a Ask) Key() string { return a.Rollout + "|" + a.Gate.Name }

// Subject is a pool with its wanted hash.
type Subject struct {
	ID
	Hash string `json:"hash"`
}
