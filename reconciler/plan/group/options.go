package group

import (
	"reflect"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// weir holds the settings of a group that Git declares, and leaves all others as it
// finds them. It also leaves a member of PoolOptions that was declared once and is no
// more: AWS keeps no record of who set it.

func optionChange(pool *intent.Pool, member string, from, to any) step.Change {
	return step.Change{Field: "autoScalingGroup." + member, From: model.PlainJSON(from), To: model.PlainJSON(to),
		Object: pool.Options, Path: intent.Path{"spec", "autoScalingGroup", member}}
}

// newSettings are the changes that the settings of a new group are, those of the pool or
// those of its PoolOptions. Options that its creation does not send have steps of their
// own.
func newSettings(pool *intent.Pool, ofPool bool) []step.Change {
	var out []step.Change
	for _, m := range field.GroupMembers() {
		if v := m.Of(&pool.Group.GroupSettings); m.OfPool == ofPool && m.OfCreation() && !m.IsDefault(v) {
			out = append(out, model.SettingChange(pool, m, nil, v.Interface()))
		}
	}
	return out
}

// changedSettings puts the settings that differ into u and says what they were.
func changedSettings(pool *intent.Pool, have *observed.Group, u *step.UpdateGroup) []step.Change {
	var out []step.Change
	wanted, found := &pool.Group.GroupSettings, &have.GroupSettings
	if o := wanted.Options; o.HealthCheckType != "" || o.CapacityReservationSpecification != nil {
		wanted, found = new(unordered(*wanted)), new(unordered(*found))
	}
	for _, m := range field.GroupMembers() {
		want := m.Of(wanted)
		if want.IsZero() || m.Call != field.UpdateGroup || m.Holds(want, m.Of(found)) || m.AWS == "DesiredCapacityType" && !takesUnit(want.String(), *have, u) {
			continue
		}
		want, from := m.Of(&pool.Group.GroupSettings), m.Of(&have.GroupSettings)
		if m.OfPool {
			from = m.Found(from)
		}
		m.Of(&u.GroupSettings).Set(want)
		out = append(out, model.SettingChange(pool, m, from.Interface(), want.Interface()))
	}
	if u.Options.AvailabilityZoneImpairmentPolicy != nil {
		u.Options.SkipZonalShiftValidation = pool.Group.Options.SkipZonalShiftValidation
		out = append(out, skipChanges(pool)...)
	}
	return out
}

// skipChanges returns the change for a request that must skip a check.
func skipChanges(pool *intent.Pool) []step.Change {
	skip := pool.Group.Options.SkipZonalShiftValidation
	if skip == nil {
		return nil
	}
	return []step.Change{optionChange(pool, "skipZonalShiftValidation", nil, *skip)}
}

// takesUnit reports whether a group can measure its capacity in a unit already: other
// units than instances need a policy that chooses types by their attributes, which a
// rollout brings.
func takesUnit(unit string, have observed.Group, u *step.UpdateGroup) bool {
	return unit == "units" || byAttributes(have.MixedInstancesPolicy) || byAttributes(u.MixedInstancesPolicy)
}

func byAttributes(m *intent.MixedInstances) bool {
	return m != nil && slices.ContainsFunc(m.Overrides, func(o intent.Override) bool { return o.InstanceRequirements != nil })
}

// unordered sorts what has no order. A group's instances are always checked by EC2.
func unordered(s intent.GroupSettings) intent.GroupSettings {
	if o := &s.Options; o.HealthCheckType != "" {
		kinds := slices.DeleteFunc(strings.Split(o.HealthCheckType, ","), func(k string) bool { return k == "EC2" || k == "" })
		slices.Sort(kinds)
		o.HealthCheckType = strings.Join(append([]string{"EC2"}, kinds...), ",")
	}
	if c := s.Options.CapacityReservationSpecification; c != nil && c.CapacityReservationTarget != nil {
		t := c.CapacityReservationTarget
		sorted := *c
		sorted.CapacityReservationTarget = &intent.GroupReservationTarget{
			CapacityReservationIDs:               slices.Sorted(slices.Values(t.CapacityReservationIDs)),
			CapacityReservationResourceGroupARNs: slices.Sorted(slices.Values(t.CapacityReservationResourceGroupARNs)),
		}
		s.Options.CapacityReservationSpecification = &sorted
	}
	return s
}

// updateSeparately plans the options that have calls of their own.
func (c Planner) updateSeparately(pool *intent.Pool, have observed.Group) {
	o := &pool.Group.Options
	if reflect.ValueOf(*o).IsZero() {
		return
	}
	c.updateTraffic(pool, have)
	switch found := have.Options.WarmPool; {
	case o.WarmPool != nil && have.Options.DeleteWarmPool:
		c.NoteAt(diag.Info, pool.Options, intent.Path{"spec", "autoScalingGroup", "warmPool"}, "warm-pool-deleting",
			"the warm pool of "+have.Name+" is being deleted; weir creates it again afterwards", "")
	case o.WarmPool != nil && (found == nil || *found != *o.WarmPool):
		c.putWarmPool(pool, have)
	case o.DeleteWarmPool && found != nil && !have.Options.DeleteWarmPool:
		c.Step(pool, step.Step{Verb: step.Update, Resource: step.AutoScalingGroup, Name: have.Name, Reason: "Git has no warm pool",
			Changes: []step.Change{optionChange(pool, "warmPool", found, nil)}, Seen: step.SeenGroup(have), Do: step.DeleteWarmPool{Group: have.Name}})
	}
	c.updateMetrics(pool, have)
}

func (c Planner) putWarmPool(pool *intent.Pool, have observed.Group) {
	want := pool.Group.Options.WarmPool
	// Auto Scaling accepts no warm pool together with a mixed instances policy, so a dropped policy
	// must be gone first, which may take a rollout. Nor does it change a warm pool during a refresh;
	// what Git no longer wants of a refresh is cancelled meanwhile.
	later := have.MixedInstancesPolicy != nil && pool.Group.MixedInstancesPolicy == nil || c.In.State.Refreshes[have.Name].Active()
	c.Step(pool, step.Step{Verb: step.Update, Resource: step.AutoScalingGroup, Name: pool.Group.Name, Reason: "its warm pool differs", Later: later,
		Changes: []step.Change{optionChange(pool, "warmPool", have.Options.WarmPool, want)},
		Do:      step.PutWarmPool{Group: pool.Group.Name, WarmPool: *want, New: have.Options.WarmPool == nil}})
}

// updateMetrics holds the metrics that are collected to those declared.
// Assumed of AWS: warm-pool-metrics.
func (c Planner) updateMetrics(pool *intent.Pool, have observed.Group) {
	want := pool.Group.Options.MetricsCollection
	if want == nil {
		return
	}
	var found []string
	if m := have.Options.MetricsCollection; m != nil {
		found = m.Metrics
	}
	s := step.SetMetrics{Group: pool.Group.Name, Granularity: want.Granularity, Enable: model.Minus(want.Metrics, found), Disable: model.Minus(found, want.Metrics)}
	if len(s.Enable)+len(s.Disable) == 0 {
		return
	}
	c.Step(pool, step.Step{Verb: step.Update, Resource: step.AutoScalingGroup, Name: pool.Group.Name, Reason: "its metrics differ",
		Changes: []step.Change{optionChange(pool, "metricsCollection", have.Options.MetricsCollection, want)}, Do: s})
}

// updateTraffic holds the load balancers and target groups of the kinds that are
// declared to those declared.
func (c Planner) updateTraffic(pool *intent.Pool, have observed.Group) {
	o := &pool.Group.Options
	s := step.SetTrafficSources{Group: have.Name, SkipZonalShiftValidation: o.SkipZonalShiftValidation}
	var changes []step.Change
	hold := func(member string, declared bool, want []intent.TrafficSource, kinds ...string) {
		if !declared {
			return
		}
		found := slices.DeleteFunc(slices.Clone(have.Options.TrafficSources), func(t intent.TrafficSource) bool {
			return len(kinds) > 0 && !slices.Contains(kinds, t.Type)
		})
		attach, detach := model.Minus(want, found), model.Minus(found, want)
		if len(attach)+len(detach) > 0 {
			s.Attach, s.Detach = append(s.Attach, attach...), append(s.Detach, detach...)
			changes = append(changes, optionChange(pool, member, found, want))
		}
	}
	hold("targetGroupARNs", o.TargetGroupARNs != nil, intent.GroupOptions{TargetGroupARNs: o.TargetGroupARNs}.Sources(), "elbv2")
	hold("loadBalancerNames", o.LoadBalancerNames != nil, intent.GroupOptions{LoadBalancerNames: o.LoadBalancerNames}.Sources(), "elb")
	hold("trafficSources", o.TrafficSources != nil, o.TrafficSources)
	if len(changes) > 0 {
		why := model.Reason(changes)
		c.Step(pool, step.Step{Verb: step.Update, Resource: step.AutoScalingGroup, Name: have.Name, Reason: why, Changes: append(changes, skipChanges(pool)...), Do: s})
	}
}
