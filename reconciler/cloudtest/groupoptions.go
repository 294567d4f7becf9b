package cloudtest

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
)

func groupOptionContracts() []contract {
	needs := []Capability{GroupOptions}
	return []contract{
		{"options of a new group come back", needs, newOptions},
		{"options are changed and cleared", needs, changedOptions},
		{"a group starts with the defaults of AWS", needs, usualOptions},
		{"a unit of capacity is returned only if one was sent", needs, unitsOfCapacity},
		{"a group and its instances say the ids of their zones", needs, zoneIDs},
		{"options that contradict themselves are refused", needs, contradictoryOptions},
		{"what protects a group from its deletion is respected", needs, protectedDeletion},
		{"traffic sources are attached and detached one by one", needs, trafficSources},
		{"metrics are enabled and disabled one by one", needs, metrics},
		{"a warm pool keeps what a call leaves out, and is deleted", needs, warmPool},
		{"a warm pool fills, is used and is not part of its group", []Capability{GroupOptions, InstanceDetails}, warmInstances},
		{"an empty list of overrides removes them", needs, clearedOverrides},
		{"overrides come back with all that they hold", needs, wholeOverrides},
		{"spot pools go with their strategy", needs, spotPools},
	}
}

// targetGroup returns an ARN that an endpoint without load balancers accepts.
func (e *env) targetGroup(name string) string {
	return "arn:aws:elasticloadbalancing:" + e.h.Region + ":000000000000:targetgroup/" + name + "/0123456789abcdef"
}

func newOptions(e *env) {
	name := e.group("a", func(in *createGroup) {
		in.HealthCheckType, in.HealthCheckGracePeriod = aws.String("ELB,EBS"), aws.Int32(30)
		in.TerminationPolicies, in.MaxInstanceLifetime = []string{"OldestInstance", "Default"}, aws.Int32(86400)
		in.NewInstancesProtectedFromScaleIn, in.PlacementGroup = aws.Bool(true), aws.String("close")
		in.InstanceMaintenancePolicy = &types.InstanceMaintenancePolicy{MinHealthyPercentage: aws.Int32(90), MaxHealthyPercentage: aws.Int32(120)}
		in.TargetGroupARNs = []string{e.targetGroup("a")}
		in.CapacityReservationSpecification = &types.CapacityReservationSpecification{CapacityReservationPreference: types.CapacityReservationPreferenceNone}
		in.AvailabilityZoneDistribution = &types.AvailabilityZoneDistribution{CapacityDistributionStrategy: types.CapacityDistributionStrategyBalancedOnly}
	})
	g := e.describe(name)
	kinds := strings.Split(aws.ToString(g.HealthCheckType), ",")
	slices.Sort(kinds)
	e.equal("health checks", []string{"EBS", "ELB"}, slices.DeleteFunc(kinds, func(k string) bool { return k == "EC2" }))
	e.equal("settings", []any{int32(30), []string{"OldestInstance", "Default"}, int32(86400), true, "close", int32(90), int32(120), []string{e.targetGroup("a")}},
		[]any{*g.HealthCheckGracePeriod, g.TerminationPolicies, *g.MaxInstanceLifetime, *g.NewInstancesProtectedFromScaleIn, *g.PlacementGroup,
			*g.InstanceMaintenancePolicy.MinHealthyPercentage, *g.InstanceMaintenancePolicy.MaxHealthyPercentage, g.TargetGroupARNs})
	e.equal("traffic sources", []string{e.targetGroup("a") + " elbv2"}, sourcesOf(g))
	e.equal("places", []any{types.CapacityReservationPreferenceNone, types.CapacityDistributionStrategyBalancedOnly},
		[]any{g.CapacityReservationSpecification.CapacityReservationPreference, g.AvailabilityZoneDistribution.CapacityDistributionStrategy})
}

