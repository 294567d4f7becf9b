package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// needNodes reports FleetRollouts with a gate that requires Ready nodes, if weir does not read the nodes of
// some of its pools. The result of such a gate stays unknown, so the gate holds. Nothing else is affected.
func needNodes(items []*item) {
	for _, holder := range items {
		if holder.desired.Set == nil {
			continue
		}
		var found diag.List
		for _, r := range holder.desired.Set.Rollouts {
			for i, g := range r.Gates {
				if g.NodesReady == nil || !g.NodesReady.Required {
					continue
				}
				blind := withoutNodes(items, holder.target.Source, rollout.Spec{FleetRollout: r})
				if len(blind) == 0 {
					continue
				}
				named := strings.Join(blind[:min(len(blind), mostNamed)], ", ")
				if more := len(blind) - mostNamed; more > 0 {
					named += fmt.Sprintf(" and %d more", more)
				}
				found = append(found, diag.Diagnostic{
					Severity: diag.Error, Code: "gate-without-kubeconfig", Object: r.Object.String(), Field: fmt.Sprintf("spec.gates[%d].nodesReady.required", i),
					Summary: "the gate " + g.Name + " of " + r.Key.String() + " requires Ready nodes, and weir cannot read the nodes of " + named,
					Detail:  diag.Hint("gate-without-kubeconfig"),
				})
			}
		}
		if len(found) > 0 {
			holder.desired.Diagnostics = append(slices.Clone(holder.desired.Diagnostics), found...).Sorted()
		}
	}
}

// withoutNodes returns the targets of a source that have pools selected by the FleetRollout but no
// kubeconfig.
func withoutNodes(items []*item, source string, r rollout.Spec) (out []string) {
	for _, it := range items {
		if it.target.Source != source || it.target.KubeconfigFile != "" || it.desired.Set == nil || !r.Concerns(it.name) {
			continue
		}
		for i := range it.desired.Set.Pools {
			p := &it.desired.Set.Pools[i]
			if rollout.Selects(r.Selector, rollout.Pool{ID: rollout.ID{Target: it.name, Pool: p.Key.String()}, Namespace: p.Key.Namespace, Labels: p.Labels}) {
				out = append(out, it.name)
				break
			}
		}
	}
	slices.Sort(out)
	return out
}

// sourceWaves contains the FleetRollouts of a source and its pools.
type sourceWaves struct {
	specs []rollout.Spec
	named map[string]rollout.Spec
	// pools has the pools of all targets, counted only the pools of targets that demand waves.
	pools, counted []rollout.Pool
	demands        map[string]bool
	// blind names a target whose followed commit cannot be read or rendered completely.
	blind string
}

// wavesOf collects the FleetRollouts and pools of each source. Only FleetRollouts of followed commits are in
// force. A target that is held to an earlier revision does not put the FleetRollouts of that revision in
// force.
func wavesOf(items []*item) map[string]*sourceWaves {
	out := map[string]*sourceWaves{}
	for _, it := range items {
		s, d := out[it.target.Source], &it.desired
		if s == nil {
			s = &sourceWaves{demands: map[string]bool{}}
			out[it.target.Source] = s
		}
		if it.target.Rollout.Required {
			s.demands[it.name] = true
		}
		if d.Set == nil || d.Policy.Fallback != nil {
			s.blind = cmp.Or(s.blind, it.name)
		}
		if d.Set == nil {
			continue
		}
		for i := range d.Set.Pools {
			p := poolIn(it.name, &d.Set.Pools[i])
			s.pools = append(s.pools, p)
			if it.target.Rollout.Required {
				s.counted = append(s.counted, p)
			}
		}
		if d.Policy.Fallback == nil {
			for _, r := range d.Set.Rollouts {
				s.specs = append(s.specs, rollout.Spec{FleetRollout: r, Target: it.name})
			}
		}
	}
	for _, s := range out {
		s.named = rollout.ByName(s.specs)
	}
	return out
}

// poolIn returns a pool of a target in the form that FleetRollouts select.
func poolIn(target string, p *intent.Pool) rollout.Pool {
	return rollout.Pool{ID: rollout.ID{Target: target, Pool: p.Key.String()}, Namespace: p.Key.Namespace, Labels: p.Labels, Cluster: p.ClusterKey.Name}
}

// emptyWaves warns of waves that match no pool of the source, and so separate nothing.
func emptyWaves(items []*item, sources map[string]*sourceWaves) {
	for _, it := range items {
		s, d := sources[it.target.Source], &it.desired
		if d.Set == nil || d.Policy.Fallback != nil || s.blind != "" {
			continue
		}
		var found diag.List
		for _, r := range d.Set.Rollouts {
			spec := rollout.Spec{FleetRollout: r, Target: it.name}
			for i, filled := range spec.Filled(s.pools).Waves {
				if !filled {
					found = append(found, diag.Diagnostic{Severity: diag.Warning, Code: "wave-without-pools", Object: r.Object.String(), Field: fmt.Sprintf("spec.waves[%d]", i),
						Summary: "the FleetRollout " + r.Key.String() + " has a wave that cannot match any pool (" + spec.WaveName(i) + "): weir skips it, and does not count it for minWaves", Detail: diag.Hint("wave-without-pools")})
				}
			}
		}
		if len(found) > 0 {
			d.Diagnostics = append(slices.Clone(d.Diagnostics), found...).Sorted()
		}
	}
}

