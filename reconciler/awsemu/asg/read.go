package asg

import (
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/model"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// pageLimit reads MaxRecords.
func pageLimit(p *wire.Params, usual, highest int64) int {
	n := p.OptionalInt("MaxRecords")
	if n == nil {
		return int(usual)
	}
	if *n < 1 || *n > highest {
		p.Bad("MaxRecords", wire.Decimal(*n), "Member must have value between 1 and "+wire.Decimal(highest))
	}
	return int(*n)
}

// groupFilter is a filter of DescribeAutoScalingGroups and of its relatives.
type groupFilter struct {
	name   string
	values []string
}

func parseGroupFilters(p *wire.Params, kinds ...string) []groupFilter {
	var out []groupFilter
	for _, f := range p.List("Filters") {
		one := groupFilter{name: f.Text("Name"), values: f.Strings("Values")}
		known := slices.Contains(kinds, one.name)
		if key, isTag := strings.CutPrefix(one.name, "tag:"); isTag && slices.Contains(kinds, "tag:<key>") {
			known = key != ""
		}
		if !known {
			p.Reject(wire.Fail("ValidationError", "Filter type %s is not correct. Allowed Filter types are: %s", one.name, strings.Join(kinds, " ")))
		}
		out = append(out, one)
	}
	return out
}

// accepts says whether the filter holds for a group's tags.
func (f *groupFilter) accepts(g *Group) bool {
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
			if slices.Contains(f.values, t.Value) {
				return true
			}
		}
		return false
	}
	i, ok := g.tagIndex(strings.TrimPrefix(f.name, "tag:"))
	return ok && slices.Contains(f.values, g.Tags[i].Value)
}

type describeScalingGroupsInput struct {
	names     []string
	filters   []groupFilter
	token     string
	limit     int
	instances bool
}

func parseDescribeGroups(p *wire.Params) describeScalingGroupsInput {
	in := describeScalingGroupsInput{
		names: p.Strings("AutoScalingGroupNames"), token: p.Text("NextToken"), limit: pageLimit(p, 50, 100), instances: true,
		filters: parseGroupFilters(p, "tag-key", "tag-value", "tag:<key>"),
	}
	if b := p.OptionalBool("IncludeInstances"); b != nil {
		in.instances = *b
	}
	if len(in.names) > in.limit {
		p.Reject(wire.Fail("ValidationError", "The number of group names (%d) must not exceed MaxRecords (%d)", len(in.names), in.limit))
	}
	return in
}

func describeAutoScalingGroups(rq *request, in describeScalingGroupsInput) error {
	groups := &rq.Region.Groups
	keys := groups.Sorted()
	if len(in.names) > 0 {
		wanted := map[string]bool{}
		for _, name := range in.names {
			if groups.Has(name) {
				wanted[name] = true
			}
		}
		keys = slices.Sorted(maps.Keys(wanted))
	}
	w := &rq.XML
	// A group takes about 2 KiB, its members about 1.5 KiB.
	size := min(in.limit, len(keys)) * 2048
	if in.instances {
		size *= 2
	}
	w.Buf = make([]byte, 0, size)
	w.Open("AutoScalingGroups")
	next, err := rq.Page(keys, in.token, in.limit, func(name string) bool {
		g := groups.Get(name)
		for i := range in.filters {
			if !in.filters[i].accepts(g) {
				return false
			}
		}
		w.Open("member")
		writeScalingGroup(w, rq.Region, g, in.instances)
		w.Close("member")
		return true
	})
	if err != nil {
		return err
	}
	w.Close("AutoScalingGroups")
	w.Optional("NextToken", next)
	return nil
}

func writeScalingGroup(w *wire.XML, r *Region, g *Group, instances bool) {
	w.Text("AutoScalingGroupName", g.Name)
	w.Text("AutoScalingGroupARN", g.ARN)
	writeConfig(w, g.Config)
	writeSizes(w, g)
	w.Texts("AvailabilityZones", "member", g.Zones)
	w.Open("AvailabilityZoneIds")
	for _, zone := range g.Zones {
		w.Text("member", r.ec2.ZoneIDOf(zone))
	}
	w.Close("AvailabilityZoneIds")
	w.Texts("LoadBalancerNames", "member", g.loadBalancers())
	w.Texts("TargetGroupARNs", "member", g.TargetGroups)
	writeTrafficSources(w, g)
	w.Text("HealthCheckType", g.HealthType)
	w.Integer("HealthCheckGracePeriod", g.Grace)
	w.Open("Instances")
	if instances {
		for _, m := range g.Members {
			w.Open("member")
			writeMember(w, r, m)
			w.Close("member")
		}
	}
	w.Close("Instances")
	w.Time("CreatedTime", g.Created)
	w.Open("SuspendedProcesses")
	for _, s := range g.Suspended {
		w.Open("member")
		w.Text("ProcessName", s.Process)
		w.Text("SuspensionReason", s.Reason)
		w.Close("member")
	}
	w.Close("SuspendedProcesses")
	w.Optional("PlacementGroup", g.PlacementGroup)
	w.Text("VPCZoneIdentifier", strings.Join(g.Subnets, ","))
	w.Open("EnabledMetrics")
	for _, m := range g.Metrics {
		w.Open("member")
		w.Text("Metric", m)
		w.Text("Granularity", "1Minute")
		w.Close("member")
	}
	w.Close("EnabledMetrics")
	if g.Deleting {
		w.Text("Status", "Delete in progress")
	}
	w.Open("Tags")
	for _, t := range g.Tags {
		w.Open("member")
		writeGroupTag(w, g.Name, t)
		w.Close("member")
	}
	w.Close("Tags")
	writeGroupPolicies(w, g)
}

