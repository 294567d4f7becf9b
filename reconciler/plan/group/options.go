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

// For a group, weir sets the settings that Git declares, and leaves all others unchanged. It also
// leaves a setting that PoolOptions no longer declares, because AWS keeps no record of its owner.

func optionChange(pool *intent.Pool, member string, from, to any) step.Change {
	return step.Change{Field: "autoScalingGroup." + member, From: model.PlainJSON(from), To: model.PlainJSON(to),
		Object: pool.Options, Path: intent.Path{"spec", "autoScalingGroup", member}}
}

// newSettings returns the changes for the settings of a new group: the pool's own settings if
// ofPool is set, else those in its PoolOptions. Options that the creation request does not contain
// have separate steps.
func newSettings(pool *intent.Pool, ofPool bool) []step.Change {
	var out []step.Change
	for _, m := range field.GroupMembers() {
		if v := m.Of(&pool.Group.GroupSettings); m.OfPool == ofPool && m.OfCreation() && !m.IsDefault(v) {
			out = append(out, model.SettingChange(pool, m, nil, v.Interface()))
		}
	}
	return out
}

// changedSettings puts the settings that differ into u and returns the changes.
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

// takesUnit reports whether the group can already measure its capacity in a unit. Units other than
// instances need a policy that chooses types by attributes, which arrives with a rollout.
func takesUnit(unit string, have observed.Group, u *step.UpdateGroup) bool {
	return unit == "units" || byAttributes(have.MixedInstancesPolicy) || byAttributes(u.MixedInstancesPolicy)
}

func byAttributes(m *intent.MixedInstances) bool {
	return m != nil && slices.ContainsFunc(m.Overrides, func(o intent.Override) bool { return o.InstanceRequirements != nil })
}

// unordered sorts lists whose order does not matter. EC2 health checks apply to every group, so it
// always adds EC2.
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

// updateSeparately plans the options that have separate API calls.
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
	// Auto Scaling accepts no warm pool together with a mixed instances policy. So a policy that
	// was removed from Git must be gone first, which may take a rollout. Auto Scaling also does not
	// change a warm pool during a refresh. If the refresh is no longer wanted, weir cancels it
	// meanwhile.
	later := have.MixedInstancesPolicy != nil && pool.Group.MixedInstancesPolicy == nil || c.In.State.Refreshes[have.Name].Active()
	c.Step(pool, step.Step{Verb: step.Update, Resource: step.AutoScalingGroup, Name: pool.Group.Name, Reason: "its warm pool differs", Later: later,
		Changes: []step.Change{optionChange(pool, "warmPool", have.Options.WarmPool, want)},
		Do:      step.PutWarmPool{Group: pool.Group.Name, WarmPool: *want, New: have.Options.WarmPool == nil}})
}

// updateMetrics enables and disables metrics so that exactly the declared ones are collected.
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

// updateTraffic attaches and detaches load balancers and target groups so that they match the
// declared ones. It leaves a kind alone if Git does not declare it.
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
