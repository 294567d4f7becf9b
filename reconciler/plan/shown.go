package plan

import (
	"maps"
	"reflect"
	"slices"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// What a step sends and somebody wrote is among its changes: they are what people
// approve, and what tells a request that AWS refused from one that Git has mended.
// Members that have the usual value go without saying.

// usualStrategy is how a refresh goes where nobody says otherwise.
const usualStrategy = "Rolling"

// newMembers are the changes that a new group's members are beside its sizes,
// subnets and launch configuration.
func (c groups) newMembers(pool *intent.Pool, group observed.Group) []step.Change {
	g := pool.Group
	out := newSettings(pool, true)
	for _, h := range g.LifecycleHooks {
		out = append(out, hookChange(pool, h.Name, nil, hookValue(h)))
	}
	tags := observed.GroupTagValues(group.Tags)
	return append(out, newTags(pool, c.in.usualTags(pool, g.Name, tags), tags)...)
}

// newTags are the tags of a new resource but for those that weir gives to every one
// of its kind, with the value that it gives: what somebody wrote, and what an
// annotation of the pool stands for.
func newTags(pool *intent.Pool, usual, tags map[string]string) []step.Change {
	put := map[string]string{}
	for k, v := range tags {
		if given, ok := usual[k]; !ok || given != v {
			put[k] = v
		}
	}
	return tagChanges(pool, put, nil, nil)
}

// usualTags are those that a resource of the pool has although nobody wrote them.
// name is that of a group or template; a nodegroup has no tag of its own name.
func (in Input) usualTags(pool *intent.Pool, name string, tags map[string]string) map[string]string {
	out := map[string]string{
		observed.TagOwner: in.Policy.Instance, observed.TagTarget: in.Policy.Target, observed.TagSource: in.Policy.Source, observed.TagPool: pool.Key.String(),
		observed.TagKeys: tags[observed.TagKeys], observed.TagHooks: tags[observed.TagHooks], observed.TagSuspended: tags[observed.TagSuspended], // these follow from the others, the hooks and the processes
	}
	cluster, known := in.Set.Cluster(pool.ClusterKey)
	if known {
		out[tagKubernetesCluster+cluster.TagName] = "owned"
	}
	if name != "" {
		out["Name"], out[observed.TagCAPARole] = name, "node"
	}
	if known && name != "" {
		out[observed.TagClusterPrefix+cluster.TagName] = "owned"
	}
	return out
}

// newMembers are the changes that a new nodegroup's members are beside its sizes,
// subnets, version, machines and tags.
func (w wantNodegroup) newMembers(ng observed.Nodegroup) []step.Change {
	pool := w.pool
	out := []step.Change{infraChange(pool, "roleName", nil, ng.NodeRole)}
	for _, m := range field.NodegroupMembers() {
		if v := m.Of(&ng.NodegroupSettings); !m.Special && !v.IsZero() {
			out = append(out, settingChange(pool, m, nil, v.Interface()))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(ng.Labels)) {
		out = append(out, labelChange(pool, k, nil, ng.Labels[k]))
	}
	if len(ng.Taints) > 0 {
		out = append(out, infraChange(pool, "taints", nil, taintText(ng.Taints)))
	}
	if ng.UpdateConfig.MaxUnavailable != 1 || ng.UpdateConfig.MaxUnavailablePercentage != 0 {
		out = append(out, infraChange(pool, "updateConfig", nil, updateText(ng.UpdateConfig)))
	}
	if s := ng.UpdateConfig.UpdateStrategy; s != "" {
		out = append(out, optionsChange(pool, "updateConfig.updateStrategy", nil, s))
	}
	if ng.NodeRepair != nil {
		out = append(out, infraChange(pool, "nodeRepairConfig.enabled", nil, *ng.NodeRepair))
	}
	if ng.RepairOptions != nil {
		out = append(out, optionsChange(pool, "nodeRepairConfig", nil, ng.RepairOptions))
	}
	if ng.WarmPool != nil {
		out = append(out, optionsChange(pool, "warmPoolConfig", nil, ng.WarmPool))
	}
	return out
}

// preferenceChanges say how a rollout goes where Git says anything of it.
func preferenceChanges(pool *intent.Pool) []step.Change {
	r := pool.Group.Refresh
	r.Disable = false
	if r.Strategy == usualStrategy {
		r.Strategy = ""
	}
	if reflect.ValueOf(r).IsZero() {
		return nil
	}
	value, _ := plainJSON(r).(map[string]any)
	if r.Strategy == "" {
		delete(value, "strategy")
	}
	return []step.Change{infraChange(pool, "refreshPreferences", nil, value)}
}
