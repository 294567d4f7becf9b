package awsemu

import (
	"regexp"
	"sort"
	"strings"
)

// groupInput is what CreateAutoScalingGroup and UpdateAutoScalingGroup have in
// common; nil says that a member was not sent.
type groupInput struct {
	name                                     string
	template                                 *ltSpec
	mixed                                    *mixedInput
	min, max, desired                        *int64
	cooldown, grace, maxLifetime, warmup     *int64
	zones, zoneIDs, policies                 []string
	hasZones, hasPolicies                    bool
	subnets                                  *string
	healthType, placement, linkedRole        *string
	context, capacityType, protection        *string
	protect, rebalance                       *bool
	maintenance, zoneDistribution            ltData
	impairment, reservation, lifecyclePolicy ltData
}

func parseGroupInput(p *params) groupInput {
	in := groupInput{
		name: nameOf(p), template: parseLTSpec(p.sub("LaunchTemplate")), mixed: parseMixed(p.sub("MixedInstancesPolicy")),
		min: sizeOf(p, "MinSize"), max: sizeOf(p, "MaxSize"), desired: sizeOf(p, "DesiredCapacity"),
		cooldown: sizeOf(p, "DefaultCooldown"), grace: sizeOf(p, "HealthCheckGracePeriod"),
		maxLifetime: p.optionalInt("MaxInstanceLifetime"), warmup: p.optionalInt("DefaultInstanceWarmup"),
		zones: p.strings("AvailabilityZones"), zoneIDs: p.strings("AvailabilityZoneIds"), hasZones: p.has("AvailabilityZones") || p.has("AvailabilityZoneIds"),
		policies: p.strings("TerminationPolicies"), hasPolicies: p.has("TerminationPolicies"),
		subnets: p.optional("VPCZoneIdentifier"), healthType: p.optional("HealthCheckType"),
		placement: p.optional("PlacementGroup"), linkedRole: p.optional("ServiceLinkedRoleARN"),
		context: p.optional("Context"), protect: p.optionalBool("NewInstancesProtectedFromScaleIn"),
		rebalance:        p.optionalBool("CapacityRebalance"),
		maintenance:      p.data("InstanceMaintenancePolicy"),
		zoneDistribution: p.data("AvailabilityZoneDistribution"),
		impairment:       p.data("AvailabilityZoneImpairmentPolicy"),
		reservation:      p.data("CapacityReservationSpecification"),
		lifecyclePolicy:  p.data("InstanceLifecyclePolicy"),
	}
	p.boolean("SkipZonalShiftValidation") // zonal shift is never under way here
	if v := p.text("DeletionProtection"); v != "" {
		in.protection = &v
	}
	if p.has("DesiredCapacityType") {
		v := p.oneOf("DesiredCapacityType", "units", "vcpu", "memory-mib")
		in.capacityType = &v
	}
	if v := p.text("LaunchConfigurationName"); v != "" {
		p.reject(fail("ValidationError", "Launch configuration name not found - A launch configuration with the name: %s does not exist", v))
	}
	in.checkScalars(p)
	return in
}

// sizeOf reads a number that must not be negative.
func sizeOf(p *params, name string) *int64 {
	n := p.optionalInt(name)
	if n != nil && (*n < 0 || *n > 1<<31-1) {
		p.bad(name, decimal(*n), "Member must have value greater than or equal to 0")
	}
	return n
}

func (in *groupInput) checkScalars(p *params) {
	if in.template != nil && in.mixed != nil {
		p.reject(oneSource())
	}
	if n := in.maxLifetime; n != nil && *n != 0 && (*n < 86400 || *n > 31536000) {
		p.reject(fail("ValidationError", "MaxInstanceLifetime must be 0 or between 86400 and 31536000 seconds."))
	}
	if n := in.warmup; n != nil && *n < -1 {
		p.bad("DefaultInstanceWarmup", decimal(*n), "Member must have value greater than or equal to -1")
	}
	if in.healthType != nil {
		for _, kind := range strings.Split(*in.healthType, ",") {
			if !contains([]string{"EC2", "ELB", "EBS", "VPC_LATTICE"}, kind) {
				p.reject(fail("ValidationError", "The health check type %s is not valid. Valid values are: EC2, EBS, ELB, VPC_LATTICE.", *in.healthType))
			}
		}
	}
	for _, policy := range in.policies {
		if !contains([]string{"Default", "AllocationStrategy", "ClosestToNextInstanceHour", "NewestInstance",
			"OldestInstance", "OldestLaunchConfiguration", "OldestLaunchTemplate"}, policy) && !strings.HasPrefix(policy, "arn:aws:lambda:") {
			p.reject(fail("ValidationError", "Termination policy %s is not supported", policy))
		}
	}
	if m := in.maintenance; m != nil {
		if why := percentageFault(m); why != "" {
			p.reject(fail("ValidationError", "%s", why))
		}
	}
}

