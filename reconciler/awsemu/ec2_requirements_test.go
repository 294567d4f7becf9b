package awsemu_test

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

func TestInstanceTypesFromRequirements(t *testing.T) {
	e := start(t, awsemu.Options{})
	ask := func(in ec2.GetInstanceTypesFromInstanceRequirementsInput) (*ec2.GetInstanceTypesFromInstanceRequirementsOutput, error) {
		in.VirtualizationTypes = []types.VirtualizationType{"hvm"}
		if in.InstanceRequirements == nil {
			in.InstanceRequirements = &types.InstanceRequirementsRequest{
				VCpuCount: &types.VCpuCountRangeRequest{Min: aws.Int32(2), Max: aws.Int32(2)}, MemoryMiB: &types.MemoryMiBRequest{Min: aws.Int32(8192), Max: aws.Int32(8192)},
			}
		}
		return e.ec2().GetInstanceTypesFromInstanceRequirements(ctx, &in)
	}
	names := func(out *ec2.GetInstanceTypesFromInstanceRequirementsOutput) (all []string) {
		for _, i := range out.InstanceTypes {
			all = append(all, aws.ToString(i.InstanceType))
		}
		return all
	}
	intel := names(must(ask(ec2.GetInstanceTypesFromInstanceRequirementsInput{ArchitectureTypes: []types.ArchitectureType{"x86_64"}}))(t))
	if !slices.Contains(intel, "m5.large") || slices.Contains(intel, "m5.xlarge") || slices.Contains(intel, "m7g.large") || slices.Contains(intel, "t3.large") {
		t.Errorf("x86_64: %v", intel)
	}
	arm := names(must(ask(ec2.GetInstanceTypesFromInstanceRequirementsInput{ArchitectureTypes: []types.ArchitectureType{"arm64"}}))(t))
	if !slices.Contains(arm, "m7g.large") || slices.Contains(arm, "m5.large") {
		t.Errorf("arm64: %v", arm)
	}
	in := ec2.GetInstanceTypesFromInstanceRequirementsInput{ArchitectureTypes: []types.ArchitectureType{"x86_64", "arm64"}, MaxResults: aws.Int32(1)}
	var paged []string
	for range len(intel) + len(arm) + 1 {
		out := must(ask(in))(t)
		paged = append(paged, names(out)...)
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			break
		}
	}
	if want := slices.Sorted(slices.Values(append(slices.Clone(intel), arm...))); !slices.Equal(paged, want) {
		t.Errorf("in pages %v, want %v", paged, want)
	}
	_, err := ask(ec2.GetInstanceTypesFromInstanceRequirementsInput{ArchitectureTypes: []types.ArchitectureType{"x86_64"}, InstanceRequirements: &types.InstanceRequirementsRequest{
		VCpuCount: &types.VCpuCountRangeRequest{Min: aws.Int32(8), Max: aws.Int32(2)}, MemoryMiB: &types.MemoryMiBRequest{Min: aws.Int32(1)},
	}})
	wantCode(t, err, "InvalidParameterValue")
}

func TestConsoleOutput(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.group("web", 1)
	id := aws.ToString(e.read("web").Instances[0].InstanceId)
	out := must(e.ec2().GetConsoleOutput(ctx, &ec2.GetConsoleOutputInput{InstanceId: aws.String(id)}))(t)
	text, err := base64.StdEncoding.DecodeString(aws.ToString(out.Output))
	if err != nil || !strings.Contains(string(text), "login:") || aws.ToString(out.InstanceId) != id || out.Timestamp == nil {
		t.Errorf("%q, %v, %+v", text, err, out)
	}
	_, err = e.ec2().GetConsoleOutput(ctx, &ec2.GetConsoleOutputInput{InstanceId: aws.String("i-0123456789abcdefa")})
	wantCode(t, err, "InvalidInstanceID.NotFound")
}

// TestNodegroupsHaveTheHooksOfEKS: EKS answers them itself, so nodes come and go without
// anybody who completes them.
func TestNodegroupsHaveTheHooksOfEKS(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.createNodegroup(e.nodegroupInput("hooked"))
	ng := e.untilNodegroup("hooked", "ACTIVE")
	group := ng.Resources.AutoScalingGroups[0].Name
	hooks := must(e.autoscaling().DescribeLifecycleHooks(ctx, &autoscaling.DescribeLifecycleHooksInput{AutoScalingGroupName: group}))(t).LifecycleHooks
	got := map[string]string{}
	for _, h := range hooks {
		got[aws.ToString(h.LifecycleHookName)] = aws.ToString(h.LifecycleTransition)
		if aws.ToInt32(h.HeartbeatTimeout) != 1800 || aws.ToString(h.DefaultResult) != "CONTINUE" {
			t.Errorf("%+v", h)
		}
	}
	if got["Launch-LC-Hook"] != "autoscaling:EC2_INSTANCE_LAUNCHING" || got["Terminate-LC-Hook"] != "autoscaling:EC2_INSTANCE_TERMINATING" || len(got) != 2 {
		t.Errorf("hooks %v", got)
	}
	id := e.read(*group).Instances[0].InstanceId
	must(e.autoscaling().TerminateInstanceInAutoScalingGroup(ctx, &autoscaling.TerminateInstanceInAutoScalingGroupInput{InstanceId: id, ShouldDecrementDesiredCapacity: aws.Bool(false)}))(t)
	e.advance(time.Minute)
	for _, i := range e.read(*group).Instances {
		if i.LifecycleState != "InService" || *i.InstanceId == *id {
			t.Errorf("%s is %s", *i.InstanceId, i.LifecycleState)
		}
	}
}
