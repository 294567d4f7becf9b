package asg

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// GroupInput contains the members that CreateAutoScalingGroup and UpdateAutoScalingGroup share. A member
// that was not sent is nil.
type GroupInput struct {
	groupName
	LaunchConfigurationName                                     string
	LaunchTemplate                                              *SpecInput
	MixedInstancesPolicy                                        *PolicyInput
	MinSize, MaxSize, DesiredCapacity                           *int64
	DefaultCooldown, HealthCheckGracePeriod                     *int64
	MaxInstanceLifetime, DefaultInstanceWarmup                  *int64
	AvailabilityZones, AvailabilityZoneIDs, TerminationPolicies []string
	VPCZoneIdentifier, HealthCheckType, PlacementGroup          *string
	ServiceLinkedRoleARN, Context                               *string
	DesiredCapacityType, DeletionProtection                     *string
	NewInstancesProtectedFromScaleIn, CapacityRebalance         *bool
	InstanceMaintenancePolicy, AvailabilityZoneDistribution     wire.Data
	AvailabilityZoneImpairmentPolicy, InstanceLifecyclePolicy   wire.Data
	CapacityReservationSpecification                            wire.Data
	SkipZonalShiftValidation                                    bool // the emulator has no zonal shifts
}

// checkSize refuses negative numbers.
func checkSize(name string, n *int64) error {
	if n != nil && (*n < 0 || *n > 1<<31-1) {
		return badValue(name, wire.Decimal(*n), "Member must have value greater than or equal to 0")
	}
	return nil
}

// Check applies the rules that do not depend on the group.
func (in *GroupInput) Check() error {
	if err := cmp.Or(
		in.LaunchTemplate.check(), in.MixedInstancesPolicy.check(), checkSize("MinSize", in.MinSize), checkSize("MaxSize", in.MaxSize),
		checkSize("DesiredCapacity", in.DesiredCapacity), checkSize("DefaultCooldown", in.DefaultCooldown), checkSize("HealthCheckGracePeriod", in.HealthCheckGracePeriod),
	); err != nil {
		return err
	}
	if v := in.DesiredCapacityType; v != nil && !slices.Contains([]string{"units", "vcpu", "memory-mib"}, *v) {
		return badValue("DesiredCapacityType", *v, "Member must satisfy enum value set: [units, vcpu, memory-mib]")
	}
	if in.LaunchTemplate != nil && in.MixedInstancesPolicy != nil || in.LaunchConfigurationName != "" && (in.LaunchTemplate != nil || in.MixedInstancesPolicy != nil) {
		return oneSource()
	}
	if n := in.MaxInstanceLifetime; n != nil && *n != 0 && (*n < 86400 || *n > 31536000) {
		return invalid("MaxInstanceLifetime must be 0 or between 86400 and 31536000 seconds.")
	}
	if n := in.DefaultInstanceWarmup; n != nil && *n < -1 {
		return badValue("DefaultInstanceWarmup", wire.Decimal(*n), "Member must have value greater than or equal to -1")
	}
	if in.HealthCheckType != nil {
		for kind := range strings.SplitSeq(*in.HealthCheckType, ",") {
			if !slices.Contains([]string{"EC2", "ELB", "EBS", "VPC_LATTICE"}, kind) {
				return invalid("The health check type %s is not valid. Valid values are: EC2, EBS, ELB, VPC_LATTICE.", *in.HealthCheckType)
			}
		}
	}
	for _, policy := range in.TerminationPolicies {
		if !slices.Contains(terminationPolicies(), policy) && !strings.HasPrefix(policy, "arn:aws:lambda:") {
			return invalid("Termination policy %s is not supported", policy)
		}
	}
	if m := in.InstanceMaintenancePolicy; m != nil {
		if why := percentageFault(m); why != "" {
			return invalid("%s", why)
		}
	}
	return nil
}

// percentageFault checks the percentages of an instance maintenance policy.
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
	return invalid("Valid requests must contain either LaunchTemplate, LaunchConfigurationName, InstanceId or MixedInstancesPolicy parameter.")
}

// Changed returns a copy of g with the input's members applied and checked. g is nil for a new group, which
// gets Auto Scaling's defaults.
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
	if err := in.applyLocations(r, n); err != nil {
		return nil, err
	}
	if err := in.applySource(r, n); err != nil {
		return nil, err
	}
	if n.CapacityType == "" && n.byRequirements(r) {
		n.CapacityType = "units" // other groups show it only if it was sent
	}
	if n.CapacityType != "" && n.CapacityType != "units" && !n.byRequirements(r) {
		return nil, invalid("DesiredCapacityType can only be used with attribute-based instance type selection.")
	}
	return n, nil
}

