package reconciler

import (
	"context"
	"maps"
	"slices"

	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/render/intent"
)

// resolve makes the inputs of all targets except for the state of AWS: the combined fleet, the
// answers to lookups, and the nodes of the workload clusters.
func (ps *passState) resolve(ctx context.Context) error {
	read := nodes(ctx, ps.batch.Targets)
	inputs, err := ps.prepare(ctx)
	for i, n := range read() {
		inputs[i].Nodes = n
	}
	ps.inputs = inputs
	return err
}

// prepare returns the planner's inputs of all targets, with the answers to their lookups and what
// earlier passes remember. State and Nodes follow later.
func (ps *passState) prepare(ctx context.Context) ([]model.Input, error) {
	targets := ps.batch.Targets
	fleet := fleetOf(targets)
	inputs := make([]model.Input, len(targets))
	answers, checked, err := ps.answers(ctx)
	if err != nil {
		return inputs, err
	}
	ps.memory.levels.update(answers, ps.now())
	memory := ps.memory.view(ps.clock())
	for i, t := range targets {
		inputs[i] = model.Input{
			Reviewed: t.Reviewed, Checked: checked[i], Base: t.Base,
			Own:    t.Proposed || t.Reviews && t.Touched && ps.memory.planned.first(&t),
			Policy: t.Policy, Commit: t.Commit, Set: t.Set, Unplanned: t.Unplanned, Answers: answers[i], Levels: ps.memory.levels, Fleet: fleet, Memory: memory, Fenced: t.Ancestry != nil,
			Now: ps.clock(), Began: ps.now(), AskEvery: ps.AskEvery,
		}
	}
	holdNothingContested(inputs)
	recallConverged(inputs, &memory)
	return inputs, nil
}

// fleetOf returns the combined desired state of all targets.
func fleetOf(targets []Desired) model.Fleet {
	claims, brought := map[string][]model.Claim{}, map[string]bool{}
	whole := true
	var unplanned []intent.Unplanned
	for _, t := range targets {
		if t.Set == nil || !t.Whole || t.Err != nil {
			whole = false
		}
		if t.Set != nil {
			claims[t.Policy.Target] = model.Claims(t.Set)
			model.Brought(t.Set, brought)
		}
		unplanned = append(unplanned, t.Unplanned...)
	}
	fleet := model.NewFleet(claims, whole)
	fleet.Unplanned = unplanned
	fleet.Brought = brought
	giveWay(targets, claims, &fleet)
	return fleet
}

// giveWay drops the claims of pools that use an earlier revision if another target claims the same
// resource by a followed revision.
func giveWay(targets []Desired, claims map[string][]model.Claim, fleet *model.Fleet) {
	again := false
	for _, t := range targets {
		for pool := range t.Policy.FallbackPools {
			for _, c := range model.Claims(&intent.Set{Pools: []intent.Pool{*t.Set.Pool(pool)}}) {
				if len(fleet.Contested[c]) > 0 {
					again = true
					claims[t.Policy.Target] = slices.DeleteFunc(slices.Clone(claims[t.Policy.Target]), func(o model.Claim) bool { return o == c })
				}
			}
		}
	}
	if again {
		with := model.NewFleet(claims, fleet.Whole)
		fleet.Wanted, fleet.Contested = with.Wanted, with.Contested
	}
}

// holdNothingContested makes weir only observe pools that use an earlier revision and whose names
// another target wants.
func holdNothingContested(inputs []model.Input) {
	for i := range inputs {
		in := &inputs[i]
		for pool, h := range in.Policy.FallbackPools {
			for _, c := range model.Claims(&intent.Set{Pools: []intent.Pool{*in.Set.Pool(pool)}}) {
				other := in.Fleet.Wanted[c]
				if other == "" || other == in.Policy.Target {
					continue
				}
				only := *h
				only.Unread = "the target " + other + " wants the " + string(c.Resource) + " " + c.Name
				in.Policy.FallbackPools = maps.Clone(in.Policy.FallbackPools)
				in.Policy.FallbackPools[pool] = &only
			}
		}
	}
}

// clustersOf returns a function that finds a pool's cluster in the set. If the cluster's manifest
// is elsewhere, it makes one from the pool's names.
func clustersOf(set *intent.Set) func(*intent.Pool) intent.Cluster {
	byKey := make(map[intent.Key]intent.Cluster, len(set.Clusters))
	for _, c := range set.Clusters {
		byKey[c.Key] = c
	}
	return func(pool *intent.Pool) intent.Cluster {
		if c, ok := byKey[pool.ClusterKey]; ok {
			return c
		}
		c := intent.Cluster{Key: pool.ClusterKey, TagName: pool.ClusterKey.Name}
		if n := pool.Nodegroup; n != nil {
			c.EKSName, c.TagName = n.ClusterName, n.ClusterName
		}
		return c
	}
}
