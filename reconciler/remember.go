package reconciler

import (
	"context"

	"github.com/weir-gitops/weir/reconciler/plan/model"
)

// remember stores the results that the next passes need. It drops memories of things that no target
// of the pass names and that AWS does not have. Otherwise they would cost memory, and calls, as
// long as the process runs.
func (ps *passState) remember(context.Context) error {
	if in := ps.batch.Inputs; in != nil {
		in.State, in.Nodes = *ps.state, map[string]*model.Nodes{}
		for i, t := range ps.targets {
			in.Nodes[t.Policy.Target] = ps.inputs[i].Nodes
		}
	}
	m, now, owner := ps.memory, ps.now(), ""
	known, tokens := make(map[string]bool, len(ps.targets)), make(map[string]bool, len(ps.targets))
	for _, t := range ps.targets {
		known[t.Policy.Target], tokens[t.Policy.Target], owner = true, t.Tokens != nil, t.Policy.Instance
	}
	m.keepers.forget(tokens)
	m.refusals.Forget(known, ps.batch.AllTargets, now)
	m.clusters.forget(ps.state, owner, ps.observedAt, now)
	m.updates.forget(ps.state)
	m.pools.update(ps.converged, ps.inService, ps.state)
	return nil
}
