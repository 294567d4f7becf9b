package group

import (
	"reflect"
	"slices"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/plan/template"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// wantedFields returns the wanted launch configuration of the group's machines.
func (l launching) wantedFields() []rollout.Field {
	return l.withPolicy(l.planner.Fields().WantedFields(l.pool, l.version), l.pool.Group.MixedInstancesPolicy)
}

// searchedFields returns everything in the wanted launch configuration that a record of a stopped
// change may name: wantedFields, the lines of the user data, and the forms of earlier releases. So a
// change that a FleetRollout stopped is not rolled out again as part of another commit.
func (l launching) searchedFields() []rollout.Field {
	out := append(l.wantedFields(), l.planner.Fields().UserDataFields(l.version)...)
	if policy := l.pool.Group.MixedInstancesPolicy; policy != nil { // records of earlier releases contain whole overrides
		for _, o := range policy.Overrides {
			out = append(out, l.planner.Fields().Field(overrides, "mixedInstancesPolicy.overrides", o))
		}
	}
	return out
}

const overrides = "mixedInstancesPolicy.overrides" + rollout.List

// withPolicy returns the fields of a launch template and a policy. If the policy names instance
// types, the template's type is not used.
func (l launching) withPolicy(of []rollout.Field, policy *intent.MixedInstances) []rollout.Field {
	if len(typesOf(policy)) > 0 {
		of = slices.DeleteFunc(of, func(f rollout.Field) bool { return f.Key == template.InstanceTypes })
	}
	return append(of, l.policyFields(policy, nil)...)
}

// typesOf returns the instance types that a policy names.
func typesOf(policy *intent.MixedInstances) (out []string) {
	if policy != nil {
		for _, o := range policy.Overrides {
			if o.InstanceType != "" {
				out = append(out, o.InstanceType)
			}
		}
	}
	return out
}

// policyFields returns the fields of a policy. For a type in bare, it returns only the type.
func (l launching) policyFields(policy *intent.MixedInstances, bare []string) (out []rollout.Field) {
	if policy == nil {
		return nil
	}
	const name = "mixedInstancesPolicy"
	v := reflect.ValueOf(*policy)
	for i := range v.NumField() {
		if key := field.JSONKey(v.Type().Field(i)); key != "overrides" && !v.Field(i).IsZero() {
			out = append(out, l.planner.Fields().Field(name+"."+key, name+".instancesDistribution."+key, v.Field(i).Interface()))
		}
	}
	for _, o := range policy.Overrides {
		if o.InstanceType != "" {
			out = append(out, l.planner.Fields().InstanceType(name+".overrides", o.InstanceType))
		}
		if slices.Contains(bare, o.InstanceType) {
			continue
		}
		v := reflect.ValueOf(o)
		for i := range v.NumField() {
			if key := field.JSONKey(v.Type().Field(i)); key != "instanceType" && !v.Field(i).IsZero() {
				out = append(out, l.planner.Fields().Field(overrides, name+".overrides", []any{o.InstanceType, key, v.Field(i).Interface()}))
			}
		}
	}
	return out
}

// change returns the difference between an earlier version of the group and the wanted
// configuration. For a new instance type it reports only the type, so another weight of the type
// counts as the same change.
func (l launching) change(from rollout.Version) []rollout.Field {
	policy := from.Policy
	if policy == nil && !from.Plain {
		policy = l.have.MixedInstancesPolicy
	}
	t := l.templateOf(from.Template)
	before, wanted := l.withPolicy(l.planner.Fields().FieldsOf(l.pool, t, from.Number), policy), l.wantedFields()
	if policy != nil && l.pool.Group.MixedInstancesPolicy != nil {
		was := typesOf(policy)
		added := slices.DeleteFunc(typesOf(l.pool.Group.MixedInstancesPolicy), func(kind string) bool { return slices.Contains(was, kind) })
		said, bare := l.policyFields(l.pool.Group.MixedInstancesPolicy, nil), l.policyFields(l.pool.Group.MixedInstancesPolicy, added)
		wanted = append(wanted[:len(wanted)-len(said)], bare...)
	}
	if out := rollout.Difference(before, wanted); len(out) > 0 {
		return out
	}
	return l.planner.Fields().UserDataChange(l.version, t, from.Number)
}

// stoppedBefore reports whether ref is the stopped version, and Git now wants another version that
// still contains the stopped change.
func (l launching) stoppedBefore(g *governed, ref observed.TemplateRef) bool {
	if g.Still == "" {
		return false
	}
	t := l.templateOf(ref.Name)
	n := model.VersionOf(t, ref)
	return n != 0 && l.versionBefore(before{template: t, number: n}).Hash == g.Still
}
