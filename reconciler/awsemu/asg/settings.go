package asg

import (
	"maps"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// GroupInput is what CreateAutoScalingGroup and UpdateAutoScalingGroup have in
// common; nil says that a member was not sent.
type GroupInput struct {
	name                                     string
	template                                 *TemplateSpec
	Mixed                                    *MixedInput
	Min, Max, Desired                        *int64
	cooldown, grace, maxLifetime, warmup     *int64
	zones, zoneIDs, policies                 []string
	hasZones, hasPolicies                    bool
	Subnets                                  *string
	healthType, placement, linkedRole        *string
	context, capacityType, protection        *string
	protect, rebalance                       *bool
	maintenance, zoneDistribution            wire.Data
	impairment, reservation, lifecyclePolicy wire.Data
}

func parseGroupInput(p *wire.Params) GroupInput {
	in := GroupInput{
		name: nameOf(p), template: parseLTSpec(p.Sub("LaunchTemplate")), Mixed: parseMixed(p.Sub("MixedInstancesPolicy")),
		Min: sizeOf(p, "MinSize"), Max: sizeOf(p, "MaxSize"), Desired: sizeOf(p, "DesiredCapacity"),
		cooldown: sizeOf(p, "DefaultCooldown"), grace: sizeOf(p, "HealthCheckGracePeriod"),
		maxLifetime: p.OptionalInt("MaxInstanceLifetime"), warmup: p.OptionalInt("DefaultInstanceWarmup"),
		zones: p.Strings("AvailabilityZones"), zoneIDs: p.Strings("AvailabilityZoneIds"), hasZones: p.Has("AvailabilityZones") || p.Has("AvailabilityZoneIds"),
		policies: p.Strings("TerminationPolicies"), hasPolicies: p.Has("TerminationPolicies"),
		Subnets: p.Optional("VPCZoneIdentifier"), healthType: p.Optional("HealthCheckType"),
		placement: p.Optional("PlacementGroup"), linkedRole: p.Optional("ServiceLinkedRoleARN"),
		context: p.Optional("Context"), protect: p.OptionalBool("NewInstancesProtectedFromScaleIn"),
		rebalance:        p.OptionalBool("CapacityRebalance"),
		maintenance:      p.Data("InstanceMaintenancePolicy"),
		zoneDistribution: p.Data("AvailabilityZoneDistribution"),
		impairment:       p.Data("AvailabilityZoneImpairmentPolicy"),
		reservation:      p.Data("CapacityReservationSpecification"),
		lifecyclePolicy:  p.Data("InstanceLifecyclePolicy"),
	}
	p.Boolean("SkipZonalShiftValidation") // zonal shift is never under way here
	if v := p.Text("DeletionProtection"); v != "" {
		in.protection = &v
	}
	if p.Has("DesiredCapacityType") {
		v := p.OneOf("DesiredCapacityType", "units", "vcpu", "memory-mib")
		in.capacityType = &v
	}
	if v := p.Text("LaunchConfigurationName"); v != "" {
		p.Reject(wire.Fail("ValidationError", "Launch configuration name not found - A launch configuration with the name: %s does not exist", v))
	}
	in.checkScalars(p)
	return in
}

// sizeOf reads a number that must not be negative.
func sizeOf(p *wire.Params, name string) *int64 {
	n := p.OptionalInt(name)
	if n != nil && (*n < 0 || *n > 1<<31-1) {
		p.Bad(name, wire.Decimal(*n), "Member must have value greater than or equal to 0")
	}
	return n
}

func (in *GroupInput) checkScalars(p *wire.Params) {
	if in.template != nil && in.Mixed != nil {
		p.Reject(oneSource())
	}
	if n := in.maxLifetime; n != nil && *n != 0 && (*n < 86400 || *n > 31536000) {
		p.Reject(wire.Fail("ValidationError", "MaxInstanceLifetime must be 0 or between 86400 and 31536000 seconds."))
	}
	if n := in.warmup; n != nil && *n < -1 {
		p.Bad("DefaultInstanceWarmup", wire.Decimal(*n), "Member must have value greater than or equal to -1")
	}
	if in.healthType != nil {
		for _, kind := range strings.Split(*in.healthType, ",") {
			if !slices.Contains([]string{"EC2", "ELB", "EBS", "VPC_LATTICE"}, kind) {
				p.Reject(wire.Fail("ValidationError", "The health check type %s is not valid. Valid values are: EC2, EBS, ELB, VPC_LATTICE.", *in.healthType))
			}
		}
	}
	for _, policy := range in.policies {
		if !slices.Contains([]string{"Default", "AllocationStrategy", "ClosestToNextInstanceHour", "NewestInstance",
			"OldestInstance", "OldestLaunchConfiguration", "OldestLaunchTemplate"}, policy) && !strings.HasPrefix(policy, "arn:aws:lambda:") {
			p.Reject(wire.Fail("ValidationError", "Termination policy %s is not supported", policy))
		}
	}
	if m := in.maintenance; m != nil {
		if why := percentageFault(m); why != "" {
			p.Reject(wire.Fail("ValidationError", "%s", why))
		}
	}
}

// percentageFault checks the two percentages of an instance maintenance policy.
func percentageFault(m wire.Data) string {
	low, high := m.Integer("MinHealthyPercentage"), m.Integer("MaxHealthyPercentage")
	switch {
	case m.Has("MinHealthyPercentage") != m.Has("MaxHealthyPercentage"):
		return "InstanceMaintenancePolicy must specify both MinHealthyPercentage and MaxHealthyPercentage."
	case low == -1 && high == -1:
		return ""
	case low < 0 || low > 100:
		return "MinHealthyPercentage must be between 0 and 100."
	case high < 100 || high > 200:
		return "MaxHealthyPercentage must be between 100 and 200."
	case high-low > 100:
		return "The difference between MaxHealthyPercentage and MinHealthyPercentage must not be greater than 100."
	}
	return ""
}

func oneSource() *wire.Error {
	return wire.Fail("ValidationError", "Valid requests must contain either LaunchTemplate, LaunchConfigurationName, InstanceId or MixedInstancesPolicy parameter.")
}

// Changed is a copy of g with the input's members applied and checked. g is nil
// for a new group, which comes with Auto Scaling's defaults.
func (in *GroupInput) Changed(r *Region, g *Group) (*Group, *wire.Error) {
	n := &Group{
		Cooldown: 300, HealthType: "EC2", Policies: []string{"Default"}, DeletionProtection: "none",
		LinkedRole:       "arn:" + world.Partition(r.Name) + ":iam::" + r.Account + ":role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling",
		ZoneDistribution: wire.Data{"CapacityDistributionStrategy": "balanced-best-effort"},
		Impairment:       wire.Data{"ZonalShiftEnabled": "false"},
		Reservation:      wire.Data{"CapacityReservationPreference": "default"},
	}
	if g != nil {
		*n = *g
	}
	in.applyScalars(n)
	if err := in.applySizes(n, g == nil); err != nil {
		return nil, err
	}
	if err := in.applyPlaces(r, n); err != nil {
		return nil, err
	}
	if err := in.applySource(n); err != nil {
		return nil, err
	}
	if n.CapacityType == "" && n.byRequirements(r) {
		n.CapacityType = "units" // of other groups it is told only where it was sent
	}
	if n.CapacityType != "" && n.CapacityType != "units" && !n.byRequirements(r) {
		return nil, wire.Fail("ValidationError", "DesiredCapacityType can only be used with attribute-based instance type selection.")
	}
	return n, nil
}

func (in *GroupInput) applyScalars(n *Group) {
	Set(&n.Cooldown, in.cooldown)
	Set(&n.Grace, in.grace)
	Set(&n.HealthType, in.healthType)
	Set(&n.PlacementGroup, in.placement)
	Set(&n.LinkedRole, in.linkedRole)
	Set(&n.Context, in.context)
	Set(&n.CapacityType, in.capacityType)
	Set(&n.DeletionProtection, in.protection)
	Set(&n.Protect, in.protect)
	if in.rebalance != nil {
		n.Rebalance = in.rebalance
	}
	if in.maxLifetime != nil {
		n.MaxLifetime = in.maxLifetime
	}
	if in.warmup != nil {
		if n.Warmup = in.warmup; *in.warmup == -1 {
			n.Warmup = nil
		}
	}
	if in.hasPolicies {
		if n.Policies = in.policies; len(in.policies) == 0 {
			n.Policies = []string{"Default"}
		}
	}
	if in.maintenance != nil {
		if n.Maintenance = in.maintenance; in.maintenance.Integer("MinHealthyPercentage") == -1 {
			n.Maintenance = nil
		}
	}
	for _, f := range []struct {
		to   *wire.Data
		sent wire.Data
	}{{&n.ZoneDistribution, in.zoneDistribution}, {&n.Impairment, in.impairment}, {&n.Reservation, in.reservation}, {&n.LifecyclePolicy, in.lifecyclePolicy}} {
		if f.sent != nil {
			*f.to = f.sent
		}
	}
}

// applySizes sets the group's bounds and desired capacity. A bound that moves
// past the desired capacity takes it along, unless a new one was sent.
func (in *GroupInput) applySizes(n *Group, isNew bool) *wire.Error {
	Set(&n.Min, in.Min)
	Set(&n.Max, in.Max)
	if n.Min > n.Max {
		return wire.Fail("ValidationError", "Max bound, %d, must be greater than or equal to min bound, %d", n.Max, n.Min)
	}
	if in.Desired != nil {
		n.Desired = *in.Desired
		if n.Desired < n.Min || n.Desired > n.Max {
			return wire.Fail("ValidationError", "Desired capacity:%d must be between the specified min size:%d and max size:%d", n.Desired, n.Min, n.Max)
		}
		return nil
	}
	if isNew {
		n.Desired = n.Min
	}
	n.Desired = min(max(n.Desired, n.Min), n.Max)
	return nil
}

// applyPlaces sets subnets and zones.
func (in *GroupInput) applyPlaces(r *Region, n *Group) *wire.Error {
	if len(in.zones) > 0 && len(in.zoneIDs) > 0 {
		return wire.Fail("ValidationError", "AvailabilityZones and AvailabilityZoneIds cannot both be specified in the same request")
	}
	zones := append([]string(nil), in.zones...)
	for _, id := range in.zoneIDs {
		zone := ""
		for i, name := range r.ec2.Zones() {
			if r.ec2.ZoneID(i) == id {
				zone = name
			}
		}
		if zone == "" {
			return wire.Fail("ValidationError", "One or more Availability Zone IDs are invalid: [%s]", id)
		}
		zones = append(zones, zone)
	}
	sort.Strings(zones)
	for i, zone := range zones {
		if !slices.Contains(r.ec2.Zones(), zone) {
			return wire.Fail("ValidationError", "Invalid availability zones: [%s]", zone)
		}
		if i > 0 && zones[i-1] == zone {
			return wire.Fail("ValidationError", "Duplicate availability zone: %s", zone)
		}
	}
	if in.Subnets != nil {
		return applySubnets(r, n, *in.Subnets, zones)
	}
	if in.hasZones && len(zones) > 0 {
		if len(n.Subnets) > 0 && n.Name != "" {
			return wire.Fail("ValidationError", "The availability zones of a group in a VPC are changed by VPCZoneIdentifier")
		}
		n.Zones, n.Subnets = zones, nil
	}
	if len(n.Zones) == 0 {
		return wire.Fail("ValidationError", "At least one Availability Zone or VPC Subnet is required.")
	}
	return nil
}

func applySubnets(r *Region, n *Group, identifier string, zones []string) *wire.Error {
	var ids []string
	vpc, inZone := "", map[string]bool{}
	for _, id := range strings.Split(identifier, ",") {
		id = strings.TrimSpace(id)
		s := r.ec2.Subnets.Get(id)
		switch {
		case !regexp.MustCompile(`^subnet-[0-9a-f]+$`).MatchString(id):
			return wire.Fail("ValidationError", "Invalid VPCZoneIdentifier: '%s' is not a subnet ID", id)
		case s == nil:
			return wire.Fail("ValidationError", "The subnet ID '%s' does not exist", id)
		case vpc != "" && s.VpcID != vpc:
			return wire.Fail("ValidationError", "The subnets of a group must be in the same VPC: %s", identifier)
		case slices.Contains(ids, id):
			return wire.Fail("ValidationError", "Duplicate subnet: %s", id)
		}
		vpc = s.VpcID
		ids = append(ids, id)
		inZone[s.Zone] = true
	}
	found := slices.Sorted(maps.Keys(inZone))
	if len(zones) > 0 && strings.Join(zones, ",") != strings.Join(found, ",") {
		return wire.Fail("ValidationError", "The availability zones of the specified subnets and the specified AZs do not match")
	}
	n.Subnets, n.Zones = ids, found
	return nil
}

// applySource sets what the group launches.
func (in *GroupInput) applySource(n *Group) *wire.Error {
	switch {
	case in.template != nil:
		n.Config = GroupConfig{Template: in.template}
	case in.Mixed != nil:
		m, err := in.Mixed.apply(n.Config.Mixed)
		if err != nil {
			return err
		}
		n.Config = GroupConfig{Mixed: m}
	case n.Config.Template == nil && n.Config.Mixed == nil:
		return oneSource()
	}
	return nil
}

func (g *Group) byRequirements(r *Region) bool {
	if g.Config.Mixed != nil && g.Config.Mixed.byRequirements() {
		return true
	}
	s := g.Config.specs()[0]
	_, v, err := r.ec2.Resolve(s.ID, s.Name, s.Version)
	return err != nil || v.Data.Has("InstanceRequirements")
}
