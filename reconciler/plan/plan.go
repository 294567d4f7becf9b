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

// Plan is the work that one pass would do for one target.
type Plan struct {
	Target   string
	Revision string
	Account  string
	Region   string
	Steps    []step.Step
	// Diagnostics are the render's and the planner's, sorted.
	Diagnostics diag.List
	Summary     Summary
	// Secretless plans were made without secrets: they have no digest.
	Secretless bool
	// Granted says that an approval let the plan run.
	Granted bool
	// Ahead are the commits for which steps are stopped, as AWS names them.
	Ahead []string
	// pools holds the facts of each pool other than its steps and diagnostics.
	pools model.PoolPlans
	// resolved is the result of Resolved.
	resolved map[string]model.ReviewedImage
	// verdict reports whether the target is held to the revision of the policy.
	verdict lastgood.Verdict
	// Digested is the digest of the plan that this one is a copy of, for who is shown it:
	// its steps lack what the digest is made of. It is empty for the plan itself.
	Digested string
	// held is the result of Holding where the plan is such a copy of another weir's.
	held *Holding
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

// Unplanned says why it is not known whether a pool is as Git wants it; empty where it is.
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
	// The plan may be shown in several places at once, so it is not changed.
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

// Resolved are the images of the versions that the plan makes, by SourceHash, as AWS
// answered: what a review of the plan has shown.
func (p *Plan) Resolved() map[string]model.ReviewedImage { return p.resolved }

// Image is that of the launch template version that a pool wants, empty where none is known,
// and release what its nodegroup has.
func (p *Plan) Image(pool string) (image string, release model.Release) {
	if known := p.pools.Named(pool); known != nil {
		image, release = known.Image, known.Release
	}
	return image, release
}

// Realized are those of in.Reviewed that AWS holds as they were reviewed, for pools that
// have converged: the next published image is a new decision.
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

// Governed are the pools that FleetRollouts govern, as their conductor must know them.
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

// Watched are the instance refreshes that the plan's pools wait for, by group.
func (p *Plan) Watched() map[string]model.Watched {
	out := map[string]model.Watched{}
	for i := range p.pools {
		if w := p.pools[i].Watched; w != nil {
			out[w.Group] = *w
		}
	}
	return out
}

// ImageChanges calls each with every change of an image in the plan.
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
