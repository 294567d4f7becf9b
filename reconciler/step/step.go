// Package step holds what a plan is made of: a Step with the changes that it shows to
// people and the Action that it asks of AWS, and the Outcome of doing it. They are leaf
// values: they can be printed, compared, stored and approved, and the ones who plan,
// execute and tell of them know each other by them alone.
//
// A new action is one type in action.go that says what it is About, and a case in the
// adapter's Execute. Code that plans, holds, orders or reports steps asks About, never
// which type it is.
package step

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// Verb says what a step does to its resource.
type Verb string

// Verbs, gravest first: a pool is shown under its gravest.
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

// Hold says why a step does not run. Empty means that it does.
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

// Step is one change to AWS. It is data: it can be printed, compared, stored
// and approved; Do holds the request.
type Step struct {
	Verb     Verb     `json:"verb"`
	Resource Resource `json:"resource"`
	// Pool is "namespace/name" of the pool, empty for an orphan whose tag is gone.
	Pool string `json:"pool"`
	// LaunchConfig is "namespace/name" of the AWSLaunchConfig whose template the
	// step changes, and Pools are those that use it; Pool is then empty.
	LaunchConfig string   `json:"launchConfig,omitempty"`
	Pools        []string `json:"pools,omitempty"`
	Name         string   `json:"name"`
	// Reason says in a few words why, for people.
	Reason string `json:"reason"`
	// Disruptive steps replace or end instances; Instances says how many.
	Disruptive bool `json:"disruptive"`
	Instances  int  `json:"instances"`
	Held       Hold `json:"held"`
	// HeldReason says more about a hold: until when, or what it waits for.
	HeldReason string `json:"heldReason,omitempty"`
	// HeldEnds names who or what ends the hold, if that is more specific than the hold's own words.
	// A plan as JSON always has it.
	HeldEnds string   `json:"heldEnds,omitempty"`
	Changes  []Change `json:"changes"`
	// Drift is set where the step puts right what changed outside Git.
	Drift *Drift `json:"drift,omitempty"`

	Do Action `json:"-"`
	// Stamp are tags that go along where the step writes tags, and are no reason to write any.
	Stamp map[string]string `json:"-"`
	// Claim writes the commit to the resource's tags before Do runs, once in a pass; nil if
	// no call of its own is needed for that.
	Claim Action `json:"-"`
	// Later steps are part of the plan and wait for a later pass: AWS takes one
	// update of a nodegroup at a time, and a template outlives its group.
	Later bool `json:"-"`
	// Allowed deletions go beyond the limit because of the commit's trailer.
	Allowed bool `json:"-"`
	// Seen is the resource that must still exist, and its owner, right before the step
	// ends it.
	Seen *Seen `json:"-"`
	// Rollout identifies what a rollout brings a pool to, whichever version holds it.
	Rollout string `json:"-"`
	// Toward identifies what the machines of the step's group or nodegroup are to be
	// launched of in the end, however many shares or versions lie between: it is what an
	// approval of a rollout is about.
	Toward string `json:"-"`
	// Fingerprint identifies the intent behind a nodegroup update.
	Fingerprint string `json:"-"`
	// First says that the step would be the first to replace machines since the pool
	// was taken over, or goes along with that.
	First bool `json:"-"`
	// Stops says that the step ends a rollout that was found bad, or takes it back: it
	// waits for no window, approval, wave or turn.
	Stops bool `json:"-"`
	// Wanted is the step's pool, for a shared template the first of its pools.
	Wanted *intent.Pool `json:"-"`
}

// Change is one field that a step changes. Field is the path below spec; From
// and To are JSON values, nil where absent.
type Change struct {
	Field  string         `json:"field"`
	From   any            `json:"from"`
	To     any            `json:"to"`
	Origin *diag.Position `json:"origin,omitempty"`
	// Words say what the values mean, for people.
	Words string `json:"words,omitempty"`

	// Object and Path say which manifest field the value came from, so that
	// the caller can attach the origin.
	Object intent.ObjectRef `json:"-"`
	Path   intent.Path      `json:"-"`
}

