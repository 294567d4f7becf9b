package group

import (
	"reflect"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/plan/template"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// fields are what the group's machines are to be launched of.
func (c Planner) fields(pool *intent.Pool, version template.Version) []rollout.Field {
	return append(c.WantedFields(pool, version), c.policyFields(pool.Group.MixedInstancesPolicy)...)
}

// values are the fields among which a stopped change is looked for.
func (c Planner) values(pool *intent.Pool, version template.Version) []rollout.Field {
	return append(c.fields(pool, version), c.Values(version)...)
}

func (c Planner) policyFields(policy *intent.MixedInstances) (out []rollout.Field) {
	if policy == nil {
		return nil
	}
	const name = "mixedInstancesPolicy"
	v := reflect.ValueOf(*policy)
	for i := range v.NumField() {
		if key := field.JSONKey(v.Type().Field(i)); key != "overrides" && !v.Field(i).IsZero() {
			out = append(out, c.Field(name+"."+key, name+".instancesDistribution."+key, v.Field(i).Interface()))
		}
	}
	for _, o := range policy.Overrides {
		out = append(out, c.Field(name+".overrides"+rollout.List, name+".overrides", o))
	}
	return out
}

// change is what differs between a version that the group was at and what Git wants.
func (c Planner) change(pool *intent.Pool, have observed.Group, version template.Version, from rollout.Version) []rollout.Field {
	policy := from.Policy
	if policy == nil && !from.Plain {
		policy = have.MixedInstancesPolicy
	}
	t := c.templateOf(from.Template, version)
	before := append(c.FieldsOf(pool, t, from.Number), c.policyFields(policy)...)
	if out := rollout.Difference(before, c.fields(pool, version)); len(out) > 0 {
		return out
	}
	return c.Reordered(version, t, from.Number)
}

// stoppedBefore reports whether a version is the one that was stopped, though Git wants
// another one by now that has the stopped change still in it.
func (c Planner) stoppedBefore(pool *intent.Pool, have observed.Group, version template.Version, g *governed, ref observed.TemplateRef) bool {
	if g.Still == "" {
		return false
	}
	t := c.templateOf(ref.Name, version)
	n := basis.VersionOf(t, ref)
	return n != 0 && c.versionBefore(pool, have, version, before{template: t, number: n}).Hash == g.Still
}
