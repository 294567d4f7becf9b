package group

import (
	"reflect"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// What a step sends and somebody wrote is among its changes: they are what people
// approve, and what tells a request that AWS refused from one that Git has mended.
// Members that have the usual value go without saying.

// usualStrategy is how a refresh goes where nobody says otherwise.
const usualStrategy = "Rolling"

// newMembers are the changes that a new group's members are beside its sizes,
// subnets and launch configuration.
func (c Planner) newMembers(pool *intent.Pool, group observed.Group) []step.Change {
	g := pool.Group
	out := newSettings(pool, true)
	for _, h := range g.LifecycleHooks {
		out = append(out, hookChange(pool, h.Name, nil, hookValue(h)))
	}
	tags := observed.GroupTagValues(group.Tags)
	return append(out, basis.NewTags(pool, c.In.UsualTags(pool, g.Name, tags), tags)...)
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
	value, _ := basis.PlainJSON(r).(map[string]any)
	if r.Strategy == "" {
		delete(value, "strategy")
	}
	return []step.Change{basis.InfraChange(pool, "refreshPreferences", nil, value)}
}
