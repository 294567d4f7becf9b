package awsemu

import (
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/model"
)

// pageLimit reads MaxRecords.
func pageLimit(p *params, usual, highest int64) int {
	n := p.optionalInt("MaxRecords")
	if n == nil {
		return int(usual)
	}
	if *n < 1 || *n > highest {
		p.bad("MaxRecords", decimal(*n), "Member must have value between 1 and "+decimal(highest))
	}
	return int(*n)
}

// groupFilter is a filter of DescribeAutoScalingGroups and of its relatives.
type groupFilter struct {
	name   string
	values []string
}

func parseGroupFilters(p *params, kinds ...string) []groupFilter {
	var out []groupFilter
	for _, f := range p.list("Filters") {
		one := groupFilter{name: f.text("Name"), values: f.strings("Values")}
		known := contains(kinds, one.name)
		if key, isTag := strings.CutPrefix(one.name, "tag:"); isTag && contains(kinds, "tag:<key>") {
			known = key != ""
		}
		if !known {
			p.reject(fail("ValidationError", "Filter type %s is not correct. Allowed Filter types are: %s", one.name, strings.Join(kinds, " ")))
		}
		out = append(out, one)
	}
	return out
}

// accepts says whether the filter holds for a group's tags.
func (f *groupFilter) accepts(g *asgGroup) bool {
	switch f.name {
	case "tag-key":
		for _, v := range f.values {
			if _, ok := g.tagIndex(v); ok {
				return true
			}
		}
		return false
	case "tag-value":
		for _, t := range g.Tags {
			if contains(f.values, t.Value) {
				return true
			}
		}
		return false
	}
	i, ok := g.tagIndex(strings.TrimPrefix(f.name, "tag:"))
	return ok && contains(f.values, g.Tags[i].Value)
}

type describeScalingGroupsInput struct {
	names     []string
	filters   []groupFilter
	token     string
	limit     int
	instances bool
}

func parseDescribeGroups(p *params) describeScalingGroupsInput {
	in := describeScalingGroupsInput{
		names: p.strings("AutoScalingGroupNames"), token: p.text("NextToken"), limit: pageLimit(p, 50, 100), instances: true,
		filters: parseGroupFilters(p, "tag-key", "tag-value", "tag:<key>"),
	}
	if b := p.optionalBool("IncludeInstances"); b != nil {
		in.instances = *b
	}
	if len(in.names) > in.limit {
		p.reject(fail("ValidationError", "The number of group names (%d) must not exceed MaxRecords (%d)", len(in.names), in.limit))
	}
	return in
}

func describeAutoScalingGroups(rq *request, in describeScalingGroupsInput) error {
	groups := &rq.region.AutoScaling.Groups
	keys := groups.sorted()
	if len(in.names) > 0 {
		wanted := map[string]bool{}
		for _, name := range in.names {
			if groups.has(name) {
				wanted[name] = true
			}
		}
		keys = sortedKeys(wanted)
	}
	w := &rq.xml
	// A group takes about 2 KiB, its members about 1.5 KiB.
	size := min(in.limit, len(keys)) * 2048
	if in.instances {
		size *= 2
	}
	w.buf = make([]byte, 0, size)
	w.open("AutoScalingGroups")
	next, err := rq.page(keys, in.token, in.limit, func(name string) bool {
		g := groups.get(name)
		for i := range in.filters {
			if !in.filters[i].accepts(g) {
				return false
			}
		}
		w.open("member")
		w.writeScalingGroup(rq.region, g, in.instances)
		w.close("member")
		return true
	})
	if err != nil {
		return err
	}
	w.close("AutoScalingGroups")
	w.optional("NextToken", next)
	return nil
}

func (w *xmlWriter) writeScalingGroup(r *region, g *asgGroup, instances bool) {
	w.text("AutoScalingGroupName", g.Name)
	w.text("AutoScalingGroupARN", g.ARN)
	w.writeConfig(g.Config)
	w.writeSizes(g)
	w.texts("AvailabilityZones", "member", g.Zones)
	w.open("AvailabilityZoneIds")
	for _, zone := range g.Zones {
		w.text("member", r.idOfZone(zone))
	}
	w.close("AvailabilityZoneIds")
	w.texts("LoadBalancerNames", "member", g.loadBalancers())
	w.texts("TargetGroupARNs", "member", g.TargetGroups)
	w.writeTrafficSources(g)
	w.text("HealthCheckType", g.HealthType)
	w.integer("HealthCheckGracePeriod", g.Grace)
	w.open("Instances")
	if instances {
		for _, m := range g.Members {
			w.open("member")
			w.writeMember(r, m)
			w.close("member")
		}
	}
	w.close("Instances")
	w.time("CreatedTime", g.Created)
	w.open("SuspendedProcesses")
	for _, s := range g.Suspended {
		w.open("member")
		w.text("ProcessName", s.Process)
		w.text("SuspensionReason", s.Reason)
		w.close("member")
	}
	w.close("SuspendedProcesses")
	w.optional("PlacementGroup", g.PlacementGroup)
	w.text("VPCZoneIdentifier", strings.Join(g.Subnets, ","))
	w.open("EnabledMetrics")
	for _, m := range g.Metrics {
		w.open("member")
		w.text("Metric", m)
		w.text("Granularity", "1Minute")
		w.close("member")
	}
	w.close("EnabledMetrics")
	if g.Deleting {
		w.text("Status", "Delete in progress")
	}
	w.open("Tags")
	for _, t := range g.Tags {
		w.open("member")
		w.writeGroupTag(g.Name, t)
		w.close("member")
	}
	w.close("Tags")
	w.writeGroupPolicies(g)
}

