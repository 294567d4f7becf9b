// Package step defines the parts of a plan: a Step with the changes that people see, the Action
// that it sends to AWS, and the Outcome of executing it. All are plain values that can be printed,
// compared, stored and approved. The packages that plan, execute and report steps communicate only
// through them.
//
// To add an action, add a type in action.go with its About, and a case in the adapter's Execute.
// Code that plans, holds, orders or reports steps uses About and never checks the type.
package step

import (
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/lazyregexp"
)

// Verb is the effect of a step on its resource.
type Verb string

// Verbs, most serious first: a pool is shown under the most serious verb of its steps.
const (
	Delete       Verb = "delete"
	Replace      Verb = "replace"
	Rollout      Verb = "rollout"
	Create       Verb = "create"
	Adopt        Verb = "adopt"
	Update       Verb = "update"
	PruneVersion Verb = "prune-version"
)

// Resource is the kind of AWS resource that a step changes.
type Resource string

// Resources.
const (
	LaunchTemplate   Resource = "launch-template"
	AutoScalingGroup Resource = "auto-scaling-group"
	ManagedNodegroup Resource = "nodegroup"
)

// Hold is the reason why a step does not run. Empty means that it runs.
type Hold string

// Holds.
const (
	HeldPaused     Hold = "paused"
	HeldSuspended  Hold = "suspended"
	HeldConflict   Hold = "conflict"
	HeldPruneLimit Hold = "prune-limit"
	HeldApproval   Hold = "approval"
	HeldWindow     Hold = "window"
)

// Step is one change to AWS. It is data: it can be printed, compared, stored and approved. Do is
// the request.
type Step struct {
	Verb     Verb     `json:"verb"`
	Resource Resource `json:"resource"`
	// Pool is the pool as "namespace/name", empty for an orphan without the tag.
	Pool string `json:"pool"`
	// LaunchConfig is "namespace/name" of the AWSLaunchConfig whose template the step changes.
	// Pools lists the pools that use it. Pool is then empty.
	LaunchConfig string   `json:"launchConfig,omitempty"`
	Pools        []string `json:"pools,omitempty"`
	Name         string   `json:"name"`
	// Reason explains the step briefly, for people.
	Reason string `json:"reason"`
	// Disruptive reports whether the step replaces or ends instances. Instances is their number.
	Disruptive bool `json:"disruptive"`
	Instances  int  `json:"instances"`
	Held       Hold `json:"held"`
	// HeldReason explains a hold: until when it lasts, or what the step waits for.
	HeldReason string `json:"heldReason,omitempty"`
	// HeldEnds describes who or what ends the hold, if that is more specific than the text for the
	// Hold. It is always set in the JSON form of a plan.
	HeldEnds string   `json:"heldEnds,omitempty"`
	Changes  []Change `json:"changes"`
	// Drift is set if the step corrects a change from outside Git.
	Drift *Drift `json:"drift,omitempty"`

	Do Action `json:"-"`
	// Stamp contains tags that are added if the step writes tags. They are no reason to write any.
	Stamp map[string]string `json:"-"`
	// Claim writes the commit to the resource's tags before Do runs, once in a pass. It is nil if
	// no separate call is needed for that.
	Claim Action `json:"-"`
	// Later is set for steps that wait for a later pass: AWS runs one update of a nodegroup at a
	// time, and a template is deleted after its group.
	Later bool `json:"-"`
	// Allowed is set for deletions beyond the limit that the commit's trailer allows.
	Allowed bool `json:"-"`
	// Seen describes the resource, with its owner, as it must still be right before the step.
	Seen *Seen `json:"-"`
	// Rollout identifies the result of a rollout, regardless of the template version with that
	// content.
	Rollout string `json:"-"`
	// Toward identifies the final launch configuration for the machines of the step's group or
	// nodegroup, regardless of the number of shares or versions on the way. Approvals of rollouts
	// refer to it.
	Toward string `json:"-"`
	// Fingerprint identifies the intent behind a nodegroup update.
	Fingerprint string `json:"-"`
	// First is set if the step would be the first to replace machines since the pool was adopted,
	// or belongs to such a step.
	First bool `json:"-"`
	// Stops is set if the step ends or reverts a rollout that was found bad. It waits for no
	// window, approval, wave or turn.
	Stops bool `json:"-"`
	// Wanted is the step's pool. For a shared template it is the first of its pools.
	Wanted *intent.Pool `json:"-"`
}

