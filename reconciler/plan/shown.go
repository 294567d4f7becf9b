package plan

import (
	"reflect"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
)

// What a step sends and somebody wrote is among its changes: they are what people
// approve, and what tells a request that AWS refused from one that Git has mended.
// Members that have the usual value go without saying.

// Cluster API Provider AWS's defaults of a group, in seconds.
const (
	usualCooldown = 300
	usualWarmup   = 300
)

// newMembers are the changes that a new group's members are beside its sizes,
// subnets and launch configuration.
func newMembers(pool *intent.Pool) []Change {
	g := pool.Group
	var out []Change
	if g.DefaultCooldown != usualCooldown {
		out = append(out, infraChange(pool, "defaultCoolDown", nil, g.DefaultCooldown))
	}
	if g.DefaultInstanceWarmup != usualWarmup {
		out = append(out, infraChange(pool, "defaultInstanceWarmup", nil, g.DefaultInstanceWarmup))
	}
	if g.CapacityRebalance {
		out = append(out, infraChange(pool, "capacityRebalance", nil, true))
	}
	for _, h := range g.LifecycleHooks {
		out = append(out, hookChange(pool, h.Name, nil, hookValue(h)))
	}
	return append(out, newTags(pool, g.Tags)...)
}

// newTags are the tags that somebody wrote for a new resource.
func newTags(pool *intent.Pool, tags map[string]string) []Change {
	put := map[string]string{}
	for k, v := range tags {
		if k != "Name" && !strings.HasPrefix(k, "kubernetes.io/cluster/") && !strings.HasPrefix(k, "sigs.k8s.io/") {
			put[k] = v
		}
	}
	return tagChanges(pool, put, nil, nil)
}

// newMembers are the changes that a new nodegroup's members are beside its sizes,
// subnets, version and machines.
func (w wantNodegroup) newMembers(ng Nodegroup) []Change {
	pool := w.pool
	out := []Change{infraChange(pool, "roleName", nil, ng.NodeRole)}
	if ng.ReleaseVersion != "" {
		out = append(out, infraChange(pool, "amiVersion", nil, ng.ReleaseVersion))
	}
	if ng.DiskSize != 0 {
		out = append(out, infraChange(pool, "diskSize", nil, ng.DiskSize))
	}
	if ng.RemoteAccess != nil {
		out = append(out, infraChange(pool, "remoteAccess", nil, plainJSON(ng.RemoteAccess)))
	}
	for _, k := range sortedKeys(ng.Labels) {
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
	return append(out, newTags(pool, pool.Nodegroup.Tags)...)
}

// preferenceChanges say how a rollout goes where Git says anything of it.
func preferenceChanges(pool *intent.Pool) []Change {
	r := pool.Group.Refresh
	r.Strategy, r.Disable = "", false
	if reflect.ValueOf(r).IsZero() {
		return nil
	}
	value, _ := plainJSON(r).(map[string]any)
	delete(value, "strategy")
	return []Change{infraChange(pool, "refreshPreferences", nil, value)}
}