// percentageFault checks the two percentages of an instance maintenance policy.
func percentageFault(m ltData) string {
	low, high := m.integer("MinHealthyPercentage"), m.integer("MaxHealthyPercentage")
	switch {
	case m.has("MinHealthyPercentage") != m.has("MaxHealthyPercentage"):
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

func oneSource() *apiError {
	return fail("ValidationError", "Valid requests must contain either LaunchTemplate, LaunchConfigurationName, InstanceId or MixedInstancesPolicy parameter.")
}

// changed is a copy of g with the input's members applied and checked. g is nil
// for a new group, which comes with Auto Scaling's defaults.
func (in *groupInput) changed(r *region, g *asgGroup) (*asgGroup, *apiError) {
	n := &asgGroup{
		Cooldown: 300, HealthType: "EC2", Policies: []string{"Default"}, DeletionProtection: "none",
		LinkedRole:       "arn:" + partition(r.Name) + ":iam::" + r.Account + ":role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling",
		ZoneDistribution: ltData{"CapacityDistributionStrategy": "balanced-best-effort"},
		Impairment:       ltData{"ZonalShiftEnabled": "false"},
		Reservation:      ltData{"CapacityReservationPreference": "default"},
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
		return nil, fail("ValidationError", "DesiredCapacityType can only be used with attribute-based instance type selection.")
	}
	return n, nil
}

func (in *groupInput) applyScalars(n *asgGroup) {
	set(&n.Cooldown, in.cooldown)
	set(&n.Grace, in.grace)
	set(&n.HealthType, in.healthType)
	set(&n.PlacementGroup, in.placement)
	set(&n.LinkedRole, in.linkedRole)
	set(&n.Context, in.context)
	set(&n.CapacityType, in.capacityType)
	set(&n.DeletionProtection, in.protection)
	set(&n.Protect, in.protect)
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
		if n.Maintenance = in.maintenance; in.maintenance.integer("MinHealthyPercentage") == -1 {
			n.Maintenance = nil
		}
	}
	for _, f := range []struct {
		to   *ltData
		sent ltData
	}{{&n.ZoneDistribution, in.zoneDistribution}, {&n.Impairment, in.impairment}, {&n.Reservation, in.reservation}, {&n.LifecyclePolicy, in.lifecyclePolicy}} {
		if f.sent != nil {
			*f.to = f.sent
		}
	}
}

// applySizes sets the group's bounds and desired capacity. A bound that moves
// past the desired capacity takes it along, unless a new one was sent.
func (in *groupInput) applySizes(n *asgGroup, isNew bool) *apiError {
	set(&n.Min, in.min)
	set(&n.Max, in.max)
	if n.Min > n.Max {
		return fail("ValidationError", "Max bound, %d, must be greater than or equal to min bound, %d", n.Max, n.Min)
	}
	if in.desired != nil {
		n.Desired = *in.desired
		if n.Desired < n.Min || n.Desired > n.Max {
			return fail("ValidationError", "Desired capacity:%d must be between the specified min size:%d and max size:%d", n.Desired, n.Min, n.Max)
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
func (in *groupInput) applyPlaces(r *region, n *asgGroup) *apiError {
	if len(in.zones) > 0 && len(in.zoneIDs) > 0 {
		return fail("ValidationError", "AvailabilityZones and AvailabilityZoneIds cannot both be specified in the same request")
	}
	zones := append([]string(nil), in.zones...)
	for _, id := range in.zoneIDs {
		zone := ""
		for i, name := range r.zones() {
			if r.zoneID(i) == id {
				zone = name
			}
		}
		if zone == "" {
			return fail("ValidationError", "One or more Availability Zone IDs are invalid: [%s]", id)
		}
		zones = append(zones, zone)
	}
	sort.Strings(zones)
	for i, zone := range zones {
		if !contains(r.zones(), zone) {
			return fail("ValidationError", "Invalid availability zones: [%s]", zone)
		}
		if i > 0 && zones[i-1] == zone {
			return fail("ValidationError", "Duplicate availability zone: %s", zone)
		}
	}
	if in.subnets != nil {
		return applySubnets(r, n, *in.subnets, zones)
	}
	if in.hasZones && len(zones) > 0 {
		if len(n.Subnets) > 0 && n.Name != "" {
			return fail("ValidationError", "The availability zones of a group in a VPC are changed by VPCZoneIdentifier")
		}
		n.Zones, n.Subnets = zones, nil
	}
	if len(n.Zones) == 0 {
		return fail("ValidationError", "At least one Availability Zone or VPC Subnet is required.")
	}
	return nil
}

func applySubnets(r *region, n *asgGroup, identifier string, zones []string) *apiError {
	var ids []string
	vpc, inZone := "", map[string]bool{}
	for _, id := range strings.Split(identifier, ",") {
		id = strings.TrimSpace(id)
		s := r.EC2.Subnets.get(id)
		switch {
		case !regexp.MustCompile(`^subnet-[0-9a-f]+$`).MatchString(id):
			return fail("ValidationError", "Invalid VPCZoneIdentifier: '%s' is not a subnet ID", id)
		case s == nil:
			return fail("ValidationError", "The subnet ID '%s' does not exist", id)
		case vpc != "" && s.VpcID != vpc:
			return fail("ValidationError", "The subnets of a group must be in the same VPC: %s", identifier)
		case contains(ids, id):
			return fail("ValidationError", "Duplicate subnet: %s", id)
		}
		vpc = s.VpcID
		ids = append(ids, id)
		inZone[s.Zone] = true
	}
	found := sortedKeys(inZone)
	if len(zones) > 0 && strings.Join(zones, ",") != strings.Join(found, ",") {
		return fail("ValidationError", "The availability zones of the specified subnets and the specified AZs do not match")
	}
	n.Subnets, n.Zones = ids, found
	return nil
}

// applySource sets what the group launches.
func (in *groupInput) applySource(n *asgGroup) *apiError {
	switch {
	case in.template != nil:
		n.Config = groupConfig{Template: in.template}
	case in.mixed != nil:
		m, err := in.mixed.apply(n.Config.Mixed)
		if err != nil {
			return err
		}
		n.Config = groupConfig{Mixed: m}
	case n.Config.Template == nil && n.Config.Mixed == nil:
		return oneSource()
	}
	return nil
}

func (g *asgGroup) byRequirements(r *region) bool {
	if g.Config.Mixed != nil && g.Config.Mixed.byRequirements() {
		return true
	}
	s := g.Config.specs()[0]
	_, v, err := r.ltResolve(s.ID, s.Name, s.Version)
	return err != nil || v.Data.has("InstanceRequirements")
}
