package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/render/diag"
)

// needNodes tells FleetRollouts whose gate asks for Ready nodes of pools of which weir reads
// none: the gate would be unknown for ever. It holds, and nothing else stops for that.
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
					Summary: "the gate " + g.Name + " of " + r.Key.String() + " requires Ready nodes, and weir reads none of " + named,
					Detail:  diag.Hint("gate-without-kubeconfig"),
				})
			}
		}
		if len(found) > 0 {
			holder.desired.Diagnostics = append(slices.Clone(holder.desired.Diagnostics), found...).Sorted()
		}
	}
}

// withoutNodes are the targets of a source with pools that a FleetRollout selects, and
// without a kubeconfig.
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

// demandWaves tells targets whose configuration demands a FleetRollout which of their pools
// have none that will do. It goes by what is followed: what a render that cannot be read
// would say, or an earlier revision says that a target is held to, is not in force.
func demandWaves(items []*item) {
	specs, blind := map[string][]rollout.Spec{}, map[string]string{}
	for _, it := range items {
		source, d := it.target.Source, &it.desired
		if d.Set == nil || d.Policy.Held != nil {
			blind[source] = cmp.Or(blind[source], it.name)
			continue
		}
		for _, r := range d.Set.Rollouts {
			specs[source] = append(specs[source], rollout.Spec{FleetRollout: r, Target: it.name})
		}
	}
	named := map[string]map[string]rollout.Spec{}
	for _, it := range items {
		demand, source := it.target.Rollout, it.target.Source
		if !demand.Required || it.desired.Set == nil {
			continue
		}
		if named[source] == nil {
			named[source] = rollout.Names(specs[source])
		}
		unmet := map[string]string{}
		for i := range it.desired.Set.Pools {
			p := &it.desired.Set.Pools[i]
			lacks := rollout.Demand{MinWaves: int32(demand.MinWaves), MaxMachines: int32(demand.MaxMachines)}.Lacks(named[source],
				rollout.Pool{ID: rollout.ID{Target: it.name, Pool: p.Key.String()}, Namespace: p.Key.Namespace, Labels: p.Labels})
			if lacks == "" {
				continue
			}
			if blind[source] != "" {
				lacks += "; what the target " + blind[source] + " may have of it cannot be read"
			}
			unmet[p.Key.String()] = "the configuration of " + it.name + " demands waves (targets[].rollout): " + lacks + "; a commit with such a FleetRollout ends that, or a change of the configuration"
		}
		if len(unmet) > 0 {
			it.desired.Policy.Unmet = unmet
		}
	}
}
