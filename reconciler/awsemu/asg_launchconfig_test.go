package awsemu_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

func (e *env) launchConfig(name string, change func(*autoscaling.CreateLaunchConfigurationInput)) error {
	in := &autoscaling.CreateLaunchConfigurationInput{LaunchConfigurationName: &name, ImageId: aws.String(e.image("x86_64")), InstanceType: aws.String("m5.large")}
	if change != nil {
		change(in)
	}
	_, err := e.autoscaling().CreateLaunchConfiguration(ctx, in)
	return err
}

func (e *env) launchConfigs(names ...string) []asgtypes.LaunchConfiguration {
	e.t.Helper()
	return must(e.autoscaling().DescribeLaunchConfigurations(ctx, &autoscaling.DescribeLaunchConfigurationsInput{LaunchConfigurationNames: names}))(e.t).LaunchConfigurations
}

// byConfig counts a group's members by state and launch configuration.
func (e *env) byConfig(group string) map[string]int {
	e.t.Helper()
	out := map[string]int{}
	for _, in := range e.read(group).Instances {
		out[fmt.Sprint(in.LifecycleState, " ", aws.ToString(in.LaunchConfigurationName))]++
	}
	return out
}

// A launch configuration is described as it was created, with AWS's defaults.
func TestLaunchConfigurations(t *testing.T) {
	e := start(t, awsemu.Options{})
	group := must(e.ec2().DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{}))(t).SecurityGroups[0].GroupId
	mapping := asgtypes.BlockDeviceMapping{DeviceName: aws.String("/dev/xvda"), Ebs: &asgtypes.Ebs{VolumeSize: aws.Int32(20), VolumeType: aws.String("gp3"), Encrypted: aws.Bool(true)}}
	if err := e.launchConfig("a", func(in *autoscaling.CreateLaunchConfigurationInput) {
		in.SecurityGroups, in.UserData, in.SpotPrice, in.AssociatePublicIpAddress = []string{*group}, aws.String("aGk="), aws.String("0.05"), aws.Bool(true)
		in.BlockDeviceMappings = []asgtypes.BlockDeviceMapping{mapping}
		in.MetadataOptions = &asgtypes.InstanceMetadataOptions{HttpTokens: "required", HttpPutResponseHopLimit: aws.Int32(2)}
	}); err != nil {
		t.Fatal(err)
	}
	e.saveAndLoad()
	got := e.launchConfigs("a", "none")[0]
	want := asgtypes.LaunchConfiguration{
		LaunchConfigurationName: aws.String("a"), LaunchConfigurationARN: got.LaunchConfigurationARN, CreatedTime: aws.Time(epoch), ImageId: aws.String(e.image("x86_64")), InstanceType: aws.String("m5.large"),
		SecurityGroups: []string{*group}, UserData: aws.String("aGk="), SpotPrice: aws.String("0.05"), AssociatePublicIpAddress: aws.Bool(true), BlockDeviceMappings: []asgtypes.BlockDeviceMapping{mapping},
		MetadataOptions: &asgtypes.InstanceMetadataOptions{HttpTokens: "required", HttpPutResponseHopLimit: aws.Int32(2)}, EbsOptimized: aws.Bool(false), InstanceMonitoring: &asgtypes.InstanceMonitoring{Enabled: aws.Bool(true)},
		KeyName: aws.String(""), KernelId: aws.String(""), RamdiskId: aws.String(""),
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateApproxTime(0), cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	type in = autoscaling.CreateLaunchConfigurationInput
	for _, tc := range []struct {
		name       string
		change     func(*in)
		code, text string
	}{
		{"a", nil, "AlreadyExists", "Launch Configuration by this name already exists - A launch configuration already exists with the name a"},
		{"b", func(in *in) { in.ImageId = nil }, "ValidationError", "Valid requests must contain"},
		{"b", func(in *in) { in.ImageId = aws.String(missingImage) }, "ValidationError", "The image id '[" + missingImage + "]' does not exist"},
		{"b", func(in *in) { in.InstanceType = aws.String("m5.tiny") }, "ValidationError", "Invalid instance type"},
		{"b", func(in *in) { in.KeyName = aws.String("none") }, "ValidationError", "The key pair 'none' does not exist"},
		{"b", func(in *in) { in.SecurityGroups = []string{"sg-0"} }, "ValidationError", "The security group 'sg-0' does not exist"},
		{"b", func(in *in) { in.InstanceId = aws.String("i-0") }, "ValidationError", "i-0"},
		{"b", func(in *in) { in.PlacementTenancy = aws.String("host") }, "ValidationError", "PlacementTenancy"},
	} {
		wantError(t, e.launchConfig(tc.name, tc.change), tc.code, tc.text)
	}
	_, err := e.autoscaling().DeleteLaunchConfiguration(ctx, &autoscaling.DeleteLaunchConfigurationInput{LaunchConfigurationName: aws.String("b")})
	wantError(t, err, "ValidationError", "Launch configuration name not found - Launch configuration b not found")
}

