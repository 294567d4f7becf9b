// Package plan decides what to do: from intents, answers and observed state it
// computes the steps that make AWS what Git says. It is pure: no context, no
// clock, no SDK, no logger. The same functions serve `weir plan`, the comment on
// a pull request, drift detection and the apply, so they cannot disagree.
package plan

import (
	"encoding/json"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// Verb says what a step does to its resource.
type Verb string

// Verbs, gravest first: a pool counts under its gravest.
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
	HeldReason string   `json:"heldReason,omitempty"`
	Changes    []Change `json:"changes"`
	// Drift is set where the step puts right what changed outside Git.
	Drift *Drift `json:"drift,omitempty"`

	Do Action `json:"-"`
	// Later steps are part of the plan and wait for a later pass: AWS takes one
	// update of a nodegroup at a time, and a template outlives its group.
	Later bool `json:"-"`
	// Allowed deletions go beyond the limit because of the commit's trailer.
	Allowed bool `json:"-"`
	// Seen is what must still be there, and whose, right before the step ends it.
	Seen *Seen `json:"-"`
	// Rollout identifies what a rollout brings a pool to, whichever version holds it.
	Rollout string `json:"-"`
	// Fingerprint identifies the intent behind a nodegroup update.
	Fingerprint string `json:"-"`
	// First says that the step would be the first to replace machines since the pool
	// was taken over, or goes along with that.
	First bool `json:"-"`
	// Wanted is the pool that the step is of, of what is shared the first.
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

// Plan is what one pass would do for one target.
type Plan struct {
	Target   string
	Revision string
	Account  string
	Region   string
	Steps    []Step
	// Diagnostics are the render's and the planner's, sorted.
	Diagnostics diag.List
	Summary     Summary
	// Secretless plans were made without secrets: they have no digest.
	Secretless bool
	// Granted says that an approval let the plan run.
	Granted bool
	// Ahead are the commits for which steps are stopped, as AWS names them.
	Ahead []string
	// outstanding says, by pool, what Git asks for that AWS does not hold yet although
	// no step is left to plan.
	outstanding map[string]outstanding
	// homes are the nodegroups that are what Git wants, by pool.
	homes map[string]NodegroupName
	// watched are the instance refreshes that its pools wait for, by group.
	watched map[string]Watched
	// wants are the numbers of the versions that pools want of the templates that
	// they share, those that exist.
	wants map[intent.Key]int64
	// resolved is what Resolved returns, reviewed says of pools which reviewed version
	// AWS holds for them.
	resolved map[string]ReviewedImage
	reviewed map[string]string
	// behind are the pools that follow images and leave a newer one to a later plan.
	behind map[string]bool
}

// Summary counts pools by their gravest verb.
type Summary struct {
	Create    int `json:"create"`
	Update    int `json:"update"`
	Replace   int `json:"replace"`
	Delete    int `json:"delete"`
	Rollout   int `json:"rollout"`
	Unchanged int `json:"unchanged"`
}

// Empty reports whether the plan has no step at all, held ones included.
func (p *Plan) Empty() bool { return len(p.Steps) == 0 }

// Runnable returns how many steps are not held.
func (p *Plan) Runnable() int {
	n := 0
	for _, s := range p.Steps {
		if s.Held == "" {
			n++
		}
	}
	return n
}

// planJSON is the stable wire form of a Plan, schema weir.dev/plan/v1.
type planJSON struct {
	Schema      string    `json:"schema"`
	Target      string    `json:"target"`
	Revision    string    `json:"revision"`
	Digest      string    `json:"digest,omitempty"`
	Summary     Summary   `json:"summary"`
	Steps       []Step    `json:"steps"`
	Diagnostics diag.List `json:"diagnostics"`
}

// MarshalJSON writes the schema weir.dev/plan/v1.
func (p *Plan) MarshalJSON() ([]byte, error) {
	out := planJSON{
		Schema: "weir.dev/plan/v1", Target: p.Target, Revision: p.Revision, Digest: p.Digest(),
		Summary: p.Summary, Steps: p.Steps, Diagnostics: p.Diagnostics,
	}
	// The plan may be shown in several places at once, so it is not changed.
	out.Steps = append([]Step{}, out.Steps...)
	for i := range out.Steps {
		if out.Steps[i].Changes == nil {
			out.Steps[i].Changes = []Change{}
		}
	}
	if out.Diagnostics == nil {
		out.Diagnostics = diag.List{}
	}
	return json.Marshal(out)
}
