package propose

import (
	"context"
	"slices"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/accept"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/status/proposal/accepts"
)

// Accepts finds differences between AWS and a source's pools. It implements accepts.Fleet.
type Accepts struct {
	Source
	// Last returns the last plan of a target, nil if none exists.
	Last func(target string) *plan.Plan
}

// planTarget plans one target of a commit.
func (p Accepts) planTarget(ctx context.Context, s snapshot.Snapshot, target string) (*fleet.Review, *reconciler.Desired, *observed.State, *plan.Plan, error) {
	review, reports, err := p.plan(ctx, s, "what AWS has of "+p.Name, []string{target}, false)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	r := reports[target]
	switch {
	case r == nil:
		return nil, nil, nil, nil, &gates.Fault{Message: "the target " + target + " was not planned", Hint: "look at weir's page"}
	case r.Plan == nil || r.Err != nil:
		return nil, nil, nil, nil, &gates.Fault{Message: "the target " + target + " cannot be planned: " + faultOf(r), Hint: "correct that first"}
	}
	for _, b := range review.Batches {
		for k := range b.Targets {
			if b.Targets[k].Policy.Target == target && b.Targets[k].Set != nil && b.Inputs != nil {
				return review, &b.Targets[k], &b.Inputs.State, r.Plan, nil
			}
		}
	}
	return nil, nil, nil, nil, &gates.Fault{Message: "the target " + target + " does not render", Hint: "look at weir's page"}
}

// unknownOf returns the reason why a plan does not contain the differences of a pool.
func unknownOf(d *reconciler.Desired, p *plan.Plan, pool string) string {
	if d.Whole || slices.ContainsFunc(d.Set.Pools, func(p intent.Pool) bool { return p.Key.String() == pool }) {
		return p.Unplanned(pool)
	}
	return partly(d)
}

// Find implements accepts.Fleet.
func (p Accepts) Find(ctx context.Context, on string, a accepts.Asked) (out accepts.Found, err error) {
	head, err := p.Git.At(ctx, on)
	if err != nil {
		return out, err
	}
	review, d, seen, before, err := p.planTarget(ctx, head, a.Target)
	if err != nil {
		return out, err
	}
	if why := unknownOf(d, before, a.Pool); why != "" {
		return out, &gates.Fault{Message: "how the pool " + a.Pool + " differs in AWS is unknown: " + why, Hint: "correct that first"}
	}
	c := accept.Choice{Pools: []string{a.Pool}, Fields: a.Fields}
	if last := p.Last(a.Target); len(a.Fields) == 0 && last != nil {
		c.Drifted = accept.Drifted(last) // changes by a commit that AWS does not have yet must not count
	}
	out.Fields = accept.Find(a.Target, d.Set, before, seen, c)
	changes := accept.Changes(out.Fields)
	if len(changes) == 0 {
		return out, nil
	}
	done, err := write(ctx, head.Tree, review, changes)
	if err != nil {
		return out, err
	}
	accept.Take(out.Fields, changes, done)
	if out.Files = done.Files; len(out.Files) == 0 {
		return out, nil
	}
	edited, err := p.Git.Edited(ctx, on, out.Files)
	if err != nil {
		return out, err
	}
	_, d, _, after, err := p.planTarget(ctx, edited, a.Target)
	if err != nil {
		return out, err
	}
	if why := unknownOf(d, after, a.Pool); why != "" {
		return out, &gates.Fault{Message: "with what AWS has, the pool " + a.Pool + " cannot be planned: " + why, Hint: "write it into the manifests by hand"}
	}
	out.More = accept.Prove(out.Fields, before, after)
	return out, nil
}
