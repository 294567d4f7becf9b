package plan

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/weir-gitops/weir/reconciler/plan/lastgood"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
)

// Plan is the work that one pass does for one target.
type Plan struct {
	Target   string
	Revision string
	Account  string
	Region   string
	Steps    []step.Step
	// Diagnostics lists the render's and the planner's diagnostics, sorted.
	Diagnostics diag.List
	Summary     Summary
	// Secretless is set if the plan was made without secrets. Such a plan has no digest.
	Secretless bool
	// Granted reports whether an approval allows the plan to run.
	Granted bool
	// Ahead lists the commits that stop steps: resources in AWS name them, and the followed commit
	// is older or unrelated. They are full or short hashes.
	Ahead []string
	// pools contains the facts of each pool other than its steps and diagnostics.
	pools model.PoolPlans
	// resolved is the result of Resolved.
	resolved map[string]model.ReviewedImage
	// verdict is the decision whether the target is held to the revision of Policy.Fallback.
	verdict lastgood.Verdict
	// Digested is the digest of the original if this plan is a copy for display, without the values
	// that the digest covers. Otherwise it is empty.
	Digested string
	// held is the result of Holding if the plan is a copy from another weir's record.
	held *Holding
}

// Summary counts pools by their most serious verb.
type Summary struct {
	Create    int `json:"create"`
	Update    int `json:"update"`
	Replace   int `json:"replace"`
	Delete    int `json:"delete"`
	Rollout   int `json:"rollout"`
	Unchanged int `json:"unchanged"`
}

// Unplanned explains why it is unknown whether a pool matches Git; empty if it is known.
func (p *Plan) Unplanned(pool string) string { return p.pools.Named(pool).Unplanned() }

// behind reports whether a pool follows images and leaves a newer one to a later plan.
func (p *Plan) behind() bool {
	return slices.ContainsFunc(p.pools, func(pool model.PoolPlan) bool { return pool.Behind })
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
	Schema      string      `json:"schema"`
	Target      string      `json:"target"`
	Revision    string      `json:"revision"`
	Digest      string      `json:"digest,omitempty"`
	Summary     Summary     `json:"summary"`
	Steps       []step.Step `json:"steps"`
	Diagnostics diag.List   `json:"diagnostics"`
}

// MarshalJSON writes the schema weir.dev/plan/v1.
func (p *Plan) MarshalJSON() ([]byte, error) {
	out := planJSON{
		Schema: "weir.dev/plan/v1", Target: p.Target, Revision: p.Revision, Digest: p.Digest(),
		Summary: p.Summary, Steps: p.Steps, Diagnostics: p.Diagnostics,
	}
	// Several goroutines may use the plan at once, so MarshalJSON changes a copy.
	out.Steps = append([]step.Step{}, out.Steps...)
	for i := range out.Steps {
		out.Steps[i].HeldEnds = out.Steps[i].Ends(p.Target)
		if out.Steps[i].Changes == nil {
			out.Steps[i].Changes = []step.Change{}
		}
	}
	if out.Diagnostics == nil {
		out.Diagnostics = diag.List{}
	}
	return json.Marshal(out)
}

// Resolved returns the images of the versions that the plan makes, by SourceHash, as a review of
// the plan shows them.
func (p *Plan) Resolved() map[string]model.ReviewedImage { return p.resolved }

// Image returns the image of the launch template version that a pool wants, empty if unknown.
// release is the version that its nodegroup runs.
func (p *Plan) Image(pool string) (image string, release model.Release) {
	if known := p.pools.Named(pool); known != nil {
		image, release = known.Image, known.Release
	}
	return image, release
}

// Realized returns the SourceHashes of in.Reviewed whose images AWS now has, for pools that have
// converged. The next published image then needs a new decision.
func (p *Plan) Realized(pools []PoolStatus) []string {
	converged := map[string]bool{}
	for _, s := range pools {
		converged[s.Namespace+"/"+s.Name] = s.Converged
	}
	out := map[string]bool{}
	for i := range p.pools {
		source := p.pools[i].Reviewed
		if was, known := out[source]; source != "" && (!known || was) {
			out[source] = converged[p.pools[i].Key.String()]
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(out)), func(source string) bool { return !out[source] })
}

// Governed returns the pools that FleetRollouts govern, with the facts for their conductor.
func (p *Plan) Governed() []rollout.Pool {
	var out []rollout.Pool
	for i := range p.pools {
		if g := p.pools[i].Governed; g != nil {
			out = append(out, *g)
		}
	}
	for i := range out {
		n := slices.IndexFunc(p.Steps, func(s step.Step) bool {
			return s.Pool == out[i].Pool && s.Rolls() && s.Held != "" && s.Held != step.HeldWave && s.Held != step.HeldGate && s.Held != step.HeldStopped
		})
		if n >= 0 {
			out[i].Held = string(p.Steps[n].Held) + ": " + p.Steps[n].HeldReason
		}
	}
	return out
}

// Watched returns the instance refreshes that the plan's pools wait for, by group.
func (p *Plan) Watched() map[string]model.Watched {
	out := map[string]model.Watched{}
	for i := range p.pools {
		if w := p.pools[i].Watched; w != nil {
			out[w.Group] = *w
		}
	}
	return out
}

// ImageChanges calls each for every change of an image in the plan.
func (p *Plan) ImageChanges(each func(*step.Change)) {
	for i := range p.Steps {
		for j := range p.Steps[i].Changes {
			ch := &p.Steps[i].Changes[j]
			if n := len(ch.Path); n > 1 && ch.Path[n-2] == "ami" && ch.Path[n-1] == "id" {
				each(ch)
			}
		}
	}
}
