package awsemu_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// missingImage is the id of an image that no account has.
const missingImage = "ami-00000000000000000"

// image is a seeded image of an architecture.
func (e *env) image(arch string) string {
	e.t.Helper()
	out := must(e.ssm().GetParameter(ctx, &ssm.GetParameterInput{
		Name: aws.String("/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-" + arch),
	}))(e.t)
	return aws.ToString(out.Parameter.Value)
}

// template makes a launch template and returns its id.
func (e *env) template(name string, data *ec2types.RequestLaunchTemplateData) string {
	e.t.Helper()
	out := must(e.ec2().CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String(name), LaunchTemplateData: data,
	}))(e.t)
	return aws.ToString(out.LaunchTemplate.LaunchTemplateId)
}

// version adds a version to a launch template.
func (e *env) version(id string, data *ec2types.RequestLaunchTemplateData) {
	e.t.Helper()
	must(e.ec2().CreateLaunchTemplateVersion(ctx, &ec2.CreateLaunchTemplateVersionInput{
		LaunchTemplateId: aws.String(id), LaunchTemplateData: data,
	}))(e.t)
}

func (e *env) machine() *ec2types.RequestLaunchTemplateData {
	return &ec2types.RequestLaunchTemplateData{ImageId: aws.String(e.image("x86_64")), InstanceType: "m5.large"}
}

// subnets are the default subnets, as VPCZoneIdentifier.
func (e *env) subnets() *string {
	e.t.Helper()
	out := must(e.ec2().DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{}))(e.t)
	var ids []string
	for _, s := range out.Subnets {
		ids = append(ids, aws.ToString(s.SubnetId))
	}
	return aws.String(strings.Join(ids, ","))
}

func spec(id, version string) *asgtypes.LaunchTemplateSpecification {
	return &asgtypes.LaunchTemplateSpecification{LaunchTemplateId: aws.String(id), Version: aws.String(version)}
}

// group makes a group of desired members from version 1 of a new template and
// waits until they are in service.
func (e *env) group(name string, desired int32) (templateID string) {
	e.t.Helper()
	templateID = e.template(name, e.machine())
	e.create(&autoscaling.CreateAutoScalingGroupInput{
		AutoScalingGroupName: aws.String(name), MinSize: aws.Int32(0), MaxSize: aws.Int32(20), DesiredCapacity: aws.Int32(desired),
		LaunchTemplate: spec(templateID, "1"), VPCZoneIdentifier: e.subnets(),
	})
	e.wait(2 * time.Second)
	return templateID
}

func (e *env) create(in *autoscaling.CreateAutoScalingGroupInput) {
	e.t.Helper()
	if _, err := e.autoscaling().CreateAutoScalingGroup(ctx, in); err != nil {
		e.t.Fatal(err)
	}
}

// wait moves the clock and lets the emulator catch up.
func (e *env) wait(d time.Duration) {
	e.t.Helper()
	e.clock.Advance(d)
	must(e.autoscaling().DescribeAccountLimits(ctx, &autoscaling.DescribeAccountLimitsInput{}))(e.t)
}

// read describes a group, nil where there is none.
func (e *env) read(name string) *asgtypes.AutoScalingGroup {
	e.t.Helper()
	out := must(e.autoscaling().DescribeAutoScalingGroups(ctx,
		&autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{name}}))(e.t)
	if len(out.AutoScalingGroups) == 0 {
		return nil
	}
	return &out.AutoScalingGroups[0]
}

// states counts members by "lifecycle state/version".
func states(g *asgtypes.AutoScalingGroup) map[string]int {
	out := map[string]int{}
	for _, in := range g.Instances {
		out[string(in.LifecycleState)+"/"+aws.ToString(in.LaunchTemplate.Version)]++
	}
	return out
}

func wantStates(t testing.TB, g *asgtypes.AutoScalingGroup, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, states(g)); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
}

// wantError checks code and text of a fault.
func wantError(t testing.TB, err error, code, text string) {
	t.Helper()
	var api smithy.APIError
	if !errors.As(err, &api) {
		t.Fatalf("error = %v, want %s", err, code)
	}
	if api.ErrorCode() != code || !strings.Contains(api.ErrorMessage(), text) {
		t.Errorf("error = %s: %s, want %s with %q", api.ErrorCode(), api.ErrorMessage(), code, text)
	}
}

