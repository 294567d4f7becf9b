package group

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/plan/template"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// pinned returns the steps of a pool's group. If a version is made or a rollout starts, it inserts
// a first step that pins the group to the versions that it launches now. An alias that Git writes
// in an override stays.
func (c Planner) pinned(pool *intent.Pool, have observed.Group, version template.Version, steps []step.Step) []step.Step {
	if !version.Made() && c.madeBeside(pool) == nil && !starts(steps) {
		return steps
	}
	u := step.UpdateGroup{Name: have.Name}
	var changes []step.Change
	number := func(ref observed.TemplateRef, field string) string {
		if !ref.Alias() {
			return ref.Version
		}
		n := c.means(ref, version)
		if n == 0 {
			return ref.Version
		}
		changes = append(changes, step.Change{Field: field, From: cmp.Or(ref.Version, "$Default"), To: strconv.FormatInt(n, 10)})
		return strconv.FormatInt(n, 10)
	}
	u.Template = &observed.TemplateRef{ID: have.Template.ID, Name: have.Template.Name, Version: number(have.Template, "launchTemplate.version")}
	if have.MixedInstancesPolicy != nil {
		policy := *have.MixedInstancesPolicy
		policy.Overrides = slices.Clone(policy.Overrides)
		for i, o := range policy.Overrides {
			if t := o.LaunchTemplate; t != nil && !template.Writes(pool.Group.MixedInstancesPolicy, o) {
				pinned := *t
				pinned.Version = number(observed.TemplateRef{ID: t.ID, Name: t.Name, Version: t.Version},
					"mixedInstancesPolicy.overrides"+intent.Index(i)+".launchTemplateSpecification.version")
				policy.Overrides[i].LaunchTemplate = &pinned
			}
		}
		u.MixedInstancesPolicy = &policy
	}
	if len(changes) == 0 {
		return steps
	}
	if c.In.State.Refreshes[have.Name].Active() {
		// AWS refuses to set a group to a version during a refresh with a configuration of its own,
		// so that refresh must end first.
		for i := range steps {
			steps[i].Later = !steps[i].About().EndsRefresh()
		}
	}
	return slices.Insert(steps, 0, step.Step{
		Verb: step.Update, Resource: step.AutoScalingGroup, Pool: pool.Key.String(), Name: have.Name, Later: len(steps) > 0 && steps[0].Later,
		Reason: "it follows a version that is about to change, so weir pins the current one", Changes: changes, Do: u,
	})
}

// starts reports whether one of the steps starts an instance refresh.
func starts(steps []step.Step) bool {
	return slices.ContainsFunc(steps, func(s step.Step) bool { return s.About().Refresh == step.StartsRefresh })
}

// means returns the number of the version to which an alias resolves, 0 if it is unknown or not
// read yet.
func (c Planner) means(ref observed.TemplateRef, version template.Version) int64 {
	if n := model.VersionOf(version.Template, ref); version.Found && n != 0 {
		return n
	}
	t, known := c.In.State.Templates[ref.Name]
	if !known && ref.Name != "" && !c.In.State.Absent.Templates[ref.Name] {
		c.Needs.TemplateNames = append(c.Needs.TemplateNames, ref.Name)
	}
	return model.VersionOf(t, ref)
}

// madeBeside returns the pool's shared template if a version of it will be made for any pool, else
// nil.
func (c Planner) madeBeside(pool *intent.Pool) *observed.Template {
	if pool.LaunchConfig == nil {
		return nil
	}
	return c.Shared[pool.LaunchConfig.Key.String()].About()
}
