package group

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// usualPolicy contains the values that AWS uses for missing members of an InstancesDistribution
// (API reference of Auto Scaling).
var usualPolicy = intent.MixedInstances{
	OnDemandAllocationStrategy: "prioritized", OnDemandPercentageAboveBaseCapacity: 100, SpotAllocationStrategy: "lowest-price",
}

// policyChanges lists the differences between mixed instances policies, member by member and
// override by override. It compares a new policy with AWS's defaults, so that usual values are not
// shown. For different policies the list is never empty.
func policyChanges(pool *intent.Pool, from, to *intent.MixedInstances) []step.Change {
	const policy = "mixedInstancesPolicy"
	switch {
	case from.Same(to):
		return nil
	case to == nil:
		return []step.Change{model.InfraChange(pool, policy, model.PlainJSON(from), nil)}
	}
	before := *cmp.Or(from, &usualPolicy)
	var out []step.Change
	a, b := reflect.ValueOf(before), reflect.ValueOf(*to)
	for i := range a.NumField() {
		name := field.JSONKey(a.Type().Field(i))
		if name == "overrides" || reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			continue
		}
		ch := model.InfraChange(pool, policy+".instancesDistribution."+name, nil, model.PlainJSON(b.Field(i).Interface()))
		if from != nil {
			ch.From = model.PlainJSON(a.Field(i).Interface())
		}
		if name == "spotInstancePools" || name == "spotMaxPrice" {
			ch = ofOptions(pool, ch)
		}
		out = append(out, ch)
	}
	out = append(out, overrideChanges(pool, policy+".overrides", before.Overrides, to.Overrides)...)
	if len(out) == 0 { // all members have the usual value
		out = append(out, model.InfraChange(pool, policy, nil, model.PlainJSON(to)))
	}
	return out
}

// overrideChanges pairs overrides by their instance types, because inserting an override before
// others does not change these. The order of overrides is their priority in AWS, so a different
// order among the remaining overrides is a change too.
func overrideChanges(pool *intent.Pool, field string, from, to []intent.Override) []step.Change {
	a, b := overrideKeys(from), overrideKeys(to)
	var out []step.Change
	for i, key := range a {
		if !slices.Contains(b, key) {
			out = append(out, model.InfraChange(pool, field+intent.Index(i), overrideValue(from[i]), nil))
		}
	}
	var before, after []string
	for i, key := range b {
		at := field + intent.Index(i)
		j := slices.Index(a, key)
		if j < 0 {
			out = append(out, model.InfraChange(pool, at, nil, overrideValue(to[i])))
			continue
		}
		after = append(after, key)
		if !from[j].Same(to[i]) {
			out = append(out, model.InfraChange(pool, at, overrideValue(from[j]), overrideValue(to[i])))
		}
	}
	for _, key := range a {
		if slices.Contains(b, key) {
			before = append(before, key)
		}
	}
	if !slices.Equal(before, after) {
		out = append(out, model.InfraChange(pool, field, model.PlainJSON(before), model.PlainJSON(after)))
	}
	return out
}

// ofOptions returns a change of a policy member that PoolOptions declares.
func ofOptions(pool *intent.Pool, ch step.Change) step.Change {
	if pool.Options == (intent.ObjectRef{}) {
		return ch
	}
	ch.Object, ch.Path = pool.Options, intent.Path{"spec", "autoScalingGroup"}.Join(ch.Path[1:]...)
	return ch
}

// overrideKeys identifies overrides by their instance types. Equal types, and overrides with
// requirements, get a number in order.
func overrideKeys(list []intent.Override) []string {
	seen := map[string]int{}
	out := make([]string, len(list))
	for i, o := range list {
		key := cmp.Or(o.InstanceType, "requirements")
		if seen[key]++; seen[key] > 1 {
			key += " " + strconv.Itoa(seen[key])
		}
		out[i] = key
	}
	return out
}

// overrideValue returns an override for display: the instance type if it has nothing else.
func overrideValue(o intent.Override) any {
	if o == (intent.Override{InstanceType: o.InstanceType}) {
		return o.InstanceType
	}
	return model.PlainJSON(o)
}