func TestGroupLaunchesItsMembers(t *testing.T) {
	e := start(t, awsemu.Options{})
	id := e.template("web", e.machine())
	e.create(&autoscaling.CreateAutoScalingGroupInput{
		AutoScalingGroupName: aws.String("web"), MinSize: aws.Int32(1), MaxSize: aws.Int32(6), DesiredCapacity: aws.Int32(3),
		LaunchTemplate: spec(id, "1"), VPCZoneIdentifier: e.subnets(),
		Tags: []asgtypes.Tag{
			{Key: aws.String("team"), Value: aws.String("a"), PropagateAtLaunch: aws.Bool(true)},
			{Key: aws.String("own"), Value: aws.String("b"), PropagateAtLaunch: aws.Bool(false)},
		},
	})
	wantStates(t, e.read("web"), map[string]int{"Pending/1": 3})
	e.wait(time.Second)
	g := e.read("web")
	wantStates(t, g, map[string]int{"InService/1": 3})
	zones := map[string]int{}
	for _, in := range g.Instances {
		zones[aws.ToString(in.AvailabilityZone)]++
	}
	if diff := cmp.Diff(map[string]int{"eu-west-1a": 1, "eu-west-1b": 1, "eu-west-1c": 1}, zones); diff != "" {
		t.Errorf("zones (-want +got):\n%s", diff)
	}
	out := must(e.ec2().DescribeInstances(ctx, &ec2.DescribeInstancesInput{
		Filters: []ec2types.Filter{{Name: aws.String("tag:aws:autoscaling:groupName"), Values: []string{"web"}}, {Name: aws.String("tag:team"), Values: []string{"a"}}},
	}))(t)
	if len(out.Reservations) != 3 {
		t.Errorf("tagged instances = %d, want 3", len(out.Reservations))
	}
	activities := must(e.autoscaling().DescribeScalingActivities(ctx,
		&autoscaling.DescribeScalingActivitiesInput{AutoScalingGroupName: aws.String("web")}))(t)
	if len(activities.Activities) != 3 || activities.Activities[0].StatusCode != asgtypes.ScalingActivityStatusCodeSuccessful ||
		!strings.Contains(aws.ToString(activities.Activities[0].Cause), "increasing the capacity from 2 to 3") {
		t.Errorf("activities = %+v", activities.Activities)
	}
}