// demandWaves reports, for targets whose configuration demands a FleetRollout, the pools without a
// sufficient one.
func demandWaves(items []*item, sources map[string]*sourceWaves) {
	filled := map[string]map[string]rollout.Filled{}
	for _, it := range items {
		source, s := it.target.Source, sources[it.target.Source]
		if !it.target.Rollout.Required || it.desired.Set == nil {
			continue
		}
		if filled[source] == nil {
			filled[source] = map[string]rollout.Filled{}
			for name, spec := range s.named {
				filled[source][name] = spec.Filled(s.counted)
			}
		}
		demand := rollout.Demand{MinWaves: int32(it.target.Rollout.MinWaves), MaxMachines: int32(it.target.Rollout.MaxMachines), Counts: s.demands}
		it.desired.Policy.Waves = &model.Waves{Demand: demand, Specs: s.named}
		it.desired.Policy.Unmet = unmet(it, s, demand, filled[source])
	}
}

// unmet returns the demands that no FleetRollout in Git meets, for each pool of a target. It is nil if all
// are met.
func unmet(it *item, s *sourceWaves, demand rollout.Demand, filled map[string]rollout.Filled) map[string]string {
	lacks := map[string]string{}
	var met []rollout.Pool
	for i := range it.desired.Set.Pools {
		p := poolIn(it.name, &it.desired.Set.Pools[i])
		if lacks[p.Pool] = demand.Unmet(s.named, filled, p); lacks[p.Pool] == "" {
			delete(lacks, p.Pool)
			met = append(met, p)
		}
	}
	if together := demand.UnmetTogether(s.named, met); together != "" {
		for _, p := range met {
			lacks[p.Pool] = together
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	for pool, text := range lacks {
		if s.blind != "" {
			text += "; the part of the target " + s.blind + " in it cannot be read"
		}
		lacks[pool] = demand.Says(it.name, text)
	}
	return lacks
}

// demand holds the rollouts in plans of a proposal if they would run in fewer waves than the configuration
// demands. It does not consider other pending changes.
func (r *Review) demand(reports []*plan.Report) {
	desired := map[string]*reconciler.Desired{}
	for _, b := range r.Batches {
		for i := range b.Targets {
			desired[b.Targets[i].Policy.Target] = &b.Targets[i]
		}
	}
	var change []rollout.Pool
	for _, report := range reports {
		change = append(change, changed(report, desired[report.Target])...)
	}
	for _, report := range reports {
		if d := desired[report.Target]; d != nil && d.Policy.Waves != nil && report.Plan != nil {
			holdToDemand(report.Plan, d.Policy.Waves, change)
		}
	}
}

// changed returns the pools whose machines a plan replaces.
func changed(r *plan.Report, d *reconciler.Desired) (out []rollout.Pool) {
	if r.Plan == nil || d == nil || d.Set == nil {
		return nil
	}
	machines := map[string]int{}
	for _, s := range r.Plan.Steps {
		if s.Rolls() {
			machines[s.Pool] = max(machines[s.Pool], s.Instances)
		}
	}
	for i := range d.Set.Pools {
		p := poolIn(r.Target, &d.Set.Pools[i])
		if n, rolls := machines[p.Pool]; rolls {
			p.Machines, p.Whole = int32(n), d.Set.Pools[i].Nodegroup != nil
			out = append(out, p)
		}
	}
	return out
}

// holdToDemand holds the rollouts of a plan if no FleetRollout separates them into enough waves.
func holdToDemand(p *plan.Plan, w *model.Waves, change []rollout.Pool) {
	lacks, names := map[string]string{}, slices.Sorted(maps.Keys(w.Specs))
	for _, name := range names {
		spec := w.Specs[name]
		lacks[name] = w.UnmetPlaced(name, spec, spec.Foresee(slices.DeleteFunc(slices.Clone(change), func(p rollout.Pool) bool { return !rollout.Selects(spec.Selector, p) })))
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		at := slices.IndexFunc(change, func(c rollout.Pool) bool { return c.Target == p.Target && c.Pool == s.Pool })
		if s.Held != "" || !s.Rolls() || at < 0 {
			continue
		}
		why := ""
		for _, name := range names {
			if !rollout.Selects(w.Specs[name].Selector, change[at]) {
				continue
			}
			if why = lacks[name]; why == "" {
				break
			}
		}
		if why != "" {
			s.Held, s.HeldReason = step.HeldPolicy, w.Says(p.Target, why)
		}
	}
}
