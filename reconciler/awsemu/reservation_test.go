package awsemu_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

func reserve(t *testing.T, e *env, count int32, match types.InstanceMatchCriteria) string {
	t.Helper()
	made := must(e.ec2().CreateCapacityReservation(ctx, &ec2.CreateCapacityReservationInput{
		InstanceType: aws.String("m5.large"), InstancePlatform: types.CapacityReservationInstancePlatformLinuxUnix, AvailabilityZone: aws.String("eu-west-1a"), InstanceCount: aws.Int32(count), InstanceMatchCriteria: match,
	}))(t).CapacityReservation
	if made.State != "active" || made.EndDateType != "unlimited" || aws.ToInt32(made.AvailableInstanceCount) != count || made.Tenancy != "default" {
		t.Errorf("made %+v", made)
	}
	return aws.ToString(made.CapacityReservationId)
}

// reserved are the machines that may still start in a reservation.
func reserved(t *testing.T, e *env, id string) int32 {
	t.Helper()
	found := must(e.ec2().DescribeCapacityReservations(ctx, &ec2.DescribeCapacityReservationsInput{CapacityReservationIds: []string{id}}))(t).CapacityReservations
	if len(found) != 1 {
		t.Fatalf("%+v", found)
	}
	return aws.ToInt32(found[0].AvailableInstanceCount)
}

func TestCapacityReservations(t *testing.T) {
	e := start(t, awsemu.Options{})
	named, open := reserve(t, e, 2, "targeted"), reserve(t, e, 1, "open")
	run := func(c *types.CapacityReservationSpecification) (*types.Instance, error) {
		out, err := e.ec2().RunInstances(ctx, &ec2.RunInstancesInput{
			ImageId: aws.String(e.image("x86_64")), InstanceType: "m5.large", MinCount: aws.Int32(1), MaxCount: aws.Int32(1), Placement: &types.Placement{AvailabilityZone: aws.String("eu-west-1a")}, CapacityReservationSpecification: c,
		})
		if err != nil {
			return nil, err
		}
		return &out.Instances[0], nil
	}
	into := &types.CapacityReservationSpecification{CapacityReservationTarget: &types.CapacityReservationTarget{CapacityReservationId: aws.String(named)}}
	first := must(run(into))(t)
	if aws.ToString(first.CapacityReservationId) != named || reserved(t, e, named) != 1 || reserved(t, e, open) != 1 {
		t.Errorf("it runs in %q", aws.ToString(first.CapacityReservationId))
	}
	must(run(into))(t)
	_, err := run(into)
	wantCode(t, err, "ReservationCapacityExceeded")
	must(e.ec2().TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{aws.ToString(first.InstanceId)}}))(t)
	if got := reserved(t, e, named); got != 1 {
		t.Errorf("once a machine has ended, %d may start", got)
	}
	if m := must(run(&types.CapacityReservationSpecification{CapacityReservationPreference: "none"}))(t); m.CapacityReservationId != nil {
		t.Errorf("it wanted none and runs in %s", *m.CapacityReservationId)
	}
	if m := must(run(nil))(t); aws.ToString(m.CapacityReservationId) != open {
		t.Errorf("it runs in %q and not in the open one", aws.ToString(m.CapacityReservationId))
	}
	if m := must(run(nil))(t); m.CapacityReservationId != nil {
		t.Errorf("the open one is full, and it runs in %s", *m.CapacityReservationId)
	}
	_, err = run(&types.CapacityReservationSpecification{CapacityReservationPreference: "capacity-reservations-only"})
	wantCode(t, err, "ReservationCapacityExceeded")

	must(e.ec2().CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{named}, Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("web")}}}))(t)
	must(e.ec2().CancelCapacityReservation(ctx, &ec2.CancelCapacityReservationInput{CapacityReservationId: aws.String(named)}))(t)
	_, err = run(into)
	wantCode(t, err, "ReservationCapacityExceeded")
	_, err = e.ec2().DescribeCapacityReservations(ctx, &ec2.DescribeCapacityReservationsInput{CapacityReservationIds: []string{"cr-0123456789abcdef0"}})
	wantCode(t, err, "InvalidCapacityReservationId.NotFound")
	ends := e.clock.Now().Add(time.Hour)
	_, err = e.ec2().CreateCapacityReservation(ctx, &ec2.CreateCapacityReservationInput{InstanceType: aws.String("m5.large"), InstancePlatform: "Linux/UNIX", AvailabilityZone: aws.String("eu-west-1a"), InstanceCount: aws.Int32(1), EndDate: &ends})
	wantCode(t, err, "InvalidParameterCombination")
	_, err = e.ec2().CreateCapacityReservation(ctx, &ec2.CreateCapacityReservationInput{InstanceType: aws.String("m5.large"), InstancePlatform: "Linux/UNIX", AvailabilityZone: aws.String("eu-west-9a"), InstanceCount: aws.Int32(1)})
	wantCode(t, err, "InvalidParameterValue")
	must(e.ec2().CreateCapacityReservation(ctx, &ec2.CreateCapacityReservationInput{InstanceType: aws.String("c5.large"), InstancePlatform: "Linux/UNIX", AvailabilityZone: aws.String("eu-west-1b"), InstanceCount: aws.Int32(1), EndDate: &ends, EndDateType: "limited"}))(t)
	states := func(e *env) map[types.CapacityReservationState]int {
		out := map[types.CapacityReservationState]int{}
		for _, c := range must(e.ec2().DescribeCapacityReservations(ctx, &ec2.DescribeCapacityReservationsInput{}))(t).CapacityReservations {
			out[c.State]++
			if aws.ToString(c.CapacityReservationId) == named && len(c.Tags) != 1 {
				t.Errorf("tags: %v", c.Tags)
			}
		}
		return out
	}
	if got := states(e); got["active"] != 2 || got["cancelled"] != 1 {
		t.Errorf("states: %v", got)
	}
	e.clock.Advance(time.Hour)
	var saved bytes.Buffer
	if err := e.srv.Save(&saved); err != nil {
		t.Fatal(err)
	}
	again := start(t, awsemu.Options{Clock: e.clock})
	if err := again.srv.Load(&saved); err != nil {
		t.Fatal(err)
	}
	if got := states(again); got["active"] != 1 || got["expired"] != 1 || got["cancelled"] != 1 {
		t.Errorf("an hour later, after a restart: %v", got)
	}
}

