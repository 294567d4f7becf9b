package nodegroup

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"sort"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// configStep plans UpdateNodegroupConfig: none or one step.
func (w wantNodegroup) configStep(have observed.Nodegroup) []step.Step {
	pool, n := w.pool, w.pool.Nodegroup
	u := step.UpdateNodegroupConfig{NodegroupName: have.NodegroupName}
	changes := w.scale(have, &u)
	for _, k := range slices.Sorted(maps.Keys(n.Labels)) {
		if got, ok := have.Labels[k]; !ok || got != n.Labels[k] {
			u.PutLabels = observed.WithTags(u.PutLabels, map[string]string{k: n.Labels[k]})
			changes = append(changes, labelChange(pool, k, basis.OrNil(have.Labels[k]), n.Labels[k]))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(have.Labels)) {
		if _, wanted := n.Labels[k]; !wanted {
			u.RemoveLabels = append(u.RemoveLabels, k)
			changes = append(changes, labelChange(pool, k, have.Labels[k], nil))
		}
	}
	u.PutTaints = basis.Minus(n.Taints, have.Taints)
	u.RemoveTaints = slices.DeleteFunc(basis.Minus(have.Taints, n.Taints), func(t intent.Taint) bool {
		// A taint with another value is overwritten, not removed.
		return slices.ContainsFunc(n.Taints, func(o intent.Taint) bool { return o.Key == t.Key && o.Effect == t.Effect })
	})
	if len(u.PutTaints)+len(u.RemoveTaints) > 0 {
		changes = append(changes, basis.InfraChange(pool, "taints", taintText(have.Taints), taintText(n.Taints)))
	}
	changes = append(changes, w.updateConfig(have, &u)...)
	changes = append(changes, w.nodeRepair(have, &u)...)
	// EKS's defaults are filled in: none at all, stopped instances, no reuse.
	if p := n.WarmPool; p != nil && string(content.Canonical(warmPoolOf(p))) != string(content.Canonical(warmPoolOf(have.WarmPool))) {
		u.WarmPool = warmPoolChange(p, have.WarmPool)
		changes = append(changes, optionsChange(pool, "warmPoolConfig", have.WarmPool, p))
	}
	if len(changes) == 0 {
		return nil
	}
	gone := 0
	if u.DesiredSize != nil {
		gone = int(max(0, have.DesiredSize-*u.DesiredSize))
	}
	return []step.Step{{Verb: step.Update, Resource: step.ManagedNodegroup, Name: have.Name, Reason: basis.Reason(changes), Disruptive: gone > 0, Instances: gone, Changes: changes, Do: u, Fingerprint: w.fingerprint()}}
}

// sizes holds those that are written and keeps the others as observed, moved only
// as far as the bounds ask.
func (w wantNodegroup) sizes(have observed.Nodegroup) (minSize, maxSize, desired int32) {
	pool, n := w.pool, w.pool.Nodegroup
	minSize, maxSize, desired = have.MinSize, have.MaxSize, have.DesiredSize
	if n.MinSize.Written {
		minSize = n.MinSize.Value
	}
	if n.MaxSize.Written {
		maxSize = n.MaxSize.Value
	}
	if pool.Replicas.Written && !pool.ReplicasManagedExternally {
		desired = pool.Replicas.Value
	}
	if !n.MinSize.Written {
		minSize = min(minSize, desired, maxSize)
	}
	if !n.MaxSize.Written {
		maxSize = max(maxSize, desired, minSize)
	}
	return minSize, maxSize, min(max(desired, minSize), maxSize)
}

// scale puts the sizes into u where one of them differs.
func (w wantNodegroup) scale(have observed.Nodegroup, u *step.UpdateNodegroupConfig) []step.Change {
	minSize, maxSize, desired := w.sizes(have)
	changes := sizeChanges(w.pool, have, minSize, maxSize, desired)
	if len(changes) > 0 {
		u.MinSize, u.MaxSize, u.DesiredSize = &minSize, &maxSize, &desired
	}
	return changes
}

// sizeChanges are those of the three sizes that differ.
func sizeChanges(pool *intent.Pool, have observed.Nodegroup, minSize, maxSize, desired int32) []step.Change {
	return slices.DeleteFunc([]step.Change{
		basis.InfraChange(pool, "scaling.minSize", have.MinSize, minSize),
		basis.InfraChange(pool, "scaling.maxSize", have.MaxSize, maxSize),
		basis.ReplicasChange(pool, have.DesiredSize, desired),
	}, func(ch step.Change) bool { return ch.From == ch.To })
}

func labelChange(pool *intent.Pool, key string, from, to any) step.Change {
	return step.Change{Field: intent.Path{"labels", key}.String(), From: from, To: to,
		Object: pool.Infrastructure, Path: intent.Path{"spec", "labels", key}}
}

func taintText(taints []intent.Taint) any {
	if len(taints) == 0 {
		return nil
	}
	out := make([]string, 0, len(taints))
	for _, t := range taints {
		out = append(out, t.Key+"="+t.Value+":"+t.Effect)
	}
	sort.Strings(out)
	return out
}

func updateText(u intent.UpdateConfig) any {
	if u.MaxUnavailablePercentage > 0 {
		return strconv.Itoa(int(u.MaxUnavailablePercentage)) + "%"
	}
	return u.MaxUnavailable
}

// updateConfig is sent whole; a strategy that no manifest names stays.
func (w wantNodegroup) updateConfig(have observed.Nodegroup, u *step.UpdateNodegroupConfig) (changes []step.Change) {
	want, got := w.pool.Nodegroup.UpdateConfig, have.UpdateConfig
	if strategy := want.UpdateStrategy; strategy == "" {
		want.UpdateStrategy = got.UpdateStrategy
	} else if from := cmp.Or(got.UpdateStrategy, "DEFAULT"); from != strategy {
		changes = append(changes, optionsChange(w.pool, "updateConfig.updateStrategy", from, strategy))
	} else {
		got.UpdateStrategy = strategy // EKS leaves its default out
	}
	if want == got {
		return changes
	}
	u.UpdateConfig = &want
	if from, to := updateText(got), updateText(want); from != to {
		changes = append(changes, basis.InfraChange(w.pool, "updateConfig", from, to))
	}
	return changes
}

// nodeRepair is sent whole: members that no manifest names stay.
func (w wantNodegroup) nodeRepair(have observed.Nodegroup, u *step.UpdateNodegroupConfig) (changes []step.Change) {
	n := w.pool.Nodegroup
	on, options := have.NodeRepair != nil && *have.NodeRepair, have.RepairOptions
	if n.NodeRepair != nil && *n.NodeRepair != on {
		changes = append(changes, basis.InfraChange(w.pool, "nodeRepairConfig.enabled", on, *n.NodeRepair))
		on = *n.NodeRepair
	}
	if want := n.RepairOptions; want != nil {
		if got := cmp.Or(options, &intent.RepairOptions{}); string(content.Canonical(got)) != string(content.Canonical(want)) {
			changes = append(changes, optionsChange(w.pool, "nodeRepairConfig", got, want))
		}
		options = want
	}
	if len(changes) > 0 {
		u.NodeRepair, u.RepairOptions = &on, options
	}
	return changes
}

// warmPoolChange is the request for a warm pool: EKS keeps what a request leaves out,
// so a capacity that is no longer wanted is taken away by name, as Auto Scaling
// demands.
// Assumed of AWS: nodegroup-warm-pool-capacity.
func warmPoolChange(want, have *intent.NodegroupWarmPool) *intent.NodegroupWarmPool {
	if want.MaxGroupPreparedCapacity != nil || have == nil || have.MaxGroupPreparedCapacity == nil || want.Enabled == nil || !*want.Enabled {
		return want
	}
	out, none := *want, int32(-1)
	out.MaxGroupPreparedCapacity = &none
	return &out
}

func warmPoolOf(p *intent.NodegroupWarmPool) intent.NodegroupWarmPool {
	if p == nil || p.Enabled == nil || !*p.Enabled {
		return intent.NodegroupWarmPool{}
	}
	out := *p
	if n := out.MaxGroupPreparedCapacity; n != nil && *n < 0 {
		out.MaxGroupPreparedCapacity = nil
	}
	no, zero := false, int32(0)
	out.PoolState = cmp.Or(out.PoolState, "STOPPED")
	out.MinSize, out.ReuseOnScaleIn = cmp.Or(out.MinSize, &zero), cmp.Or(out.ReuseOnScaleIn, &no)
	return out
}

// optionsChange is a change of what the pool's PoolOptions say.
func optionsChange(pool *intent.Pool, field string, from, to any) step.Change {
	at := intent.Path{"nodegroup"}.Join(basis.FieldPath(field)...)
	return step.Change{Field: at.String(), From: valueJSON(from), To: valueJSON(to), Object: pool.Options, Path: intent.Path{"spec"}.Join(at...)}
}

// valueJSON turns a value that is no scalar into the JSON value that a Change holds.
func valueJSON(v any) any {
	switch v := v.(type) {
	case string, bool, nil:
		return v
	default:
		var out any
		if err := json.Unmarshal(content.Canonical(v), &out); err != nil {
			panic("valueJSON: " + err.Error()) // canonical writes JSON
		}
		return out
	}
}