func TestGroupReadsBackWhatWasSent(t *testing.T) {
	e := start(t, awsemu.Options{})
	id := e.template("web", e.machine())
	target := "arn:aws:elasticloadbalancing:eu-west-1:000000000000:targetgroup/a/1"
	e.create(&autoscaling.CreateAutoScalingGroupInput{
		AutoScalingGroupName: aws.String("web"), MinSize: aws.Int32(0), MaxSize: aws.Int32(4),
		MixedInstancesPolicy: &asgtypes.MixedInstancesPolicy{
			LaunchTemplate: &asgtypes.LaunchTemplate{
				LaunchTemplateSpecification: spec(id, "$Latest"),
				Overrides: []asgtypes.LaunchTemplateOverrides{{InstanceRequirements: &asgtypes.InstanceRequirements{
					VCpuCount: &asgtypes.VCpuCountRequest{Min: aws.Int32(2), Max: aws.Int32(4)}, MemoryMiB: &asgtypes.MemoryMiBRequest{Min: aws.Int32(4096)},
					AllowedInstanceTypes: []string{"m5.*"},
				}}},
			},
			InstancesDistribution: &asgtypes.InstancesDistribution{OnDemandPercentageAboveBaseCapacity: aws.Int32(50)},
		},
		VPCZoneIdentifier: e.subnets(), TargetGroupARNs: []string{target}, HealthCheckType: aws.String("EC2,ELB"), HealthCheckGracePeriod: aws.Int32(30),
		CapacityRebalance: aws.Bool(true), DefaultInstanceWarmup: aws.Int32(0), MaxInstanceLifetime: aws.Int32(86400), PlacementGroup: aws.String("pg"),
		TerminationPolicies:              []string{"OldestInstance", "Default"},
		InstanceMaintenancePolicy:        &asgtypes.InstanceMaintenancePolicy{MinHealthyPercentage: aws.Int32(90), MaxHealthyPercentage: aws.Int32(120)},
		AvailabilityZoneDistribution:     &asgtypes.AvailabilityZoneDistribution{CapacityDistributionStrategy: "balanced-only"},
		CapacityReservationSpecification: &asgtypes.CapacityReservationSpecification{CapacityReservationPreference: "none"},
		NewInstancesProtectedFromScaleIn: aws.Bool(true),
		DeletionProtection:               asgtypes.DeletionProtectionPreventForceDeletion,
		LifecycleHookSpecificationList:   []asgtypes.LifecycleHookSpecification{{LifecycleHookName: aws.String("h"), LifecycleTransition: aws.String("autoscaling:EC2_INSTANCE_LAUNCHING")}},
		AvailabilityZoneImpairmentPolicy: &asgtypes.AvailabilityZoneImpairmentPolicy{ZonalShiftEnabled: aws.Bool(true), ImpairedZoneHealthCheckBehavior: "IgnoreUnhealthy"},
		DesiredCapacityType:              aws.String("vcpu"),
		InstanceLifecyclePolicy:          &asgtypes.InstanceLifecyclePolicy{RetentionTriggers: &asgtypes.RetentionTriggers{TerminateHookAbandon: "retain"}},
		SkipZonalShiftValidation:         aws.Bool(true),
		Context:                          aws.String("ctx"),
	})
	g := e.read("web")
	d := g.MixedInstancesPolicy.InstancesDistribution
	req := g.MixedInstancesPolicy.LaunchTemplate.Overrides[0].InstanceRequirements
	got := fmt.Sprintln(aws.ToInt32(d.OnDemandBaseCapacity), aws.ToInt32(d.OnDemandPercentageAboveBaseCapacity), aws.ToString(d.OnDemandAllocationStrategy),
		aws.ToString(d.SpotAllocationStrategy), aws.ToInt32(d.SpotInstancePools), aws.ToInt32(req.VCpuCount.Max), req.AllowedInstanceTypes,
		g.TargetGroupARNs, aws.ToString(g.TrafficSources[0].Type), aws.ToString(g.HealthCheckType), aws.ToInt32(g.HealthCheckGracePeriod),
		aws.ToBool(g.CapacityRebalance), aws.ToInt32(g.DefaultInstanceWarmup), aws.ToInt32(g.MaxInstanceLifetime), aws.ToString(g.PlacementGroup),
		g.TerminationPolicies, aws.ToInt32(g.InstanceMaintenancePolicy.MaxHealthyPercentage), g.AvailabilityZoneDistribution.CapacityDistributionStrategy,
		g.CapacityReservationSpecification.CapacityReservationPreference, aws.ToBool(g.NewInstancesProtectedFromScaleIn), g.DeletionProtection,
		aws.ToBool(g.AvailabilityZoneImpairmentPolicy.ZonalShiftEnabled), aws.ToString(g.DesiredCapacityType), aws.ToString(g.Context),
		g.InstanceLifecyclePolicy.RetentionTriggers.TerminateHookAbandon, aws.ToInt32(g.DefaultCooldown), aws.ToString(g.VPCZoneIdentifier) == aws.ToString(e.subnets()))
	want := "0 50 lowest-price lowest-price 2 4 [m5.*] [" + target + "] elbv2 EC2,ELB 30 true 0 86400 pg [OldestInstance Default] 120 balanced-only none true prevent-force-deletion true vcpu ctx retain 300 true"
	if got != want+"\n" {
		t.Errorf("read back\n%s\nwant\n%s", got, want)
	}
	_, err := e.autoscaling().DeleteAutoScalingGroup(ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: aws.String("web"), ForceDelete: aws.Bool(true)})
	wantError(t, err, "ValidationError", "deletion protection")
}