// TestGroupsRunInReservations: a group's preference wins over its launch template's.
func TestGroupsRunInReservations(t *testing.T) {
	e := start(t, awsemu.Options{})
	id := reserve(t, e, 1, "targeted")
	launch := func(name string, c *asgtypes.CapacityReservationSpecification) (running int, failures string) {
		must(e.autoscaling().CreateAutoScalingGroup(ctx, &autoscaling.CreateAutoScalingGroupInput{
			AutoScalingGroupName: aws.String(name), MinSize: aws.Int32(2), MaxSize: aws.Int32(2), AvailabilityZones: []string{"eu-west-1a"}, CapacityReservationSpecification: c,
			LaunchTemplate: &asgtypes.LaunchTemplateSpecification{LaunchTemplateName: aws.String("reserved"), Version: aws.String("1")},
		}))(t)
		e.wait(10 * time.Minute)
		g := must(e.autoscaling().DescribeAutoScalingGroups(ctx, &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{name}}))(t).AutoScalingGroups[0]
		for _, a := range must(e.autoscaling().DescribeScalingActivities(ctx, &autoscaling.DescribeScalingActivitiesInput{AutoScalingGroupName: aws.String(name)}))(t).Activities {
			if a.StatusCode == "Failed" {
				failures = aws.ToString(a.StatusMessage)
			}
		}
		return len(g.Instances), failures
	}
	must(e.ec2().CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String("reserved"), LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: aws.String(e.image("x86_64")), InstanceType: "m5.large"}}))(t)
	target := &asgtypes.CapacityReservationTarget{CapacityReservationIds: []string{id}}
	if n, failures := launch("only", &asgtypes.CapacityReservationSpecification{CapacityReservationPreference: "capacity-reservations-only", CapacityReservationTarget: target}); n != 1 || failures == "" || reserved(t, e, id) != 0 {
		t.Errorf("only: %d run, %q", n, failures)
	}
	if n, failures := launch("first", &asgtypes.CapacityReservationSpecification{CapacityReservationPreference: "capacity-reservations-first", CapacityReservationTarget: target}); n != 2 || failures != "" {
		t.Errorf("first: %d run, %q", n, failures)
	}
}