// A group of a launch configuration launches, replaces and refreshes its instances, and
// goes over to another one or to a launch template.
func TestAGroupOfALaunchConfiguration(t *testing.T) {
	e := start(t, awsemu.Options{})
	for _, name := range []string{"a", "b"} {
		if err := e.launchConfig(name, nil); err != nil {
			t.Fatal(err)
		}
	}
	web := aws.String("web")
	in := &autoscaling.CreateAutoScalingGroupInput{AutoScalingGroupName: web, MinSize: aws.Int32(0), MaxSize: aws.Int32(9), DesiredCapacity: aws.Int32(2), VPCZoneIdentifier: e.subnets(), LaunchConfigurationName: aws.String("none")}
	_, err := e.autoscaling().CreateAutoScalingGroup(ctx, in)
	wantError(t, err, "ValidationError", "Launch configuration name not found - A launch configuration with the name: none does not exist")
	in.LaunchConfigurationName = aws.String("a")
	e.create(in)
	e.wait(2 * time.Second)
	check := func(what string, want map[string]int) {
		t.Helper()
		if diff := cmp.Diff(want, e.byConfig("web")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	check("made", map[string]int{"InService a": 2})
	_, err = e.autoscaling().DeleteLaunchConfiguration(ctx, &autoscaling.DeleteLaunchConfigurationInput{LaunchConfigurationName: aws.String("a")})
	wantError(t, err, "ResourceInUse", "Cannot delete launch configuration a because it is attached to AutoScalingGroup web")
	limits := must(e.autoscaling().DescribeAccountLimits(ctx, &autoscaling.DescribeAccountLimitsInput{}))(t)
	if *limits.NumberOfLaunchConfigurations != 2 || *limits.MaxNumberOfLaunchConfigurations != 200 {
		t.Errorf("limits: %d of %d", *limits.NumberOfLaunchConfigurations, *limits.MaxNumberOfLaunchConfigurations)
	}
	update := func(change func(*autoscaling.UpdateAutoScalingGroupInput)) {
		in := &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: web}
		change(in)
		must(e.autoscaling().UpdateAutoScalingGroup(ctx, in))(t)
		e.wait(3 * time.Second)
	}
	update(func(in *autoscaling.UpdateAutoScalingGroupInput) {
		in.LaunchConfigurationName, in.DesiredCapacity, in.TerminationPolicies = aws.String("b"), aws.Int32(3), []string{"OldestLaunchConfiguration", "NewestInstance"}
	})
	e.saveAndLoad()
	check("another one", map[string]int{"InService a": 2, "InService b": 1})
	update(func(in *autoscaling.UpdateAutoScalingGroupInput) { in.DesiredCapacity = aws.Int32(2) })
	check("scaled in", map[string]int{"InService a": 1, "InService b": 1})
	must(e.autoscaling().StartInstanceRefresh(ctx, &autoscaling.StartInstanceRefreshInput{AutoScalingGroupName: web, Preferences: &asgtypes.RefreshPreferences{SkipMatching: aws.Bool(true), MinHealthyPercentage: aws.Int32(0)}}))(t)
	e.wait(time.Minute)
	check("refreshed", map[string]int{"InService b": 2})
	must(e.autoscaling().DeleteLaunchConfiguration(ctx, &autoscaling.DeleteLaunchConfigurationInput{LaunchConfigurationName: aws.String("a")}))(t)
	id := e.template("web", e.machine())
	update(func(in *autoscaling.UpdateAutoScalingGroupInput) {
		in.LaunchTemplate, in.DesiredCapacity = spec(id, "1"), aws.Int32(3)
	})
	check("a launch template", map[string]int{"InService b": 2, "InService ": 1})
	if g := e.read("web"); g.LaunchConfigurationName != nil || g.LaunchTemplate == nil {
		t.Errorf("the group launches %v, %v", g.LaunchConfigurationName, g.LaunchTemplate)
	}
}

// A group can be made like an instance that runs: of a launch configuration of its name.
func TestAGroupLikeAnInstance(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.group("web", 1)
	id := e.members("web")[0]
	e.create(&autoscaling.CreateAutoScalingGroupInput{AutoScalingGroupName: aws.String("like"), MinSize: aws.Int32(1), MaxSize: aws.Int32(1), VPCZoneIdentifier: e.subnets(), InstanceId: &id})
	e.wait(2 * time.Second)
	if diff := cmp.Diff(map[string]int{"InService like": 1}, e.byConfig("like")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c := e.launchConfigs("like"); len(c) != 1 || *c[0].ImageId != e.image("x86_64") || *c[0].InstanceType != "m5.large" {
		t.Errorf("launch configurations: %+v", c)
	}
}