func changedOptions(e *env) {
	name := e.group("a", func(in *createGroup) {
		in.HealthCheckType, in.MaxInstanceLifetime = aws.String("ELB"), aws.Int32(86400)
		in.InstanceMaintenancePolicy = &types.InstanceMaintenancePolicy{MinHealthyPercentage: aws.Int32(90), MaxHealthyPercentage: aws.Int32(120)}
	})
	e.must(e.update(name, func(in *updateGroup) {
		in.HealthCheckType, in.MaxInstanceLifetime = aws.String("EC2"), aws.Int32(0)
		in.InstanceMaintenancePolicy = &types.InstanceMaintenancePolicy{MinHealthyPercentage: aws.Int32(-1), MaxHealthyPercentage: aws.Int32(-1)}
		in.DeletionProtection = types.DeletionProtectionPreventAllDeletion
	}))
	g := e.describe(name)
	e.equal("settings", []any{"EC2", int32(0), true, types.DeletionProtectionPreventAllDeletion},
		[]any{*g.HealthCheckType, aws.ToInt32(g.MaxInstanceLifetime), g.InstanceMaintenancePolicy == nil, g.DeletionProtection})
	_, err := e.asg.DeleteAutoScalingGroup(e.ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: aws.String(name), ForceDelete: aws.Bool(true)})
	e.refused(err, "ValidationError", "ResourceInUse")
	e.must(e.update(name, func(in *updateGroup) { in.DeletionProtection = types.DeletionProtectionNone }))
}

// protectedDeletion checks that a group with force deletion disabled can be deleted after it is empty. Force
// does not delete a group that retains instances either.
func protectedDeletion(e *env) {
	remove := func(name string, force bool) error {
		_, err := e.asg.DeleteAutoScalingGroup(e.ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: aws.String(name), ForceDelete: aws.Bool(force)})
		return err
	}
	protected := e.group("a", func(in *createGroup) { in.DeletionProtection = types.DeletionProtectionPreventForceDeletion })
	e.refused(remove(protected, true), "ValidationError", "ResourceInUse")
	e.must(remove(protected, false))
	retains := e.group("b", func(in *createGroup) {
		in.InstanceLifecyclePolicy = &types.InstanceLifecyclePolicy{RetentionTriggers: &types.RetentionTriggers{TerminateHookAbandon: types.RetentionActionRetain}}
	})
	e.refused(remove(retains, true), "ValidationError")
	e.must(remove(retains, false))
}

func usualOptions(e *env) {
	g := e.describe(e.group("a"))
	e.equal("settings", []any{"EC2", int32(0), []string{"Default"}, false, true, true, 0},
		[]any{*g.HealthCheckType, aws.ToInt32(g.HealthCheckGracePeriod), g.TerminationPolicies, aws.ToBool(g.NewInstancesProtectedFromScaleIn),
			g.MaxInstanceLifetime == nil, g.WarmPoolConfiguration == nil, len(g.EnabledMetrics) + len(g.TrafficSources)})
}

// unitsOfCapacity checks that a setting that was not sent stays absent. Otherwise a tool that compares
// observed with declared settings would make changes forever.
func unitsOfCapacity(e *env) {
	unit := func(suffix string, change ...func(*createGroup)) *string {
		return e.describe(e.group(suffix, change...)).DesiredCapacityType
	}
	if got := unit("a"); got != nil {
		e.Errorf("a group that says nothing of it counts %q", *got)
	}
	e.equal("sent", "units", aws.ToString(unit("b", func(in *createGroup) { in.DesiredCapacityType = aws.String("units") })))
	t := e.template("lt")
	byAttributes := policy(spec(t, 1))
	byAttributes.LaunchTemplate.Overrides = []types.LaunchTemplateOverrides{{InstanceRequirements: &types.InstanceRequirements{
		VCpuCount: &types.VCpuCountRequest{Min: aws.Int32(2)}, MemoryMiB: &types.MemoryMiBRequest{Min: aws.Int32(4096)}}}}
	e.equal("by attributes", "units", aws.ToString(unit("c", func(in *createGroup) { in.MixedInstancesPolicy = byAttributes })))
}

