package work

import (
	"strings"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/rollout"
)

// governed are the permits of those pools of a target that FleetRollouts govern; nil for
// none. A command conducts no waves: it goes by what the daemon has recorded, and what that
// does not allow waits for a daemon.
func (w *Work) governed(d *reconciler.Desired) map[string]rollout.Permit {
	if d.Set == nil {
		return nil
	}
	all, record := w.batches, &rollout.Record{}
	if w.gating != nil {
		all = w.gating.all
		if known := w.gating.rollouts[d.Source]; known != nil {
			record = known
		}
	}
	var specs []rollout.Spec
	for _, b := range all {
		for i := range b.Targets {
			if t := &b.Targets[i]; t.Source == d.Source && t.Set != nil {
				for _, r := range t.Set.Rollouts {
					specs = append(specs, rollout.Spec{FleetRollout: r, Target: t.Policy.Target})
				}
			}
		}
	}
	governor := rollout.NewGovernor(record, specs)
	if governor.Idle() {
		return nil
	}
	out := map[string]rollout.Permit{}
	for i := range d.Set.Pools {
		pool := &d.Set.Pools[i]
		id := rollout.ID{Target: d.Policy.Target, Pool: pool.Key.String()}
		permit, is := governor.Of(rollout.Pool{ID: id, Namespace: pool.Key.Namespace, Labels: pool.Labels})
		if !is {
			continue
		}
		if permit.Hash == "" {
			permit.Wait = "waits for a daemon (weir run), which conducts the waves of " + strings.Join(permit.Rollouts, " and ")
		}
		out[pool.Key.String()] = permit
	}
	return out
}
