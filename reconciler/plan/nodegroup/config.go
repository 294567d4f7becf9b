package nodegroup

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"sort"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// configStep plans UpdateNodegroupConfig. It returns at most one step.
func (w wantNodegroup) configStep(have observed.Nodegroup) []step.Step {
	u := step.UpdateNodegroupConfig{NodegroupName: have.NodegroupName}
	changes := append(w.scale(have, &u), w.settings(have, &u)...)
	if len(changes) == 0 {
		return nil
	}
	gone := 0
	if u.DesiredSize != nil {
		gone = int(max(0, have.DesiredSize-*u.DesiredSize))
	}
	return []step.Step{{Verb: step.Update, Resource: step.ManagedNodegroup, Name: have.Name, Reason: model.Reason(changes), Disruptive: gone > 0, Instances: gone, Changes: changes, Do: u, Fingerprint: w.fingerprint()}}
}

// settings plans the members of a nodegroup that UpdateNodegroupConfig changes, by the table:
// members that Git sets and that differ in AWS. A structure is sent as a whole, with AWS's values
// for the members that Git does not set.
func (w wantNodegroup) settings(have observed.Nodegroup, u *step.UpdateNodegroupConfig) (changes []step.Change) {
	want, got := w.pool.Nodegroup.NodegroupSettings, have.NodegroupSettings
	plainWant, plainGot := want, got
	plainWant.WarmPool, plainGot.WarmPool = withoutBound(want.WarmPool), withoutBound(got.WarmPool)
	var sent []string
	for _, m := range w.changeable() {
		v, found := m.Of(&want), m.Of(&got)
		switch {
		case m.Special:
			changes = append(changes, w.updateConfig(have, u)...)
		case m.Block != nil && m.Block.Form == field.ByItem:
			changes = append(changes, w.items(v.Interface(), found.Interface(), u)...)
		case !v.IsZero() && !same(m, m.Of(&plainWant), m.Of(&plainGot)):
			changes = append(changes, model.SettingChange(w.pool, m, m.Found(found).Interface(), v.Interface()))
			sent = append(sent, m.AWS)
		}
	}
	for _, m := range w.changeable() {
		if v := m.Of(&want); slices.Contains(sent, m.AWS) {
			if v.IsZero() {
				v = m.Found(m.Of(&got))
			}
			m.Of(&u.Settings).Set(v)
		}
	}
	if p := u.Settings.WarmPool; p != nil {
		u.Settings.WarmPool = unbounded(p, got.WarmPool)
	}
	return changes
}

// same reports whether two values of a member are equal for AWS.
func same(m *field.Member, want, have reflect.Value) bool {
	text := func(v reflect.Value) string { return string(content.Canonical(m.Found(m.Complete(v)).Interface())) }
	return text(want) == text(have)
}

// changeable returns the members of a nodegroup that UpdateNodegroupConfig changes.
func (wantNodegroup) changeable() (out []*field.Member) {
	for _, m := range field.NodegroupMembers() {
		if m.Call == field.UpdateNodegroup && !m.Replaces {
			out = append(out, m)
		}
	}
	return out
}

// items plans the labels, which are shown one by one, or the taints, which are shown together.
func (w wantNodegroup) items(want, have any, u *step.UpdateNodegroupConfig) (changes []step.Change) {
	switch want := want.(type) {
	case map[string]string:
		return w.labels(want, have.(map[string]string), u)
	case []intent.Taint:
		return w.taints(want, have.([]intent.Taint), u)
	}
	return nil
}

// labels adds the differences of labels to an update, and returns them as changes.
func (w wantNodegroup) labels(want, have map[string]string, u *step.UpdateNodegroupConfig) (changes []step.Change) {
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if got, ok := have[k]; !ok || got != want[k] {
			u.PutLabels = observed.WithTags(u.PutLabels, map[string]string{k: want[k]})
			changes = append(changes, labelChange(w.pool, k, model.OrNil(have[k]), want[k]))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(have)) {
		if _, wanted := want[k]; !wanted {
			u.RemoveLabels = append(u.RemoveLabels, k)
			changes = append(changes, labelChange(w.pool, k, have[k], nil))
		}
	}
	return changes
}

