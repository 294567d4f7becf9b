package importer

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// group makes a pool of a group. The name of its AWSMachinePool is the group's, or its PoolOptions name the
// group.
func (m *maker) group(g observed.Group) Pool {
	p := Pool{Kind: intent.GroupPool, Name: g.Name}
	tags := observed.GroupTagValues(g.Tags)
	if why := m.refuseGroup(&g, tags); why != "" {
		return p.refused(why)
	}
	var why string
	if p.Cluster, why = m.clusterOf(tags); why != "" {
		return p.refused(why)
	}
	key := m.groupKey(g.Name)
	m.taken[key] = true
	spec := map[string]any{"minSize": g.MinSize, "maxSize": g.MaxSize, "subnets": subnets(g.SubnetIDs), "awsLaunchTemplate": map[string]any{}}
	options := map[string]any{}
	g.Options.DeleteWarmPool = false
	if strings.HasSuffix(g.Options.ServiceLinkedRoleARN, "/AWSServiceRoleForAutoScaling") {
		g.Options.ServiceLinkedRoleARN = "" // the default of every group
	}
	if slices.Equal(g.Options.TerminationPolicies, []string{"Default"}) {
		g.Options.TerminationPolicies = nil
	}
	if d := g.Options.AvailabilityZoneDistribution; d != nil && d.CapacityDistributionStrategy == "balanced-best-effort" {
		g.Options.AvailabilityZoneDistribution = nil // AWS's default
	}
	fields(field.Group, g.GroupSettings, spec, options)
	mixed(g.MixedInstancesPolicy, spec, options)
	if key != g.Name {
		put(options, []string{"autoScalingGroup", "name"}, nil, g.Name)
	}
	if hooks := m.state.Hooks[g.Name].Hooks; len(hooks) > 0 {
		spec["lifecycleHooks"] = lifecycleHooks(hooks)
	}
	if len(g.SuspendedProcesses) > 0 {
		processes := map[string]any{}
		for _, name := range g.SuspendedProcesses {
			processes[processKey(name)] = true
		}
		spec["suspendProcesses"] = map[string]any{"processes": processes}
	}
	own := additionalTags(tags)
	for _, k := range slices.Sorted(maps.Keys(own)) {
		if g.Tags[k].PropagateAtLaunch {
			delete(own, k)
			p.Notes = append(p.Notes, Note{"tags." + k, "manifests cannot say that launches copy a group's tag; it stays as it is"})
		}
	}
	if len(own) > 0 {
		spec["additionalTags"] = own
	}
	return m.finish(p, finish{key: key, spec: spec, options: options, source: source{g.Template, configuration(&g)}, ownName: key})
}

// refuseGroup returns why a group cannot be imported, or an empty string.
func (m *maker) refuseGroup(g *observed.Group, tags map[string]string) string {
	if name := tags[observed.TagNodegroup]; name != "" {
		return "it is behind the EKS nodegroup " + observed.Quote(name) + ": import that, --nodegroup " + name + " --cluster " + tags[tagEKSCluster]
	}
	if why := refuse(tags); why != "" {
		return why
	}
	switch {
	case g.Deleting:
		return "AWS is deleting it"
	case g.Template == observed.TemplateRef{} && g.LaunchConfiguration == "":
		return "AWS does not say what it launches from"
	case g.UnknownPolicy:
		return "its mixed instances policy has fields that this version of weir does not know"
	case len(g.SubnetIDs) == 0:
		return "AWS names no subnet of it"
	}
	if slices.Contains(g.SuspendedProcesses, "") {
		return "AWS names no process that it suspends"
	}
	return ""
}

// configuration returns the launch configuration of a group, or an empty string if the group has a template.
func configuration(g *observed.Group) string {
	if g.Template != (observed.TemplateRef{}) {
		return ""
	}
	return g.LaunchConfiguration
}

func subnets(ids []string) []any {
	out := make([]any, len(ids))
	for i, id := range ids {
		out[i] = map[string]any{"id": id}
	}
	return out
}

// processKey returns the manifest's spelling of a scaling process.
func processKey(name string) string {
	if name == "AZRebalance" {
		return "azRebalance"
	}
	return field.Key(name)
}

// mixed writes a mixed instances policy: the parts that the pool can express there, and the rest into its
// options. Overrides are written in one place only.
func mixed(policy *intent.MixedInstances, spec, options map[string]any) {
	if policy == nil {
		return
	}
	said := map[string]any{"instancesDistribution": map[string]any{
		"onDemandAllocationStrategy": policy.OnDemandAllocationStrategy, "onDemandBaseCapacity": policy.OnDemandBaseCapacity,
		"onDemandPercentageAboveBaseCapacity": policy.OnDemandPercentageAboveBaseCapacity, "spotAllocationStrategy": policy.SpotAllocationStrategy,
	}}
	more := map[string]any{}
	if policy.SpotInstancePools != 0 {
		more["spotInstancePools"] = policy.SpotInstancePools
	}
	if policy.SpotMaxPrice != "" {
		more["spotMaxPrice"] = policy.SpotMaxPrice
	}
	inOptions := map[string]any{}
	if len(more) > 0 {
		inOptions["instancesDistribution"] = more
	}
	if len(policy.Overrides) > 0 {
		to := said
		if slices.ContainsFunc(policy.Overrides, func(o intent.Override) bool { return o != intent.Override{InstanceType: o.InstanceType} }) {
			to = inOptions
		}
		to["overrides"] = plain(byName(policy.Overrides))
	}
	spec["mixedInstancesPolicy"] = said
	if len(inOptions) > 0 {
		put(options, []string{"autoScalingGroup", "mixedInstancesPolicy"}, nil, inOptions)
	}
}

// byName returns overrides in the form of requests and manifests. AWS's answers name a launch template by id
// and name, and AWS refuses both together.
func byName(overrides []intent.Override) []intent.Override {
	out := slices.Clone(overrides)
	for i := range out {
		if t := out[i].LaunchTemplate; t != nil && t.Name != "" {
			out[i].LaunchTemplate = &intent.LaunchTemplateSpecification{Name: t.Name, Version: cmp.Or(t.Version, "$Default")}
		}
	}
	return out
}

func lifecycleHooks(hooks []intent.LifecycleHook) any {
	list := plain(hooks).([]any)
	for i, h := range hooks {
		list[i].(map[string]any)["heartbeatTimeout"] = seconds(h.HeartbeatTimeout)
	}
	return list
}
