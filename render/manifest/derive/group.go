package derive

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// groupPool derives a pool of kind AWSMachinePool.
func (b *Builder) groupPool(d *draft, o *kinds.Decoded[kinds.AWSMachinePoolSpec]) {
	s := &o.Spec
	bootstrap := d.Source.Spec.Template.Spec.Bootstrap.ConfigRef
	needsEKS := bootstrap != nil && (bootstrap.Kind == "NodeadmConfig" || bootstrap.Kind == "EKSConfig")
	b.identify(d, o.Ref(), o.Metadata, intent.GroupPool, needsEKS)
	groupName := b.groupName(d, o.Ref())
	d.bound(s.MinSize, s.MaxSize)

	tags := additionalTags(d.cluster, s.AdditionalTags)
	name := o.Ref().Name
	instanceType := s.AWSLaunchTemplate.InstanceType
	if instanceType == "" && s.MixedInstancesPolicy != nil && len(s.MixedInstancesPolicy.Overrides) > 0 {
		instanceType = s.MixedInstancesPolicy.Overrides[0].InstanceType
	}
	brings := kinds.BringsTemplate(o.Metadata)
	if instanceType == "" && !brings {
		d.AtPool.Error(path("spec", "awsLaunchTemplate", "instanceType"), "missing-required",
			"spec.awsLaunchTemplate.instanceType is required for a group without instance types in mixedInstancesPolicy.overrides", "")
	}
	d.Group = &intent.Group{
		Name: groupName, MinSize: s.MinSize, MaxSize: s.MaxSize, Subnets: d.groupSubnets(s),
		MixedInstancesPolicy: mixed(s.MixedInstancesPolicy), Refresh: refresh(s, intent.Refresh{}),
		SuspendedProcesses: processes(s.SuspendProcesses), LifecycleHooks: hooks(s.LifecycleHooks), Tags: capaTags(groupName, d.cluster.tagName(), tags),
	}
	field.FromPool(field.Group, s, &d.Group.GroupSettings)
	if d.cluster.eks {
		d.ControlPlane = intent.Lookup{Kind: intent.EKSCluster, Name: d.cluster.eksName, Cluster: d.ClusterKey}
	}
	d.CheckTagCount(d.Group.Tags)
	d.ownCapacity(o.Metadata)
	if brings {
		d.ownTemplate(o.Metadata, kinds.Launched(kinds.GroupTypes(s)))
		b.unusedBootstrap(d, true)
		d.NoteSubnetType(s.AvailabilityZoneSubnetType, d.Group.Subnets)
		return
	}
	b.launchTemplate(d, &s.AWSLaunchTemplate, name, tags, instanceType)
	lt := d.LaunchTemplate
	lt.SecurityGroups = append([]intent.Lookup{{Kind: intent.CoreSecurityGroups, Cluster: d.ClusterKey}}, lt.SecurityGroups...)
	d.image(imageQuestion{&s.AWSLaunchTemplate, d.cluster, d.version, instanceType, d.AtMachinePool, d.AtPool})
	b.writer.userData(d)
	d.NoteGroup(s)
}

// groupSubnets returns the lookup of a group's subnets: the named subnets, or the subnets of the pool's
// zones, or the subnets of the MachinePool's failure domains.
func (d *draft) groupSubnets(s *kinds.AWSMachinePoolSpec) intent.Lookup {
	l := intent.Lookup{Kind: intent.Subnets, Cluster: d.ClusterKey}
	var ids []string
	var filters []intent.Filter
	for _, ref := range s.Subnets {
		if ref.ID != nil {
			ids = append(ids, *ref.ID)
		}
		filters = append(filters, filtersOf(ref)...)
	}
	l.IDs, l.Filters = intent.JoinList(ids), intent.JoinFilters(filters)
	if l.IDs == "" && l.Filters == "" {
		if l.Zones = d.zones(s.AvailabilityZones); l.Zones != "" {
			l.SubnetType = s.AvailabilityZoneSubnetType
		}
	}
	return l
}

func filtersOf(ref kinds.AWSResourceReference) []intent.Filter {
	var out []intent.Filter
	for _, f := range ref.Filters {
		out = append(out, intent.Filter{Name: f.Name, Values: f.Values})
	}
	return out
}

// mixed fills in the defaults, which AWS and CAPA share.
func mixed(m *kinds.MixedInstancesPolicy) *intent.MixedInstances {
	if m == nil {
		return nil
	}
	out := &intent.MixedInstances{OnDemandAllocationStrategy: "prioritized", OnDemandPercentageAboveBaseCapacity: 100, SpotAllocationStrategy: "lowest-price"}
	if i := m.InstancesDistribution; i != nil {
		out.OnDemandAllocationStrategy, out.SpotAllocationStrategy = string(i.OnDemandAllocationStrategy), string(i.SpotAllocationStrategy)
		out.OnDemandBaseCapacity, out.OnDemandPercentageAboveBaseCapacity = int32(i.OnDemandBaseCapacity), int32(i.OnDemandPercentageAboveBaseCapacity)
	}
	for _, v := range m.Overrides {
		out.Overrides = append(out.Overrides, intent.Override{InstanceType: v.InstanceType})
	}
	return out
}

// refresh adds the refresh preferences of the pool to the preferences in its PoolOptions. The pool can only
// name the one strategy that CAPA has.
func refresh(s *kinds.AWSMachinePoolSpec, out intent.Refresh) intent.Refresh {
	field.FromPool(field.Refresh, s, &out)
	out.Strategy = cmp.Or(out.Strategy, "Rolling")
	return out
}

// processes returns the declared scaling processes. With `all`, these are all processes except for the ones
// that are declared running.
func processes(s *kinds.SuspendProcesses) []intent.Process {
	if s == nil {
		return nil
	}
	p := kinds.Processes{}
	if s.Processes != nil {
		p = *s.Processes
	}
	declared := map[string]*bool{
		"Launch": p.Launch, "Terminate": p.Terminate, "AddToLoadBalancer": p.AddToLoadBalancer, "AlarmNotification": p.AlarmNotification,
		"AZRebalance": p.AZRebalance, "HealthCheck": p.HealthCheck, "InstanceRefresh": p.InstanceRefresh,
		"ReplaceUnhealthy": p.ReplaceUnhealthy, "ScheduledActions": p.ScheduledActions,
	}
	var out []intent.Process
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		switch v := declared[name]; {
		case v != nil:
			out = append(out, intent.Process{Name: name, Suspended: *v})
		case s.All:
			out = append(out, intent.Process{Name: name, Suspended: true})
		}
	}
	return out
}

// hooks converts lifecycle hooks to the form of AWS, sorted by name, because their order has no meaning.
func hooks(list []kinds.LifecycleHook) []intent.LifecycleHook {
	var out []intent.LifecycleHook
	for _, h := range list {
		hook := intent.LifecycleHook{Name: h.Name, LifecycleTransition: h.LifecycleTransition, DefaultResult: h.DefaultResult,
			NotificationTargetARN: intent.Value(h.NotificationTargetARN), RoleARN: intent.Value(h.RoleARN), NotificationMetadata: intent.Value(h.NotificationMetadata)}
		if h.HeartbeatTimeout != nil {
			hook.HeartbeatTimeout = int32(*h.HeartbeatTimeout / time.Second)
		}
		out = append(out, hook)
	}
	slices.SortFunc(out, func(a, b intent.LifecycleHook) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return out
}