func (in *GroupInput) applyScalars(n *Group) {
	Set(&n.Cooldown, in.DefaultCooldown)
	Set(&n.Grace, in.HealthCheckGracePeriod)
	Set(&n.HealthType, in.HealthCheckType)
	Set(&n.PlacementGroup, in.PlacementGroup)
	Set(&n.LinkedRole, in.ServiceLinkedRoleARN)
	Set(&n.Context, in.Context)
	Set(&n.CapacityType, in.DesiredCapacityType)
	Set(&n.DeletionProtection, in.DeletionProtection)
	Set(&n.Protect, in.NewInstancesProtectedFromScaleIn)
	if in.CapacityRebalance != nil {
		n.Rebalance = in.CapacityRebalance
	}
	if in.MaxInstanceLifetime != nil {
		n.MaxLifetime = in.MaxInstanceLifetime
	}
	if in.DefaultInstanceWarmup != nil {
		if n.Warmup = in.DefaultInstanceWarmup; *in.DefaultInstanceWarmup == -1 {
			n.Warmup = nil
		}
	}
	if in.TerminationPolicies != nil {
		if n.Policies = in.TerminationPolicies; len(in.TerminationPolicies) == 0 {
			n.Policies = []string{"Default"}
		}
	}
	if in.InstanceMaintenancePolicy != nil {
		if n.Maintenance = in.InstanceMaintenancePolicy; in.InstanceMaintenancePolicy.Integer("MinHealthyPercentage") == -1 {
			n.Maintenance = nil
		}
	}
	for _, f := range []struct {
		to   *wire.Data
		sent wire.Data
	}{{&n.ZoneDistribution, in.AvailabilityZoneDistribution}, {&n.Impairment, in.AvailabilityZoneImpairmentPolicy}, {&n.Reservation, in.CapacityReservationSpecification}, {&n.LifecyclePolicy, in.InstanceLifecyclePolicy}} {
		if f.sent != nil {
			*f.to = f.sent
		}
	}
}

// applySizes sets the group's bounds and desired capacity. If a bound moves past the desired capacity, that
// moves too, unless a new one was sent.
func (in *GroupInput) applySizes(n *Group, isNew bool) *wire.Error {
	Set(&n.Min, in.MinSize)
	Set(&n.Max, in.MaxSize)
	if n.Min > n.Max {
		return invalid("Max bound, %d, must be greater than or equal to min bound, %d", n.Max, n.Min)
	}
	if in.DesiredCapacity != nil {
		n.Desired = *in.DesiredCapacity
		if n.Desired < n.Min || n.Desired > n.Max {
			return invalid("Desired capacity:%d must be between the specified min size:%d and max size:%d", n.Desired, n.Min, n.Max)
		}
		return nil
	}
	if isNew {
		n.Desired = n.Min
	}
	n.Desired = min(max(n.Desired, n.Min), n.Max)
	return nil
}

// applyLocations sets subnets and zones.
func (in *GroupInput) applyLocations(r *Region, n *Group) *wire.Error {
	if len(in.AvailabilityZones) > 0 && len(in.AvailabilityZoneIDs) > 0 {
		return invalid("AvailabilityZones and AvailabilityZoneIds cannot both be specified in the same request")
	}
	zones := append([]string(nil), in.AvailabilityZones...)
	for _, id := range in.AvailabilityZoneIDs {
		zone := ""
		for i, name := range r.ec2.Zones() {
			if r.ec2.ZoneID(i) == id {
				zone = name
			}
		}
		if zone == "" {
			return invalid("One or more Availability Zone IDs are invalid: [%s]", id)
		}
		zones = append(zones, zone)
	}
	sort.Strings(zones)
	for i, zone := range zones {
		if !slices.Contains(r.ec2.Zones(), zone) {
			return invalid("Invalid availability zones: [%s]", zone)
		}
		if i > 0 && zones[i-1] == zone {
			return invalid("Duplicate availability zone: %s", zone)
		}
	}
	if in.VPCZoneIdentifier != nil {
		return applySubnets(r, n, *in.VPCZoneIdentifier, zones)
	}
	if len(zones) > 0 {
		if len(n.Subnets) > 0 && n.Name != "" {
			return invalid("The availability zones of a group in a VPC are changed by VPCZoneIdentifier")
		}
		n.Zones, n.Subnets = zones, nil
	}
	if len(n.Zones) == 0 {
		return invalid("At least one Availability Zone or VPC Subnet is required.")
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
			return invalid("Invalid VPCZoneIdentifier: '%s' is not a subnet ID", id)
		case s == nil:
			return invalid("The subnet ID '%s' does not exist", id)
		case vpc != "" && s.VpcID != vpc:
			return invalid("The subnets of a group must be in the same VPC: %s", identifier)
		case slices.Contains(ids, id):
			return invalid("Duplicate subnet: %s", id)
		}
		vpc = s.VpcID
		ids = append(ids, id)
		inZone[s.Zone] = true
	}
	found := slices.Sorted(maps.Keys(inZone))
	if len(zones) > 0 && strings.Join(zones, ",") != strings.Join(found, ",") {
		return invalid("The availability zones of the specified subnets and the specified AZs do not match")
	}
	n.Subnets, n.Zones = ids, found
	return nil
}

// applySource sets the launch source of the group.
func (in *GroupInput) applySource(r *Region, n *Group) *wire.Error {
	switch {
	case in.LaunchConfigurationName != "":
		if _, err := r.launchConfigNamed(in.LaunchConfigurationName); err != nil {
			return err
		}
		n.Config = GroupConfig{LaunchConfig: in.LaunchConfigurationName}
	case in.LaunchTemplate != nil:
		n.Config = GroupConfig{Template: in.LaunchTemplate.spec()}
	case in.MixedInstancesPolicy != nil:
		m, err := in.MixedInstancesPolicy.apply(n.Config.Mixed)
		if err != nil {
			return err
		}
		n.Config = GroupConfig{Mixed: m}
	case n.Config == GroupConfig{}:
		return oneSource()
	}
	return nil
}

func (g *Group) byRequirements(r *Region) bool {
	if g.Config.Mixed != nil && g.Config.Mixed.byRequirements() {
		return true
	}
	if g.Config.LaunchConfig != "" {
		return false
	}
	s := g.Config.specs()[0]
	_, v, err := r.ec2.Resolve(s.ID, s.Name, s.Version)
	return err != nil || v.Data.Has("InstanceRequirements")
}