func (w wantNodegroup) taints(want, have []intent.Taint, u *step.UpdateNodegroupConfig) []step.Change {
	u.PutTaints = model.Minus(want, have)
	u.RemoveTaints = slices.DeleteFunc(model.Minus(have, want), func(t intent.Taint) bool {
		// A taint with another value is overwritten, not removed.
		return slices.ContainsFunc(want, func(o intent.Taint) bool { return o.Key == t.Key && o.Effect == t.Effect })
	})
	if len(u.PutTaints)+len(u.RemoveTaints) == 0 {
		return nil
	}
	return []step.Change{model.InfraChange(w.pool, "taints", taintText(have), taintText(want))}
}

// sizes returns the sizes that Git sets. All other sizes stay as observed, unless the bounds
// require a change.
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

// scale puts the sizes into u if one of them differs.
func (w wantNodegroup) scale(have observed.Nodegroup, u *step.UpdateNodegroupConfig) []step.Change {
	minSize, maxSize, desired := w.sizes(have)
	changes := sizeChanges(w.pool, have, minSize, maxSize, desired)
	if len(changes) > 0 {
		u.MinSize, u.MaxSize, u.DesiredSize = &minSize, &maxSize, &desired
	}
	return changes
}

// sizeChanges returns the changes of the three sizes that differ.
func sizeChanges(pool *intent.Pool, have observed.Nodegroup, minSize, maxSize, desired int32) []step.Change {
	return slices.DeleteFunc([]step.Change{
		model.InfraChange(pool, "scaling.minSize", have.MinSize, minSize),
		model.InfraChange(pool, "scaling.maxSize", have.MaxSize, maxSize),
		model.ReplicasChange(pool, have.DesiredSize, desired),
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

// updateConfig is sent as a whole. A strategy that no manifest names stays.
func (w wantNodegroup) updateConfig(have observed.Nodegroup, u *step.UpdateNodegroupConfig) (changes []step.Change) {
	want, got := w.pool.Nodegroup.UpdateConfig, have.UpdateConfig
	if strategy := want.UpdateStrategy; strategy == "" {
		want.UpdateStrategy = got.UpdateStrategy
	} else if from := cmp.Or(got.UpdateStrategy, "DEFAULT"); from != strategy {
		changes = append(changes, optionsChange(w.pool, "updateConfig.updateStrategy", from, strategy))
	} else {
		got.UpdateStrategy = strategy // EKS omits its default
	}
	if want == got {
		return changes
	}
	u.Settings.UpdateConfig = want
	if from, to := updateText(got), updateText(want); from != to {
		changes = append(changes, model.InfraChange(w.pool, "updateConfig", from, to))
	}
	return changes
}

// unbounded makes the request for a warm pool clear a bound that is no longer wanted. EKS keeps a
// value that the request omits, so the capacity is cleared by an explicit value, as in Auto
// Scaling.
// Assumed of AWS: nodegroup-warm-pool-capacity.
func unbounded(want, have *intent.NodegroupWarmPool) *intent.NodegroupWarmPool {
	if want.MaxGroupPreparedCapacity != nil || have == nil || have.MaxGroupPreparedCapacity == nil || want.Enabled == nil || !*want.Enabled {
		return want
	}
	out, none := *want, int32(-1)
	out.MaxGroupPreparedCapacity = &none
	return &out
}

// withoutBound returns a warm pool without the capacity value that means none.
func withoutBound(p *intent.NodegroupWarmPool) *intent.NodegroupWarmPool {
	if p == nil || p.MaxGroupPreparedCapacity == nil || *p.MaxGroupPreparedCapacity >= 0 {
		return p
	}
	out := *p
	out.MaxGroupPreparedCapacity = nil
	return &out
}

// optionsChange returns a change of a text or a switch that the pool's PoolOptions set.
func optionsChange(pool *intent.Pool, field string, from, to any) step.Change {
	at := intent.Path{"nodegroup"}.Join(model.FieldPath(field)...)
	return step.Change{Field: at.String(), From: from, To: to, Object: pool.Options, Path: intent.Path{"spec"}.Join(at...)}
}
