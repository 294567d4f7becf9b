package reconciler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/span"
	"github.com/weir-gitops/weir/render/intent"
)

// planRounds bounds how often planning may ask for more of the state: by name,
// then versions, then refreshes, then commits.
const planRounds = 8

// plan observes and plans until no plan needs further facts.
func (s *Scope) plan(ctx context.Context, targets []Desired, inputs []basis.Input, near *near) ([]*plan.Plan, observed.State, error) {
	plans := make([]*plan.Plan, len(targets))
	wanted := slices.ContainsFunc(targets, func(t Desired) bool { return t.Set != nil })
	if !wanted && !slices.ContainsFunc(targets, Desired.shown) {
		return plans, observed.State{}, nil
	}
	observing, sp := span.Start(ctx, "observe")
	query := s.query(targets)
	query.Near = near.query()
	state, err := s.Cloud.Observe(observing, query)
	span.End(sp, err)
	if err != nil && !wanted && ctx.Err() == nil {
		// AWS was read only to show pools that have a fault in Git: their faults come first.
		s.logger().Warn("pools that cannot be rendered cannot be shown as AWS has them", "error", err)
		return plans, observed.State{}, nil
	}
	if err != nil {
		return nil, observed.State{}, fmt.Errorf("observe: %w", err)
	}
	s.listed = observed.Listed{Groups: state.Groups, Templates: state.Templates}
	state.Refreshes = s.knownRefreshes(&state)
	polled := false
	index := basis.NewIndex(&state)
	var only map[int]bool // nil: all
	for range planRounds {
		var needs observed.Needs
		asked := map[int]bool{}
		_, sp := span.Start(ctx, "plan")
		for i := range targets {
			if targets[i].Set == nil || near.still(targets[i]) || only != nil && !only[i] {
				continue
			}
			inputs[i].State, inputs[i].Index = &state, index
			p, n := plan.Compute(inputs[i])
			plans[i] = p
			needs.Add(n)
			if len(n.Commits) > 0 {
				asked[i] = true
				askRelations(ctx, targets[i], &inputs[i], n.Commits)
			}
		}
		sp.End()
		if polled {
			needs.Polls = nil // a later pass asks for what this one did not get
		}
		if only = nil; needs.Empty() && len(asked) > 0 {
			only = asked // the others have their plans, and nothing that these go by has changed
			continue
		}
		if needs.Empty() {
			return plans, state, nil
		}
		polled = polled || len(needs.Polls) > 0
		filling, sp := span.Start(ctx, "fill")
		state, err = s.Cloud.Fill(filling, state, needs)
		span.End(sp, err)
		if err != nil {
			return nil, observed.State{}, fmt.Errorf("observe: %w", err)
		}
		index = basis.NewIndex(&state)
	}
	return nil, observed.State{}, fmt.Errorf("plan: the state of AWS was still incomplete after %d rounds of reading", planRounds)
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

func (s *Scope) query(targets []Desired) observed.Query {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clusters == nil {
		s.clusters = map[string]time.Time{}
	}
	s.queried = s.now()
	q := observed.Query{Groups: true, Templates: true, Round: s.Round, AskEvery: s.AskEvery}
	for _, t := range targets {
		q.Owner = t.Policy.Instance
		for i := range t.Unplanned {
			if u := &t.Unplanned[i]; u.Kind == intent.NodegroupPool && u.EKSName != "" {
				s.clusters[u.EKSName] = s.queried
			}
		}
		if t.Set == nil {
			continue
		}
		for i := range t.Set.Pools {
			if n := t.Set.Pools[i].Nodegroup; n != nil {
				s.clusters[n.ClusterName] = s.queried
			}
		}
	}
	// Those that no target names any more are among them until they are forgotten.
	q.EKSClusters = slices.Sorted(maps.Keys(s.clusters))
	return q
}
