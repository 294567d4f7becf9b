package awsemu_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// TestKeysOfVolumes launches with a KMS key that is there, missing or disabled: EC2 takes the
// launch template and the launch, and ends the machine.
func TestKeysOfVolumes(t *testing.T) {
	e := start(t, awsemu.Options{})
	keys := kms.NewFromConfig(e.cfg)
	good := must(keys.CreateKey(ctx, &kms.CreateKeyInput{}))(t).KeyMetadata.KeyId
	off := must(keys.CreateKey(ctx, &kms.CreateKeyInput{}))(t).KeyMetadata.KeyId
	must(keys.DisableKey(ctx, &kms.DisableKeyInput{KeyId: off}))(t)
	for name, tc := range map[string]struct {
		key  string
		runs bool
	}{
		"good":    {*good, true},
		"off":     {*off, false},
		"missing": {"arn:aws:kms:eu-west-1:000000000000:key/11111111-2222-3333-4444-555555555555", false},
		"foreign": {"arn:aws:kms:eu-west-1:111111111111:key/11111111-2222-3333-4444-555555555555", true},
	} {
		data := e.machine()
		data.BlockDeviceMappings = []ec2types.LaunchTemplateBlockDeviceMappingRequest{{DeviceName: aws.String("/dev/xvda"),
			Ebs: &ec2types.LaunchTemplateEbsBlockDeviceRequest{VolumeSize: aws.Int32(30), Encrypted: aws.Bool(true), KmsKeyId: aws.String(tc.key)}}}
		e.create(&autoscaling.CreateAutoScalingGroupInput{AutoScalingGroupName: aws.String(name), MinSize: aws.Int32(1), MaxSize: aws.Int32(1),
			LaunchTemplate: spec(e.template("t-"+name, data), "1"), VPCZoneIdentifier: e.subnets()})
		e.wait(3 * time.Second)
		runs := false
		for _, in := range e.read(name).Instances {
			runs = runs || in.LifecycleState == asgtypes.LifecycleStateInService
		}
		if runs != tc.runs {
			t.Errorf("%s: in service %v, want %v", name, runs, tc.runs)
		}
		if tc.runs {
			continue
		}
		said := ""
		for _, a := range must(e.autoscaling().DescribeScalingActivities(ctx, &autoscaling.DescribeScalingActivitiesInput{AutoScalingGroupName: aws.String(name)}))(t).Activities {
			said += aws.ToString(a.StatusMessage) + aws.ToString(a.Cause) + aws.ToString(a.Description)
		}
		if !strings.Contains(said, "InvalidKMSKey.InvalidState") {
			t.Errorf("%s: activities say %q", name, said)
		}
	}
}

// TestTypesOfOverrides refuses a policy that names an instance type which does not exist, at
// creation and in a change.
func TestTypesOfOverrides(t *testing.T) {
	e := start(t, awsemu.Options{})
	id := e.template("web", e.machine())
	policy := func(types ...string) *asgtypes.MixedInstancesPolicy {
		m := &asgtypes.MixedInstancesPolicy{LaunchTemplate: &asgtypes.LaunchTemplate{LaunchTemplateSpecification: spec(id, "1")}}
		for _, name := range types {
			m.LaunchTemplate.Overrides = append(m.LaunchTemplate.Overrides, asgtypes.LaunchTemplateOverrides{InstanceType: aws.String(name)})
		}
		return m
	}
	in := &autoscaling.CreateAutoScalingGroupInput{AutoScalingGroupName: aws.String("web"), MinSize: aws.Int32(0), MaxSize: aws.Int32(1), VPCZoneIdentifier: e.subnets(),
		MixedInstancesPolicy: policy("m5.large", "m5.lrge")}
	_, err := e.autoscaling().CreateAutoScalingGroup(ctx, in)
	wantError(t, err, "ValidationError", "m5.lrge")
	in.MixedInstancesPolicy = policy("m5.large")
	e.create(in)
	_, err = e.autoscaling().UpdateAutoScalingGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String("web"), MixedInstancesPolicy: policy("m5.lrge", "m5.large")})
	wantError(t, err, "ValidationError", "m5.lrge")
}