// An instance says its image only where an override chose it.
func TestInstancesSayAnOverridesImage(t *testing.T) {
	e := start(t, awsemu.Options{})
	id := e.template("web", e.machine())
	image := e.image("x86_64")
	create := func(name string, o asgtypes.LaunchTemplateOverrides) *string {
		e.create(&autoscaling.CreateAutoScalingGroupInput{AutoScalingGroupName: aws.String(name), MinSize: aws.Int32(1), MaxSize: aws.Int32(1), VPCZoneIdentifier: e.subnets(),
			MixedInstancesPolicy: &asgtypes.MixedInstancesPolicy{LaunchTemplate: &asgtypes.LaunchTemplate{LaunchTemplateSpecification: spec(id, "1"), Overrides: []asgtypes.LaunchTemplateOverrides{o}}}})
		return e.read(name).Instances[0].ImageId
	}
	if got := create("plain", asgtypes.LaunchTemplateOverrides{InstanceType: aws.String("m5.large")}); got != nil {
		t.Errorf("without an image in the override: %s", *got)
	}
	if got := create("own", asgtypes.LaunchTemplateOverrides{InstanceType: aws.String("m5.large"), ImageId: &image}); aws.ToString(got) != image {
		t.Errorf("with one: %v", got)
	}
}

func TestCreateGroupRefuses(t *testing.T) {
	e := start(t, awsemu.Options{Quotas: map[string]int{"auto-scaling-groups": 1, "overrides": 1}})
	id := e.template("web", e.machine())
	broken := e.template("broken", &ec2types.RequestLaunchTemplateData{ImageId: aws.String(missingImage), InstanceType: "m5.large"})
	mixed := func(o ...asgtypes.LaunchTemplateOverrides) *asgtypes.MixedInstancesPolicy {
		return &asgtypes.MixedInstancesPolicy{LaunchTemplate: &asgtypes.LaunchTemplate{LaunchTemplateSpecification: spec(id, "1"), Overrides: o}}
	}
	for name, tc := range map[string]struct {
		change     func(*autoscaling.CreateAutoScalingGroupInput)
		code, text string
	}{
		"bounds":      {func(in *autoscaling.CreateAutoScalingGroupInput) { in.MinSize = aws.Int32(9) }, "ValidationError", "Max bound, 4, must be greater than or equal to min bound, 9"},
		"desired":     {func(in *autoscaling.CreateAutoScalingGroupInput) { in.DesiredCapacity = aws.Int32(9) }, "ValidationError", "must be between the specified min size:1 and max size:4"},
		"no source":   {func(in *autoscaling.CreateAutoScalingGroupInput) { in.LaunchTemplate = nil }, "ValidationError", "Valid requests must contain either LaunchTemplate"},
		"two sources": {func(in *autoscaling.CreateAutoScalingGroupInput) { in.MixedInstancesPolicy = mixed() }, "ValidationError", "Valid requests must contain either LaunchTemplate"},
		"subnet": {func(in *autoscaling.CreateAutoScalingGroupInput) {
			in.VPCZoneIdentifier = aws.String("subnet-00000000")
		}, "ValidationError", "does not exist"},
		"no place": {func(in *autoscaling.CreateAutoScalingGroupInput) { in.VPCZoneIdentifier = nil }, "ValidationError", "At least one Availability Zone or VPC Subnet is required"},
		"template": {func(in *autoscaling.CreateAutoScalingGroupInput) {
			in.LaunchTemplate = spec("lt-00000000000000000", "1")
		}, "ValidationError", "does not exist"},
		"version":       {func(in *autoscaling.CreateAutoScalingGroupInput) { in.LaunchTemplate = spec(id, "7") }, "ValidationError", "Could not find the specified version 7"},
		"image":         {func(in *autoscaling.CreateAutoScalingGroupInput) { in.LaunchTemplate = spec(broken, "1") }, "ValidationError", "You must use a valid fully-formed launch template. The image id"},
		"health check":  {func(in *autoscaling.CreateAutoScalingGroupInput) { in.HealthCheckType = aws.String("ECS") }, "ValidationError", "health check type"},
		"policy":        {func(in *autoscaling.CreateAutoScalingGroupInput) { in.TerminationPolicies = []string{"Any"} }, "ValidationError", "Termination policy Any"},
		"lifetime":      {func(in *autoscaling.CreateAutoScalingGroupInput) { in.MaxInstanceLifetime = aws.Int32(60) }, "ValidationError", "MaxInstanceLifetime"},
		"load balancer": {func(in *autoscaling.CreateAutoScalingGroupInput) { in.LoadBalancerNames = []string{"l b"} }, "ValidationError", "Provided Load Balancers"},
		"launch config": {func(in *autoscaling.CreateAutoScalingGroupInput) {
			in.LaunchTemplate, in.LaunchConfigurationName = nil, aws.String("lc")
		}, "ValidationError", "Launch configuration name not found"},
		"aws tag": {func(in *autoscaling.CreateAutoScalingGroupInput) {
			in.Tags = []asgtypes.Tag{{Key: aws.String("aws:x")}}
		}, "ValidationError", "reserved"},
		"capacity type": {func(in *autoscaling.CreateAutoScalingGroupInput) { in.DesiredCapacityType = aws.String("vcpu") }, "ValidationError", "attribute-based"},
		"maintenance": {func(in *autoscaling.CreateAutoScalingGroupInput) {
			in.InstanceMaintenancePolicy = &asgtypes.InstanceMaintenancePolicy{MinHealthyPercentage: aws.Int32(10), MaxHealthyPercentage: aws.Int32(150)}
		}, "ValidationError", "difference"},
		"overrides quota": {func(in *autoscaling.CreateAutoScalingGroupInput) {
			in.LaunchTemplate = nil
			in.MixedInstancesPolicy = mixed(asgtypes.LaunchTemplateOverrides{InstanceType: aws.String("m5.large")}, asgtypes.LaunchTemplateOverrides{InstanceType: aws.String("m5.xlarge")})
		}, "ValidationError", "must not exceed 1"},
		"weight": {func(in *autoscaling.CreateAutoScalingGroupInput) {
			in.LaunchTemplate = nil
			in.MixedInstancesPolicy = mixed(asgtypes.LaunchTemplateOverrides{InstanceType: aws.String("m5.large"), WeightedCapacity: aws.String("1000")})
		}, "ValidationError", "1 to 999"},
		"template twice": {func(in *autoscaling.CreateAutoScalingGroupInput) {
			in.LaunchTemplate.LaunchTemplateName = aws.String("web")
		}, "ValidationError", "either launchTemplateId or LaunchTemplateName"},
		"override's template twice": {func(in *autoscaling.CreateAutoScalingGroupInput) {
			own := spec(id, "1")
			own.LaunchTemplateName = aws.String("web")
			in.LaunchTemplate, in.MixedInstancesPolicy = nil, mixed(asgtypes.LaunchTemplateOverrides{InstanceType: aws.String("m5.large"), LaunchTemplateSpecification: own})
		}, "ValidationError", "either launchTemplateId or LaunchTemplateName"},
	} {
		t.Run(name, func(t *testing.T) {
			in := &autoscaling.CreateAutoScalingGroupInput{AutoScalingGroupName: aws.String("web"), MinSize: aws.Int32(1), MaxSize: aws.Int32(4), LaunchTemplate: spec(id, "1"), VPCZoneIdentifier: e.subnets()}
			tc.change(in)
			_, err := e.autoscaling().CreateAutoScalingGroup(ctx, in)
			wantError(t, err, tc.code, tc.text)
		})
	}
	if e.read("web") != nil {
		t.Fatal("a refused group exists")
	}
	in := &autoscaling.CreateAutoScalingGroupInput{AutoScalingGroupName: aws.String("web"), MinSize: aws.Int32(0), MaxSize: aws.Int32(4), LaunchTemplate: spec(id, "1"), VPCZoneIdentifier: e.subnets()}
	e.create(in)
	_, err := e.autoscaling().CreateAutoScalingGroup(ctx, in)
	wantError(t, err, "AlreadyExists", "already exists")
	in.AutoScalingGroupName = aws.String("other")
	_, err = e.autoscaling().CreateAutoScalingGroup(ctx, in)
	wantError(t, err, "LimitExceeded", "limit")
}