// Change is one field that a step changes. Field is the path below spec. From and To are JSON
// values, nil if absent.
type Change struct {
	Field  string         `json:"field"`
	From   any            `json:"from"`
	To     any            `json:"to"`
	Origin *diag.Position `json:"origin,omitempty"`
	// Words explains the values, for people.
	Words string `json:"words,omitempty"`

	// Object and Path identify the manifest field of the value, so that the caller can find its
	// origin.
	Object intent.ObjectRef `json:"-"`
	Path   intent.Path      `json:"-"`
}

// Holds by people, the clock, other targets and weir itself.
const (
	HeldWave         Hold = "wave"
	HeldGate         Hold = "gate"
	HeldRolloutLimit Hold = "rollout-limit"
	HeldWaiting      Hold = "waiting"
	HeldPolicy       Hold = "policy"
	// HeldPreflight is for steps that would end machines while AWS would refuse every new machine.
	HeldPreflight Hold = "preflight"
)

// Disrupts reports whether the step waits for a window: it replaces or ends machines, or deletes
// something. Creations, and corrections that affect no machine, need no window.
func (s Step) Disrupts() bool {
	return s.Disruptive || slices.Contains([]Verb{Rollout, Replace, Delete}, s.Verb)
}

// Rolls reports whether the step starts or continues to replace machines.
func (s Step) Rolls() bool {
	return !s.Stops && (s.Verb == Rollout || s.Verb == Replace) && !s.About().EndsRefresh()
}

// StartsRollout reports whether the step would start to replace instances now.
func (s Step) StartsRollout() bool {
	return s.Held == "" && !s.Later && s.Rolls()
}

// Passes reports whether the hold ends without a change of the plan: a window opens, an earlier
// target converges, somebody approves.
func (h Hold) Passes() bool {
	return slices.Contains([]Hold{HeldApproval, HeldWindow, HeldWave, HeldGate, HeldRolloutLimit, HeldWaiting, HeldPolicy, HeldPreflight}, h)
}

// Stays reports whether the hold may last for months. Nobody needs findings about such steps,
// and weir would request them in every pass.
func (h Hold) Stays() bool {
	return slices.Contains([]Hold{HeldPaused, HeldSuspended, HeldConflict, HeldStopped, HeldControlPlane}, h)
}

// HeldControlPlane is for steps that wait for a control plane: its cluster is still being created,
// or its API servers are older than the wanted kubelets. It ends without a change of the pool, so
// it is no fault.
const HeldControlPlane Hold = "control-plane"

// LaunchesNewer reports whether the step starts machines, or makes a launch configuration, with a
// possibly different kubelet version. If the launch configuration does not decide the version
// (decides is false), EKS does, and its version has a separate step.
func (s Step) LaunchesNewer(decides bool) bool {
	a := s.About()
	return a.Starts || a.Configures && decides
}

// HeldStopped is for steps that this process must not execute: another weir is ahead, AWS accepts
// the change and does not keep it, or the wanted configuration was found bad.
const HeldStopped Hold = "stopped"

// MovesLevel reports whether the step makes machines run something else, or makes the template for
// that.
func (s Step) MovesLevel() bool {
	return s.Disrupts() || s.Verb == Create || s.Resource == LaunchTemplate
}

// Mends reports whether the step corrects a change from outside Git and replaces nothing. It brings
// its target to no other level, so it waits for no other target.
func (s Step) Mends() bool { return s.Drift != nil && !s.Disrupts() }

// OwnerOfConfig is the prefix of Step.Owner for the steps of an AWSLaunchConfig.
const OwnerOfConfig = "launch-config "

// Owner returns the owner of the step: the pool, or the AWSLaunchConfig with the prefix
// "launch-config". The steps of one owner run in order.
func (s Step) Owner() string {
	if s.LaunchConfig != "" {
		return OwnerOfConfig + s.LaunchConfig
	}
	return s.Pool
}

// OfLaunchConfig reports whether an owner is an AWSLaunchConfig.
func OfLaunchConfig(owner string) bool { return strings.HasPrefix(owner, OwnerOfConfig) }

// Drift is the cause of a change from outside Git that a step corrects.
type Drift struct {
	// At and Cause come from AWS's scaling activities, which explain only sizes and machines. They
	// are zero if AWS gives no cause.
	At    time.Time `json:"at,omitzero"`
	Cause string    `json:"cause,omitempty"`
}

var newDesired = lazyregexp.New(`changing the desired capacity from \d+ to (\d+)\b`)