func zoneIDs(e *env) {
	name := e.group("a", func(in *createGroup) { in.DesiredCapacity = aws.Int32(1) })
	g := e.inService(name, 1)
	e.equal("zones", len(g.AvailabilityZones), len(g.AvailabilityZoneIds))
	if in := g.Instances[0]; !slices.Contains(g.AvailabilityZoneIds, aws.ToString(in.AvailabilityZoneId)) {
		e.Errorf("an instance is in %v of %v", in.AvailabilityZoneId, g.AvailabilityZoneIds)
	}
	_, err := e.tryGroup("b", func(in *createGroup) {
		in.VPCZoneIdentifier, in.AvailabilityZones, in.AvailabilityZoneIds = nil, g.AvailabilityZones, g.AvailabilityZoneIds
	})
	e.refused(err, "ValidationError")
}

func contradictoryOptions(e *env) {
	name := e.group("a")
	for what, change := range map[string]func(*updateGroup){
		"a health check of no kind": func(in *updateGroup) { in.HealthCheckType = aws.String("EC3") },
		"a short life":              func(in *updateGroup) { in.MaxInstanceLifetime = aws.Int32(60) },
		"half a policy": func(in *updateGroup) {
			in.InstanceMaintenancePolicy = &types.InstanceMaintenancePolicy{MinHealthyPercentage: aws.Int32(90)}
		},
		"vCPUs of one type":      func(in *updateGroup) { in.DesiredCapacityType = aws.String("vcpu") },
		"an unknown termination": func(in *updateGroup) { in.TerminationPolicies = []string{"Oldest"} },
	} {
		if err := e.update(name, change); code(err) != "ValidationError" {
			e.Errorf("%s: got the error %v", what, err)
		}
	}
}

// sourcesOf returns the traffic sources of a group with their types, sorted.
func sourcesOf(g *types.AutoScalingGroup) []string {
	out := []string{}
	for _, s := range g.TrafficSources {
		out = append(out, aws.ToString(s.Identifier)+" "+aws.ToString(s.Type))
	}
	slices.Sort(out)
	return out
}

func trafficSources(e *env) {
	name := e.group("a", func(in *createGroup) { in.TargetGroupARNs = []string{e.targetGroup("a")} })
	of := func(name string) []types.TrafficSourceIdentifier {
		return []types.TrafficSourceIdentifier{{Identifier: aws.String(e.targetGroup(name)), Type: aws.String("elbv2")}}
	}
	for range 2 { // a source that is already attached stays
		_, err := e.asg.AttachTrafficSources(e.ctx, &autoscaling.AttachTrafficSourcesInput{AutoScalingGroupName: aws.String(name), TrafficSources: of("b")})
		e.must(err)
	}
	g := e.describe(name)
	e.equal("traffic sources", []string{e.targetGroup("a") + " elbv2", e.targetGroup("b") + " elbv2"}, sourcesOf(g))
	e.equal("target groups", 2, len(g.TargetGroupARNs))
	_, err := e.asg.DetachTrafficSources(e.ctx, &autoscaling.DetachTrafficSourcesInput{AutoScalingGroupName: aws.String(name), TrafficSources: of("a")})
	e.must(err)
	e.eventually("the first to be detached", func() bool { return len(e.describe(name).TargetGroupARNs) == 1 })
	e.equal("what is left", []string{e.targetGroup("b") + " elbv2"}, sourcesOf(e.describe(name)))
}

