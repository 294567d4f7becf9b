package plan

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/plan/lastgood"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
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
	// outstanding says, by pool, what Git asks for that AWS does not hold yet although
	// no step is left to plan.
	outstanding map[string]basis.Outstanding
	// matching are the nodegroups that match Git, by pool.
	matching map[string]observed.NodegroupName
	// wantedImages are those of the versions that pools want, releases those that their
	// nodegroups have, by pool.
	wantedImages map[string]string
	releases     map[string]basis.Release
	// watched are the instance refreshes that its pools wait for, by group.
	watched map[string]basis.Watched
	// governed is the result of Governed.
	governed []rollout.Pool
	// wants are the numbers of the versions that pools want of the templates that
	// they share, those that exist.
	wants map[intent.Key]int64
	// resolved is the result of Resolved, reviewed says of pools which reviewed version
	// AWS holds for them.
	resolved map[string]basis.ReviewedImage
	reviewed map[string]string
	// behind are the pools that follow images and leave a newer one to a later plan.
	behind map[string]bool
	// verdict says whether the target is held to the revision of the policy, and undone are
	// the pools of it with work that is left for then.
	verdict lastgood.Verdict
	// verdicts are the same for the pools that are held while the target is not.
	verdicts map[string]lastgood.Verdict
	undone   map[string]bool
	// unplanned is why it is not known of pools whether they are as wanted.
	unplanned map[string]string
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
func (p *Plan) Unplanned(pool string) string { return p.unplanned[pool] }

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
func (p *Plan) Resolved() map[string]basis.ReviewedImage { return p.resolved }

// Image is that of the launch template version that a pool wants, empty where none is known,
// and release what its nodegroup has.
func (p *Plan) Image(pool string) (image string, release basis.Release) {
	return p.wantedImages[pool], p.releases[pool]
}

// Realized are those of in.Reviewed that AWS holds as they were reviewed, for pools that
// have converged: the next published image is a new decision.
func (p *Plan) Realized(pools []PoolStatus) []string {
	converged := map[string]bool{}
	for _, s := range pools {
		converged[s.Namespace+"/"+s.Name] = s.Converged
	}
	out := map[string]bool{}
	for pool, source := range p.reviewed {
		if was, known := out[source]; !known || was {
			out[source] = converged[pool]
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(out)), func(source string) bool { return !out[source] })
}

// Governed are the pools that FleetRollouts govern, as their conductor must know them.
func (p *Plan) Governed() []rollout.Pool {
	out := slices.Clone(p.governed)
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
func (p *Plan) Watched() map[string]basis.Watched { return p.watched }

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
