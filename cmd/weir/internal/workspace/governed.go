package workspace

import (
	"strings"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/rollout"
)

// governed returns the permits of a target's pools that FleetRollouts govern; nil for none. A
// command conducts no waves. It uses the daemon's record, and everything that the record does not permit
// waits for a daemon.
func (w *Workspace) governed(d *reconciler.Desired) map[string]rollout.Permit {
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
	g := rollout.NewGovernor(record, specs)
	out := g.Permits(d.Policy.Target, d.Set.Pools)
	if d.Policy.Waves != nil {
		d.Policy.Demand(g.Unmet(d.Policy.Waves.Demand, d.Policy.Target, out))
	}
	for pool, permit := range out {
		if permit.Hash == "" {
			permit.Wait, permit.Gate = "waits for a daemon (weir run), which conducts the waves of "+strings.Join(permit.Rollouts, " and "), false
			permit.Ends = "a daemon (weir run)"
			out[pool] = permit
		}
	}
	return out
}