func metrics(e *env) {
	name := e.group("a")
	enabled := func() []string {
		out := []string{}
		for _, m := range e.describe(name).EnabledMetrics {
			out = append(out, aws.ToString(m.Metric)+" "+aws.ToString(m.Granularity))
		}
		slices.Sort(out)
		return out
	}
	_, err := e.asg.EnableMetricsCollection(e.ctx, &autoscaling.EnableMetricsCollectionInput{AutoScalingGroupName: aws.String(name), Granularity: aws.String("1Minute"), Metrics: []string{"GroupMinSize", "GroupMaxSize"}})
	e.must(err)
	_, err = e.asg.DisableMetricsCollection(e.ctx, &autoscaling.DisableMetricsCollectionInput{AutoScalingGroupName: aws.String(name), Metrics: []string{"GroupMaxSize", "GroupTotalInstances"}})
	e.must(err)
	e.equal("metrics", []string{"GroupMinSize 1Minute"}, enabled())
	_, err = e.asg.EnableMetricsCollection(e.ctx, &autoscaling.EnableMetricsCollectionInput{AutoScalingGroupName: aws.String(name), Granularity: aws.String("1Minute"), Metrics: []string{"GroupSize"}})
	e.refused(err, "ValidationError")
	_, err = e.asg.DisableMetricsCollection(e.ctx, &autoscaling.DisableMetricsCollectionInput{AutoScalingGroupName: aws.String(name)})
	e.must(err)
	e.equal("metrics after all were disabled", []string{}, enabled())
}

func warmPool(e *env) {
	name := e.group("a")
	put := func(in autoscaling.PutWarmPoolInput) {
		in.AutoScalingGroupName = aws.String(name)
		_, err := e.asg.PutWarmPool(e.ctx, &in)
		e.must(err)
	}
	put(autoscaling.PutWarmPoolInput{MinSize: aws.Int32(0), MaxGroupPreparedCapacity: aws.Int32(2), PoolState: types.WarmPoolStateRunning})
	put(autoscaling.PutWarmPoolInput{InstanceReusePolicy: &types.InstanceReusePolicy{ReuseOnScaleIn: aws.Bool(true)}})
	w := e.describe(name).WarmPoolConfiguration
	e.equal("the warm pool", []any{int32(0), int32(2), types.WarmPoolStateRunning, true},
		[]any{aws.ToInt32(w.MinSize), aws.ToInt32(w.MaxGroupPreparedCapacity), w.PoolState, aws.ToBool(w.InstanceReusePolicy.ReuseOnScaleIn)})
	put(autoscaling.PutWarmPoolInput{MaxGroupPreparedCapacity: aws.Int32(-1)})
	if n := e.describe(name).WarmPoolConfiguration.MaxGroupPreparedCapacity; n != nil {
		e.Errorf("a capacity that was removed is %d", *n)
	}
	_, err := e.asg.DeleteWarmPool(e.ctx, &autoscaling.DeleteWarmPoolInput{AutoScalingGroupName: aws.String(name), ForceDelete: aws.Bool(true)})
	e.must(err)
	if w := e.describe(name).WarmPoolConfiguration; w != nil && w.Status != types.WarmPoolStatusPendingDelete {
		e.Errorf("a warm pool that is being deleted has status %q", w.Status)
	}
	e.eventually("the warm pool to be gone", func() bool { return e.describe(name).WarmPoolConfiguration == nil })
	_, err = e.asg.DeleteWarmPool(e.ctx, &autoscaling.DeleteWarmPoolInput{AutoScalingGroupName: aws.String(name), ForceDelete: aws.Bool(true)})
	e.refused(err, "ValidationError")
}

