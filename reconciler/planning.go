package reconciler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/span"
)

// planRounds limits the rounds of planning. Each may need further reads: by name, then versions,
// then refreshes, then commits.
const planRounds = 8

// plan observes and plans. If a plan has a step about a resource that a partial read left out, the
// pass reads everything and plans again.
func (ps *passState) plan(ctx context.Context) error {
	p := &planning{Options: ps.Options, memory: ps.memory, targets: ps.batch.Targets, inputs: ps.inputs, partial: ps.due}
	plans, state, err := p.observeAndPlan(ctx)
	if err == nil && p.partial.beyond(plans) {
		p.partial = nil
		plans, state, err = p.observeAndPlan(ctx)
	}
	if err != nil {
		return err
	}
	ps.partial, ps.observedAt, ps.listed = p.partial, p.observedAt, p.listed
	ps.plans, ps.state = plans, &state
	return nil
}

// planning reads AWS and plans until no facts are missing.
type planning struct {
	*Options
	memory  *memory
	targets []Desired
	inputs  []model.Input // completed with the state
	// partial limits the read; nil reads everything.
	partial *partialRead

	// observedAt is the start of the read. listed contains the groups and templates that it listed.
	observedAt time.Time
	listed     observed.Listed
}

func (p *planning) observeAndPlan(ctx context.Context) ([]*plan.Plan, observed.State, error) {
	state, read, err := p.observe(ctx)
	if err != nil || !read {
		return make([]*plan.Plan, len(p.inputs)), observed.State{}, err
	}
	return p.compute(ctx, state)
}

// observe reads AWS. read is false if there is nothing to plan and nothing to show.
func (p *planning) observe(ctx context.Context) (state observed.State, read bool, err error) {
	wanted := slices.ContainsFunc(p.targets, func(t Desired) bool { return t.Set != nil })
	if !wanted && !slices.ContainsFunc(p.targets, Desired.shown) {
		return observed.State{}, false, nil
	}
	observing, sp := span.Start(ctx, "observe")
	state, err = p.Cloud.Observe(observing, p.query())
	span.End(sp, err)
	if err != nil && !wanted && ctx.Err() == nil {
		// AWS was read only to show pools with a fault in Git. The faults matter more, so the error
		// is only logged.
		p.logger().Warn("cannot show pools that do not render as AWS has them", "error", err)
		return observed.State{}, false, nil
	}
	if err != nil {
		return observed.State{}, false, fmt.Errorf("observe: %w", err)
	}
	p.listed = observed.Listed{Groups: state.Groups, Templates: state.Templates}
	state.Refreshes = p.memory.refreshes.known(&state)
	return state, true, nil
}

// query returns the query of the read, and sets observedAt.
func (p *planning) query() observed.Query {
	p.observedAt = p.now()
	q := observed.Query{Groups: true, Templates: true, Round: p.Round, AskEvery: p.AskEvery, Moving: p.partial.names()}
	for _, t := range p.targets {
		q.Owner = t.Policy.Instance
	}
	q.EKSClusters = p.memory.clusters.query(p.targets, p.observedAt)
	return q
}

// compute plans until no plan needs further facts.
func (p *planning) compute(ctx context.Context, state observed.State) ([]*plan.Plan, observed.State, error) {
	plans := make([]*plan.Plan, len(p.inputs))
	polled := false
	index := model.NewIndex(&state)
	var only map[int]bool // nil: all
	for range planRounds {
		_, sp := span.Start(ctx, "plan")
		needs, asked := p.planOnce(ctx, plans, &state, index, only)
		sp.End()
		if polled {
			needs.Polls = nil // a later pass reads the rest
		}
		if only = nil; needs.Empty() && len(asked) > 0 {
			only = asked // nothing has changed for the other plans
			continue
		}
		if needs.Empty() {
			return plans, state, nil
		}
		polled = polled || len(needs.Polls) > 0
		filling, sp := span.Start(ctx, "fill")
		filled, err := p.Cloud.Fill(filling, state, needs)
		span.End(sp, err)
		if err != nil {
			return nil, observed.State{}, fmt.Errorf("observe: %w", err)
		}
		state = filled
		index = model.NewIndex(&state)
	}
	return nil, observed.State{}, fmt.Errorf("plan: the state of AWS was still incomplete after %d rounds of reading", planRounds)
}

// planOnce plans the targets, or only some of them, and returns the facts that the plans need. It
// asks the sources about commits that they need, and returns the targets for which it did.
func (p *planning) planOnce(ctx context.Context, plans []*plan.Plan, state *observed.State, index *model.Index, only map[int]bool) (observed.Needs, map[int]bool) {
	var needs observed.Needs
	asked := map[int]bool{}
	for i := range p.inputs {
		t, in := &p.targets[i], &p.inputs[i]
		if t.Set == nil || p.partial.skips(*t) || only != nil && !only[i] {
			continue
		}
		in.State, in.Index = state, index
		one, n := plan.Compute(*in)
		plans[i] = one
		needs.Add(n)
		if len(n.Commits) > 0 {
			asked[i] = true
			askRelations(ctx, *t, in, n.Commits)
		}
	}
	return needs, asked
}

// shown reports whether weir shows the pools of a target as they are in AWS although it cannot plan
// them: the fault is in Git, and the account is known.
func (t Desired) shown() bool {
	return t.Set == nil && t.Err == nil && t.Policy.Fault != "" && t.Policy.Region != "" && !t.Proposed
}

// askRelations asks the target's source about commits. A later pass repeats unanswered questions.
func askRelations(ctx context.Context, t Desired, in *model.Input, commits []string) {
	answers, err := t.Ancestry.Relations(ctx, t.Commit.Revision, commits)
	known := maps.Clone(in.Relations)
	if known == nil {
		known = map[string]model.Relation{}
	}
	for _, c := range commits {
		if known[c] = answers[c]; err != nil || known[c] == "" {
			known[c] = model.RelationAsked
		}
	}
	in.Relations = known
}