// Holds that come from people, the clock, other targets and weir itself.
const (
	HeldWave         Hold = "wave"
	HeldGate         Hold = "gate"
	HeldRolloutLimit Hold = "rollout-limit"
	HeldWaiting      Hold = "waiting"
	HeldPolicy       Hold = "policy"
	// HeldPreflight steps would end machines while AWS is known to refuse every new one.
	HeldPreflight Hold = "preflight"
)

// Disrupts reports whether the step waits for a window: it replaces or ends what
// runs, or deletes something. Creations, and corrections that touch no machine, need no
// window.
func (s Step) Disrupts() bool {
	return s.Disruptive || slices.Contains([]Verb{Rollout, Replace, Delete}, s.Verb)
}

// Rolls reports whether the step replaces machines, or goes on with that.
func (s Step) Rolls() bool {
	return !s.Stops && (s.Verb == Rollout || s.Verb == Replace) && !s.About().EndsRefresh()
}

// StartsRollout reports whether the step would begin to replace instances.
func (s Step) StartsRollout() bool {
	return s.Held == "" && !s.Later && s.Rolls()
}

// Passes reports whether a hold ends without a change of the plan: a window opens, an
// earlier target converges, somebody approves.
func (h Hold) Passes() bool {
	return slices.Contains([]Hold{HeldApproval, HeldWindow, HeldWave, HeldGate, HeldRolloutLimit, HeldWaiting, HeldPolicy, HeldPreflight}, h)
}

// Stays reports whether a hold may last for months: nobody waits for findings about steps
// that are not about to run, and they would be asked for in each pass.
func (h Hold) Stays() bool {
	return slices.Contains([]Hold{HeldPaused, HeldSuspended, HeldConflict, HeldStopped, HeldControlPlane}, h)
}

// HeldControlPlane holds what a control plane has to be ready for: a cluster that is
// still being made, or one whose API servers are older than the kubelets that Git
// wants. It passes without anything being done about the pool, so it is no fault.
const HeldControlPlane Hold = "control-plane"

// LaunchesNewer reports whether the step makes machines, or a launch configuration
// for them, that may have another kubelet than the pool has. Where the launch
// configuration does not decide that, EKS does, and its version gets its own step.
func (s Step) LaunchesNewer(decides bool) bool {
	a := s.About()
	return a.Starts || a.Configures && decides
}

// HeldStopped steps are not this process's to do: another weir is ahead of it, AWS takes
// them and does not keep them, or what they bring machines to was found bad.
const HeldStopped Hold = "stopped"

// MovesLevel reports whether the step makes machines run something else, or makes what
// they are to run.
func (s Step) MovesLevel() bool {
	return s.Disrupts() || s.Verb == Create || s.Resource == LaunchTemplate
}

// Mends reports whether the step puts back what was changed outside Git and replaces
// nothing: it takes its target to no other level, so it waits for no other target.
func (s Step) Mends() bool { return s.Drift != nil && !s.Disrupts() }

// OwnerOfConfig begins what Step.Owner says of the steps of an AWSLaunchConfig.
const OwnerOfConfig = "launch-config "

// Owner names what the step belongs to: the pool, or the AWSLaunchConfig behind
// the words "launch-config". The steps of one owner run in order.
func (s Step) Owner() string {
	if s.LaunchConfig != "" {
		return OwnerOfConfig + s.LaunchConfig
	}
	return s.Pool
}

// OfLaunchConfig reports whether an owner is an AWSLaunchConfig.
func OfLaunchConfig(owner string) bool { return strings.HasPrefix(owner, OwnerOfConfig) }

// Drift says that a step corrects a change that was made outside Git.
type Drift struct {
	// At and Cause come from AWS's scaling activities, zero where they say nothing:
	// they tell of sizes and machines only.
	At    time.Time `json:"at,omitzero"`
	Cause string    `json:"cause,omitempty"`
}

var newDesired = regexp.MustCompile(`changing the desired capacity from \d+ to (\d+)\b`)