// warmInstances checks that only the pool lists warm instances, and that a growing group takes instances
// from the pool first.
func warmInstances(e *env) {
	name := e.group("a")
	_, err := e.asg.PutWarmPool(e.ctx, &autoscaling.PutWarmPoolInput{AutoScalingGroupName: aws.String(name), MaxGroupPreparedCapacity: aws.Int32(1), PoolState: types.WarmPoolStateRunning})
	e.must(err)
	var warm []string
	e.eventually("an instance to be warm", func() bool {
		out, err := e.asg.DescribeWarmPool(e.ctx, &autoscaling.DescribeWarmPoolInput{AutoScalingGroupName: aws.String(name)})
		e.must(err)
		warm = nil
		for _, in := range out.Instances {
			if in.LifecycleState == types.LifecycleStateWarmedRunning {
				warm = append(warm, aws.ToString(in.InstanceId))
			}
		}
		return len(warm) == 1
	})
	g := e.describe(name)
	e.equal("the group's own, and those of the pool", []int32{0, 1}, []int32{int32(len(g.Instances)), aws.ToInt32(g.WarmPoolSize)})
	e.must(e.update(name, func(in *updateGroup) { in.DesiredCapacity = aws.Int32(1) }))
	e.equal("who serves", warm, instanceIDs(e.inService(name, 1)))
	_, err = e.asg.DeleteWarmPool(e.ctx, &autoscaling.DeleteWarmPoolInput{AutoScalingGroupName: aws.String(name), ForceDelete: aws.Bool(true)})
	e.must(err)
}

func clearedOverrides(e *env) {
	t := e.template("lt")
	name := e.group("a", func(in *createGroup) { in.MixedInstancesPolicy = policy(spec(t, 1), "m5.large", "m5.xlarge") })
	p := policy(spec(t, 1))
	p.LaunchTemplate.Overrides = []types.LaunchTemplateOverrides{}
	e.must(e.update(name, func(in *updateGroup) { in.MixedInstancesPolicy = p }))
	e.equal("overrides", 0, len(e.describe(name).MixedInstancesPolicy.LaunchTemplate.Overrides))
}

func wholeOverrides(e *env) {
	t, other := e.template("lt"), e.template("other")
	p := policy(spec(t, 1))
	p.LaunchTemplate.Overrides = []types.LaunchTemplateOverrides{
		{InstanceType: aws.String("m5.large"), WeightedCapacity: aws.String("1"), ImageId: aws.String(e.image())},
		{InstanceType: aws.String("m5.xlarge"), WeightedCapacity: aws.String("2"), LaunchTemplateSpecification: spec(other, 1)},
	}
	name := e.group("a", func(in *createGroup) { in.MixedInstancesPolicy = p })
	got := e.describe(name).MixedInstancesPolicy.LaunchTemplate.Overrides
	e.equal("overrides", []any{"1", *p.LaunchTemplate.Overrides[0].ImageId, "2", *other.LaunchTemplateId, *other.LaunchTemplateName, "1"},
		[]any{*got[0].WeightedCapacity, aws.ToString(got[0].ImageId), *got[1].WeightedCapacity, *got[1].LaunchTemplateSpecification.LaunchTemplateId,
			aws.ToString(got[1].LaunchTemplateSpecification.LaunchTemplateName), *got[1].LaunchTemplateSpecification.Version})
}

func spotPools(e *env) {
	t := e.template("lt")
	spread := func(strategy string, pools *int32) *types.MixedInstancesPolicy {
		p := policy(spec(t, 1), "m5.large")
		p.InstancesDistribution = &types.InstancesDistribution{SpotAllocationStrategy: aws.String(strategy), SpotInstancePools: pools}
		return p
	}
	name := e.group("a", func(in *createGroup) { in.MixedInstancesPolicy = spread("lowest-price", aws.Int32(4)) })
	e.equal("pools", int32(4), aws.ToInt32(e.describe(name).MixedInstancesPolicy.InstancesDistribution.SpotInstancePools))
	e.refused(e.update(name, func(in *updateGroup) { in.MixedInstancesPolicy = spread("capacity-optimized", aws.Int32(4)) }), "ValidationError")
	e.must(e.update(name, func(in *updateGroup) { in.MixedInstancesPolicy = spread("capacity-optimized", nil) }))
	e.equal("the strategy", "capacity-optimized", aws.ToString(e.describe(name).MixedInstancesPolicy.InstancesDistribution.SpotAllocationStrategy))
}