// writeSizes writes the capacity. EKS raises the sizes of a nodegroup's group
// while it replaces nodes.
func writeSizes(w *wire.XML, g *Group) {
	highest, desired := g.Max, g.Desired
	if g.ManagedBy != "" {
		highest, desired = highest+g.Surge, desired+g.Surge
	}
	w.Integer("MinSize", g.Min)
	w.Integer("MaxSize", highest)
	w.Integer("DesiredCapacity", desired)
	w.Integer("DefaultCooldown", g.Cooldown)
}

func writeGroupPolicies(w *wire.XML, g *Group) {
	w.Texts("TerminationPolicies", "member", g.Policies)
	w.Boolean("NewInstancesProtectedFromScaleIn", g.Protect)
	w.Text("ServiceLinkedRoleARN", g.LinkedRole)
	w.OptionalInt("MaxInstanceLifetime", g.MaxLifetime)
	w.OptionalBool("CapacityRebalance", g.Rebalance)
	if g.Warm != nil {
		writeWarmPool(w, g.Warm)
		w.Integer("WarmPoolSize", int64(len(g.WarmMembers)))
	}
	w.Optional("Context", g.Context)
	w.Optional("DesiredCapacityType", g.CapacityType)
	w.OptionalInt("DefaultInstanceWarmup", g.Warmup)
	structure(w, "InstanceMaintenancePolicy", g.Maintenance)
	w.Text("DeletionProtection", g.DeletionProtection)
	structure(w, "AvailabilityZoneDistribution", g.ZoneDistribution)
	structure(w, "AvailabilityZoneImpairmentPolicy", g.Impairment)
	structure(w, "CapacityReservationSpecification", g.Reservation)
	structure(w, "InstanceLifecyclePolicy", g.LifecyclePolicy)
}

// structure writes a structure that a group keeps as it was sent, unless it is
// absent; the shape has its name.
func structure(w *wire.XML, name string, d wire.Data) {
	if d == nil {
		return
	}
	w.Open(name)
	w.WriteShape(d, model.Services()["autoscaling"].Shapes[name])
	w.Close(name)
}

func writeTrafficSources(w *wire.XML, g *Group) {
	w.Open("TrafficSources")
	for _, arn := range g.TargetGroups {
		writeTrafficSource(w, trafficSource{Identifier: arn, Type: "elbv2"})
	}
	for _, s := range g.OtherSources {
		writeTrafficSource(w, s)
	}
	w.Close("TrafficSources")
}

func writeTrafficSource(w *wire.XML, s trafficSource) {
	w.Open("member")
	w.Text("Identifier", s.Identifier)
	w.Text("Type", s.Type)
	w.Close("member")
}

func writeMember(w *wire.XML, r *Region, m *Member) {
	w.Text("InstanceId", m.ID)
	w.Text("InstanceType", m.Type)
	w.Text("AvailabilityZone", m.Zone)
	w.Text("AvailabilityZoneId", r.ec2.ZoneIDOf(m.Zone))
	w.Text("LifecycleState", m.Lifecycle)
	w.Text("HealthStatus", m.Health)
	writeSpec(w, "LaunchTemplate", m.Template)
	if m.OwnImage {
		w.Text("ImageId", m.ImageID)
	}
	w.Boolean("ProtectedFromScaleIn", m.Protected)
	w.Optional("WeightedCapacity", m.Weight)
}

func writeSpec(w *wire.XML, name string, s TemplateSpec) {
	w.Open(name)
	w.Text("LaunchTemplateId", s.ID)
	w.Text("LaunchTemplateName", s.Name)
	w.Text("Version", s.Version)
	w.Close(name)
}

// writeConfig writes LaunchTemplate or MixedInstancesPolicy.
func writeConfig(w *wire.XML, c GroupConfig) {
	if c.Template != nil {
		writeSpec(w, "LaunchTemplate", *c.Template)
	}
	if c.Mixed == nil {
		return
	}
	w.Open("MixedInstancesPolicy")
	w.Open("LaunchTemplate")
	writeSpec(w, "LaunchTemplateSpecification", c.Mixed.Base)
	w.Open("Overrides")
	for _, o := range c.Mixed.Overrides {
		w.Open("member")
		w.Optional("InstanceType", o.InstanceType)
		w.Optional("WeightedCapacity", o.Weight)
		if o.Template != nil {
			writeSpec(w, "LaunchTemplateSpecification", *o.Template)
		}
		structure(w, "InstanceRequirements", o.Requirements)
		w.Optional("ImageId", o.ImageID)
		w.Close("member")
	}
	w.Close("Overrides")
	w.Close("LaunchTemplate")
	d := c.Mixed.Distribution
	w.Open("InstancesDistribution")
	w.Text("OnDemandAllocationStrategy", d.OnDemandStrategy)
	w.Integer("OnDemandBaseCapacity", d.OnDemandBase)
	w.Integer("OnDemandPercentageAboveBaseCapacity", d.OnDemandPercent)
	w.Text("SpotAllocationStrategy", d.SpotStrategy)
	w.OptionalInt("SpotInstancePools", d.SpotPools)
	w.Optional("SpotMaxPrice", d.SpotMaxPrice)
	w.Close("InstancesDistribution")
	w.Close("MixedInstancesPolicy")
}
