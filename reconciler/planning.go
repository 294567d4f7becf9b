package reconciler

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/span"
)

// planRounds bounds how often planning may ask for more of the state: by name,
// then versions, then refreshes, then commits.
const planRounds = 8

// plan observes and plans. If a plan has a step about something that a partial read left out, the pass
// reads everything and plans again.
func (ps *passState) plan(ctx context.Context) error {
	ps.partial = ps.due
	plans, state, err := ps.observeAndPlan(ctx)
	if err == nil && ps.partial.beyond(plans) {
		ps.partial = nil
		plans, state, err = ps.observeAndPlan(ctx)
	}
	if err != nil {
		return err
	}
	ps.plans, ps.state = plans, &state
	return nil
}

func (ps *passState) observeAndPlan(ctx context.Context) ([]*plan.Plan, observed.State, error) {
	state, read, err := ps.observe(ctx)
	if err != nil || !read {
		return make([]*plan.Plan, len(ps.inputs)), observed.State{}, err
	}
	return ps.compute(ctx, state)
}

// observe reads AWS. read is false if there is nothing to plan and nothing to show.
func (ps *passState) observe(ctx context.Context) (state observed.State, read bool, err error) {
	targets := ps.batch.Targets
	wanted := slices.ContainsFunc(targets, func(t Desired) bool { return t.Set != nil })
	if !wanted && !slices.ContainsFunc(targets, Desired.shown) {
		return observed.State{}, false, nil
	}
	observing, sp := span.Start(ctx, "observe")
	state, err = ps.Cloud.Observe(observing, ps.query())
	span.End(sp, err)
	if err != nil && !wanted && ctx.Err() == nil {
		// AWS was read only to show pools that have a fault in Git: their faults come first.
		ps.logger().Warn("pools that cannot be rendered cannot be shown as AWS has them", "error", err)
		return observed.State{}, false, nil
	}
	if err != nil {
		return observed.State{}, false, fmt.Errorf("observe: %w", err)
	}
	ps.listed = observed.Listed{Groups: state.Groups, Templates: state.Templates}
	state.Refreshes = ps.memory.refreshes.known(&state)
	return state, true, nil
}

// query returns what to observe, and notes when that starts.
func (ps *passState) query() observed.Query {
	ps.observedAt = ps.now()
	q := observed.Query{Groups: true, Templates: true, Round: ps.Round, AskEvery: ps.AskEvery, Near: ps.partial.names()}
	for _, t := range ps.batch.Targets {
		q.Owner = t.Policy.Instance
	}
	q.EKSClusters = ps.memory.clusters.query(ps.batch.Targets, ps.observedAt)
	return q
}

// compute plans until no plan needs further facts.
func (ps *passState) compute(ctx context.Context, state observed.State) ([]*plan.Plan, observed.State, error) {
	plans := make([]*plan.Plan, len(ps.inputs))
	polled := false
	index := basis.NewIndex(&state)
	var only map[int]bool // nil: all
	for range planRounds {
		_, sp := span.Start(ctx, "plan")
		needs, asked := ps.planOnce(ctx, plans, &state, index, only)
		sp.End()
		if polled {
			needs.Polls = nil // a later pass asks for what this one did not get
		}
		if only = nil; needs.Empty() && len(asked) > 0 {
			only = asked // the other plans depend on nothing that has changed
			continue
		}
		if needs.Empty() {
			return plans, state, nil
		}
		polled = polled || len(needs.Polls) > 0
		filling, sp := span.Start(ctx, "fill")
		filled, err := ps.Cloud.Fill(filling, state, needs)
		span.End(sp, err)
		if err != nil {
			return nil, observed.State{}, fmt.Errorf("observe: %w", err)
		}
		state = filled
		index = basis.NewIndex(&state)
	}
	return nil, observed.State{}, fmt.Errorf("plan: the state of AWS was still incomplete after %d rounds of reading", planRounds)
}

// planOnce plans the targets, or only some, and returns which facts the plans need. It asks the sources
// about commits that they need, and returns the targets for which it did.
func (ps *passState) planOnce(ctx context.Context, plans []*plan.Plan, state *observed.State, index *basis.Index, only map[int]bool) (observed.Needs, map[int]bool) {
	var needs observed.Needs
	asked := map[int]bool{}
	for i := range ps.inputs {
		t, in := &ps.batch.Targets[i], &ps.inputs[i]
		if t.Set == nil || ps.partial.skips(*t) || only != nil && !only[i] {
			continue
		}
		in.State, in.Index = state, index
		p, n := plan.Compute(*in)
		plans[i] = p
		needs.Add(n)
		if len(n.Commits) > 0 {
			asked[i] = true
			askRelations(ctx, *t, in, n.Commits)
		}
	}
	return needs, asked
}

// shown reports whether the pools of a target are shown as AWS has them although nothing
// of it can be planned: the fault is in Git, and the account is known.
func (t Desired) shown() bool {
	return t.Set == nil && t.Err == nil && t.Policy.Fault != "" && t.Policy.Region != "" && !t.Proposed
}

// askRelations asks the target's source about commits. A later pass repeats unanswered questions.
func askRelations(ctx context.Context, t Desired, in *basis.Input, commits []string) {
	answers, err := t.Ancestry.Relations(ctx, t.Commit.Revision, commits)
	known := maps.Clone(in.Relations)
	if known == nil {
		known = map[string]basis.Relation{}
	}
	for _, c := range commits {
		if known[c] = answers[c]; err != nil || known[c] == "" {
			known[c] = basis.RelationAsked
		}
	}
	in.Relations = known
}