// writeSizes writes the capacity. EKS raises the sizes of a nodegroup's group
// while it replaces nodes.
func (w *xmlWriter) writeSizes(g *asgGroup) {
	highest, desired := g.Max, g.Desired
	if g.ManagedBy != "" {
		highest, desired = highest+g.Surge, desired+g.Surge
	}
	w.integer("MinSize", g.Min)
	w.integer("MaxSize", highest)
	w.integer("DesiredCapacity", desired)
	w.integer("DefaultCooldown", g.Cooldown)
}

func (w *xmlWriter) writeGroupPolicies(g *asgGroup) {
	w.texts("TerminationPolicies", "member", g.Policies)
	w.boolean("NewInstancesProtectedFromScaleIn", g.Protect)
	w.text("ServiceLinkedRoleARN", g.LinkedRole)
	w.optionalInt("MaxInstanceLifetime", g.MaxLifetime)
	w.optionalBool("CapacityRebalance", g.Rebalance)
	if g.Warm != nil {
		w.writeWarmPool(g.Warm)
		w.integer("WarmPoolSize", int64(len(g.WarmMembers)))
	}
	w.optional("Context", g.Context)
	w.optional("DesiredCapacityType", g.CapacityType)
	w.optionalInt("DefaultInstanceWarmup", g.Warmup)
	w.structure("InstanceMaintenancePolicy", g.Maintenance)
	w.text("DeletionProtection", g.DeletionProtection)
	w.structure("AvailabilityZoneDistribution", g.ZoneDistribution)
	w.structure("AvailabilityZoneImpairmentPolicy", g.Impairment)
	w.structure("CapacityReservationSpecification", g.Reservation)
	w.structure("InstanceLifecyclePolicy", g.LifecyclePolicy)
}

// structure writes a structure that a group keeps as it was sent, unless it is
// absent; the shape has its name.
func (w *xmlWriter) structure(name string, d ltData) {
	if d == nil {
		return
	}
	w.open(name)
	w.writeShape(d, model.Services()["autoscaling"].Shapes[name])
	w.close(name)
}

func (w *xmlWriter) writeTrafficSources(g *asgGroup) {
	w.open("TrafficSources")
	for _, arn := range g.TargetGroups {
		w.writeTrafficSource(trafficSource{Identifier: arn, Type: "elbv2"})
	}
	for _, s := range g.OtherSources {
		w.writeTrafficSource(s)
	}
	w.close("TrafficSources")
}

func (w *xmlWriter) writeTrafficSource(s trafficSource) {
	w.open("member")
	w.text("Identifier", s.Identifier)
	w.text("Type", s.Type)
	w.close("member")
}

func (w *xmlWriter) writeMember(r *region, m *member) {
	w.text("InstanceId", m.ID)
	w.text("InstanceType", m.Type)
	w.text("AvailabilityZone", m.Zone)
	w.text("AvailabilityZoneId", r.idOfZone(m.Zone))
	w.text("LifecycleState", m.Lifecycle)
	w.text("HealthStatus", m.Health)
	w.writeSpec("LaunchTemplate", m.Template)
	if m.OwnImage {
		w.text("ImageId", m.ImageID)
	}
	w.boolean("ProtectedFromScaleIn", m.Protected)
	w.optional("WeightedCapacity", m.Weight)
}

func (w *xmlWriter) writeSpec(name string, s ltSpec) {
	w.open(name)
	w.text("LaunchTemplateId", s.ID)
	w.text("LaunchTemplateName", s.Name)
	w.text("Version", s.Version)
	w.close(name)
}

// writeConfig writes LaunchTemplate or MixedInstancesPolicy.
func (w *xmlWriter) writeConfig(c groupConfig) {
	if c.Template != nil {
		w.writeSpec("LaunchTemplate", *c.Template)
	}
	if c.Mixed == nil {
		return
	}
	w.open("MixedInstancesPolicy")
	w.open("LaunchTemplate")
	w.writeSpec("LaunchTemplateSpecification", c.Mixed.Base)
	w.open("Overrides")
	for _, o := range c.Mixed.Overrides {
		w.open("member")
		w.optional("InstanceType", o.InstanceType)
		w.optional("WeightedCapacity", o.Weight)
		if o.Template != nil {
			w.writeSpec("LaunchTemplateSpecification", *o.Template)
		}
		w.structure("InstanceRequirements", o.Requirements)
		w.optional("ImageId", o.ImageID)
		w.close("member")
	}
	w.close("Overrides")
	w.close("LaunchTemplate")
	d := c.Mixed.Distribution
	w.open("InstancesDistribution")
	w.text("OnDemandAllocationStrategy", d.OnDemandStrategy)
	w.integer("OnDemandBaseCapacity", d.OnDemandBase)
	w.integer("OnDemandPercentageAboveBaseCapacity", d.OnDemandPercent)
	w.text("SpotAllocationStrategy", d.SpotStrategy)
	w.optionalInt("SpotInstancePools", d.SpotPools)
	w.optional("SpotMaxPrice", d.SpotMaxPrice)
	w.close("InstancesDistribution")
	w.close("MixedInstancesPolicy")
}
