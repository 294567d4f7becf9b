package asg

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/model"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// paging contains the members that all Describe calls share.
type paging struct {
	NextToken  string
	MaxRecords *int64

	limit int
}

// bound checks the page size. usual is the default.
func (p *paging) bound(usual, highest int64) error {
	p.limit = int(usual)
	if p.MaxRecords != nil {
		p.limit = int(*p.MaxRecords)
	}
	return inRange("MaxRecords", p.MaxRecords, 1, highest)
}

// inRange checks an optional number.
func inRange(name string, n *int64, low, high int64) error {
	if n != nil && (*n < low || *n > high) {
		return badValue(name, wire.Decimal(*n), "Member must have value between "+wire.Decimal(low)+" and "+wire.Decimal(high))
	}
	return nil
}

// badValue returns the error for a member's value.
func badValue(name, value, why string) *wire.Error {
	return wire.QueryDialect().BadParam(name, value, why)
}

// invalid returns the error for a violation of another rule.
func invalid(format string, args ...any) *wire.Error {
	return wire.Fail("ValidationError", format, args...)
}

// groupName is a request that names a group.
type groupName struct{ AutoScalingGroupName string }

// groupFilter is a filter of DescribeAutoScalingGroups and similar calls.
type groupFilter struct {
	Name   string
	Values []string
}

func checkFilters(filters []groupFilter, kinds ...string) error {
	for _, f := range filters {
		known := slices.Contains(kinds, f.Name)
		if key, isTag := strings.CutPrefix(f.Name, "tag:"); isTag && slices.Contains(kinds, "tag:<key>") {
			known = key != ""
		}
		if !known {
			return invalid("Filter type %s is not correct. Allowed Filter types are: %s", f.Name, strings.Join(kinds, " "))
		}
	}
	return nil
}

// accepts reports whether a group's tags match the filter.
func (f *groupFilter) accepts(g *Group) bool {
	switch f.Name {
	case "tag-key":
		for _, v := range f.Values {
			if _, ok := g.tagIndex(v); ok {
				return true
			}
		}
		return false
	case "tag-value":
		for _, t := range g.Tags {
			if slices.Contains(f.Values, t.Value) {
				return true
			}
		}
		return false
	}
	i, ok := g.tagIndex(strings.TrimPrefix(f.Name, "tag:"))
	return ok && slices.Contains(f.Values, g.Tags[i].Value)
}

type describeScalingGroupsInput struct {
	paging
	AutoScalingGroupNames []string
	Filters               []groupFilter
	IncludeInstances      *bool
}

func (in *describeScalingGroupsInput) Check() error {
	if err := cmp.Or(in.bound(50, 100), checkFilters(in.Filters, "tag-key", "tag-value", "tag:<key>")); err != nil {
		return err
	}
	if n := len(in.AutoScalingGroupNames); n > in.limit {
		return invalid("The number of group names (%d) must not exceed MaxRecords (%d)", n, in.limit)
	}
	return nil
}

func describeAutoScalingGroups(rq *request, in describeScalingGroupsInput) error {
	instances := in.IncludeInstances == nil || *in.IncludeInstances
	groups := &rq.Region.Groups
	keys := groups.Sorted()
	if len(in.AutoScalingGroupNames) > 0 {
		wanted := map[string]bool{}
		for _, name := range in.AutoScalingGroupNames {
			if groups.Has(name) {
				wanted[name] = true
			}
		}
		keys = slices.Sorted(maps.Keys(wanted))
	}
	w := &rq.XML
	// A group takes about 2 KiB, its members about 1.5 KiB.
	size := min(in.limit, len(keys)) * 2048
	if instances {
		size *= 2
	}
	w.Buf = make([]byte, 0, size)
	w.Open("AutoScalingGroups")
	next, err := rq.Page(keys, in.NextToken, in.limit, func(name string) bool {
		g := groups.Get(name)
		for i := range in.Filters {
			if !in.Filters[i].accepts(g) {
				return false
			}
		}
		w.Open("member")
		writeScalingGroup(w, rq.Region, g, instances)
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
	wire.List(w, "SuspendedProcesses", "member", g.Suspended, func(s suspension) {
		w.Text("ProcessName", s.Process)
		w.Text("SuspensionReason", s.Reason)
	})
	w.Optional("PlacementGroup", g.PlacementGroup)
	w.Text("VPCZoneIdentifier", strings.Join(g.Subnets, ","))
	wire.List(w, "EnabledMetrics", "member", g.Metrics, func(m string) {
		w.Text("Metric", m)
		w.Text("Granularity", metricGranularity)
	})
	if g.Deleting {
		w.Text("Status", "Delete in progress")
	}
	wire.List(w, "Tags", "member", g.Tags, func(t GroupTag) {
		writeGroupTag(w, g.Name, t)
	})
	writeGroupPolicies(w, g)
}

// writeSizes writes the capacity. EKS increases the sizes of a nodegroup's group while it replaces nodes.
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

// structure writes a structure that a group stores as it was sent, unless it is absent. name is also the
// name of its shape.
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
	w.Optional("LaunchConfigurationName", m.LaunchConfig)
	if m.Template.ID != "" {
		writeSpec(w, "LaunchTemplate", m.Template)
	}
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

// writeConfig writes LaunchConfigurationName, LaunchTemplate or MixedInstancesPolicy.
func writeConfig(w *wire.XML, c GroupConfig) {
	w.Optional("LaunchConfigurationName", c.LaunchConfig)
	if c.Template != nil {
		writeSpec(w, "LaunchTemplate", *c.Template)
	}
	if c.Mixed == nil {
		return
	}
	w.Open("MixedInstancesPolicy")
	w.Open("LaunchTemplate")
	writeSpec(w, "LaunchTemplateSpecification", c.Mixed.Base)
	wire.List(w, "Overrides", "member", c.Mixed.Overrides, func(o Override) {
		w.Optional("InstanceType", o.InstanceType)
		w.Optional("WeightedCapacity", o.Weight)
		if o.Template != nil {
			writeSpec(w, "LaunchTemplateSpecification", *o.Template)
		}
		structure(w, "InstanceRequirements", o.Requirements)
		w.Optional("ImageId", o.ImageID)
	})
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
