package awsemu_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"golang.org/x/crypto/ssh"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// runSeed has what a launch can be refused for.
const runSeed = `{
	"vpcs": [{"id": "vpc-0123456789abcdef0", "cidr": "10.0.0.0/16"}],
	"subnets": [{"id": "subnet-0123456789abcdef0", "vpc": "vpc-0123456789abcdef0", "zone": "eu-west-1a", "cidr": "10.0.0.0/28"},
	            {"id": "subnet-0123456789abcdef1", "vpc": "vpc-0123456789abcdef0", "zone": "eu-west-1b", "cidr": "10.0.1.0/28"}],
	"securityGroups": [{"id": "sg-0123456789abcdef0", "name": "nodes", "vpc": "vpc-0123456789abcdef0"}],
	"keyPairs": ["admin"], "instanceProfiles": ["nodes"], "quotas": {"vcpus-standard": 16, "vcpus-standard-spot": 4},
	"placementGroups": [{"name": "close"}], "notOffered": {"m5.xlarge": ["eu-west-1b"]}}`

const (
	tinySubnet  = "subnet-0123456789abcdef0"
	otherSubnet = "subnet-0123456789abcdef1"
)

// defaultVPC is the id of the default VPC.
func (e *env) defaultVPC() string {
	e.t.Helper()
	return aws.ToString(must(e.ec2().DescribeVpcs(ctx, &ec2.DescribeVpcsInput{Filters: []types.Filter{{Name: aws.String("is-default"), Values: []string{"true"}}}}))(e.t).Vpcs[0].VpcId)
}

func (e *env) defaultGroup() string {
	e.t.Helper()
	return aws.ToString(must(e.ec2().DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{{Name: aws.String("vpc-id"), Values: []string{e.defaultVPC()}}}}))(e.t).SecurityGroups[0].GroupId)
}

// free is how many addresses a subnet has left.
func (e *env) free(subnet string) int32 {
	e.t.Helper()
	return aws.ToInt32(must(e.ec2().DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{SubnetIds: []string{subnet}}))(e.t).Subnets[0].AvailableIpAddressCount)
}

// launch is a request that works.
func (e *env) launch() *ec2.RunInstancesInput {
	return &ec2.RunInstancesInput{
		ImageId: aws.String(e.image("x86_64")), InstanceType: "m5.large", MinCount: aws.Int32(1), MaxCount: aws.Int32(1), SubnetId: aws.String(tinySubnet),
		SecurityGroupIds: []string{"sg-0123456789abcdef0"}, KeyName: aws.String("admin"), IamInstanceProfile: &types.IamInstanceProfileSpecification{Name: aws.String("nodes")},
	}
}

// TestRunInstancesRefused lists the reasons to refuse a launch, in a dry run and in earnest. A dry run does not look at quotas.
func TestRunInstancesRefused(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.seed(runSeed)
	with := e.template("web", e.machine())
	requirements := e.template("any", &types.RequestLaunchTemplateData{ImageId: aws.String(e.image("x86_64")), InstanceRequirements: &types.InstanceRequirementsRequest{
		VCpuCount: &types.VCpuCountRangeRequest{Min: aws.Int32(1)}, MemoryMiB: &types.MemoryMiBRequest{Min: aws.Int32(1)}}})
	template := func(id, version string) *types.LaunchTemplateSpecification {
		return &types.LaunchTemplateSpecification{LaunchTemplateId: aws.String(id), Version: aws.String(version)}
	}
	const dry = "DryRunOperation"
	for name, tc := range map[string]struct {
		change      func(*ec2.RunInstancesInput)
		dry, launch string // codes
	}{
		"fine": {func(*ec2.RunInstancesInput) {}, dry, ""},
		"fine, of a template": {func(in *ec2.RunInstancesInput) {
			*in = ec2.RunInstancesInput{MinCount: aws.Int32(1), MaxCount: aws.Int32(1), LaunchTemplate: template(with, "$Latest")}
		}, dry, ""},
		"no image":             {func(in *ec2.RunInstancesInput) { in.ImageId = nil }, "MissingParameter", "MissingParameter"},
		"unknown image":        {func(in *ec2.RunInstancesInput) { in.ImageId = aws.String("ami-0123456789abcdef0") }, "InvalidAMIID.NotFound", "InvalidAMIID.NotFound"},
		"malformed image":      {func(in *ec2.RunInstancesInput) { in.ImageId = aws.String("ours") }, "InvalidAMIID.Malformed", "InvalidAMIID.Malformed"},
		"other architecture":   {func(in *ec2.RunInstancesInput) { in.InstanceType = "m7g.large" }, "InvalidParameterValue", "InvalidParameterValue"},
		"unknown type":         {func(in *ec2.RunInstancesInput) { in.InstanceType = "m5.tiny" }, "InvalidParameterValue", "InvalidParameterValue"},
		"unknown subnet":       {func(in *ec2.RunInstancesInput) { in.SubnetId = aws.String("subnet-0123456789abcdefa") }, "InvalidSubnetID.NotFound", "InvalidSubnetID.NotFound"},
		"malformed subnet":     {func(in *ec2.RunInstancesInput) { in.SubnetId = aws.String("here") }, "InvalidSubnetID.Malformed", "InvalidSubnetID.Malformed"},
		"unknown key":          {func(in *ec2.RunInstancesInput) { in.KeyName = aws.String("nobody") }, "InvalidKeyPair.NotFound", "InvalidKeyPair.NotFound"},
		"unknown group":        {func(in *ec2.RunInstancesInput) { in.SecurityGroupIds = []string{"sg-0123456789abcdefa"} }, "InvalidGroup.NotFound", "InvalidGroup.NotFound"},
		"group of another VPC": {func(in *ec2.RunInstancesInput) { in.SecurityGroupIds = []string{e.defaultGroup()} }, "InvalidParameter", "InvalidParameter"},
		"group by name":        {func(in *ec2.RunInstancesInput) { in.SecurityGroupIds, in.SecurityGroups = nil, []string{"nodes"} }, "InvalidParameterCombination", "InvalidParameterCombination"},
		"unknown profile":      {func(in *ec2.RunInstancesInput) { in.IamInstanceProfile.Name = aws.String("nobody") }, "InvalidParameterValue", "InvalidParameterValue"},
		"not offered":          {func(in *ec2.RunInstancesInput) { in.InstanceType, in.SubnetId = "m5.xlarge", aws.String(otherSubnet) }, "Unsupported", "Unsupported"},
		"unknown placement":    {func(in *ec2.RunInstancesInput) { in.Placement = &types.Placement{GroupName: aws.String("far")} }, "InvalidPlacementGroup.Unknown", "InvalidPlacementGroup.Unknown"},
		"burstable together": {func(in *ec2.RunInstancesInput) {
			in.InstanceType, in.Placement = "t3.large", &types.Placement{GroupName: aws.String("close")}
		}, "InvalidParameterCombination", "InvalidParameterCombination"},
		"small root volume": {func(in *ec2.RunInstancesInput) {
			in.BlockDeviceMappings = []types.BlockDeviceMapping{{DeviceName: aws.String("/dev/xvda"), Ebs: &types.EbsBlockDevice{VolumeSize: aws.Int32(4)}}}
		}, "InvalidBlockDeviceMapping", "InvalidBlockDeviceMapping"},
		"unknown zone": {func(in *ec2.RunInstancesInput) {
			in.SubnetId, in.Placement = nil, &types.Placement{AvailabilityZone: aws.String("eu-west-1z")}
		}, "InvalidParameterValue", "InvalidParameterValue"},
		"user data":         {func(in *ec2.RunInstancesInput) { in.UserData = aws.String("!") }, "InvalidUserData.Malformed", "InvalidUserData.Malformed"},
		"unknown template":  {func(in *ec2.RunInstancesInput) { in.LaunchTemplate = template("lt-0123456789abcdef0", "1") }, "InvalidLaunchTemplateId.NotFound", "InvalidLaunchTemplateId.NotFound"},
		"unknown version":   {func(in *ec2.RunInstancesInput) { in.LaunchTemplate = template(with, "9") }, "InvalidLaunchTemplateId.VersionNotFound", "InvalidLaunchTemplateId.VersionNotFound"},
		"requirements":      {func(in *ec2.RunInstancesInput) { in.LaunchTemplate, in.InstanceType = template(requirements, "1"), "" }, "InvalidParameterCombination", "InvalidParameterCombination"},
		"none":              {func(in *ec2.RunInstancesInput) { in.MinCount = aws.Int32(0) }, "InvalidParameterValue", "InvalidParameterValue"},
		"less than some":    {func(in *ec2.RunInstancesInput) { in.MinCount = aws.Int32(2) }, "InvalidParameterValue", "InvalidParameterValue"},
		"not here":          {func(in *ec2.RunInstancesInput) { in.Ipv6AddressCount = aws.Int32(1) }, "UnknownParameter", "UnknownParameter"},
		"no free addresses": {func(in *ec2.RunInstancesInput) { in.MinCount, in.MaxCount = aws.Int32(12), aws.Int32(12) }, dry, "InsufficientFreeAddressesInSubnet"},
		"vCPUs":             {func(in *ec2.RunInstancesInput) { in.InstanceType = "m5.8xlarge" }, dry, "VcpuLimitExceeded"},
		"vCPUs, many":       {func(in *ec2.RunInstancesInput) { in.MinCount, in.MaxCount = aws.Int32(9), aws.Int32(9) }, dry, "VcpuLimitExceeded"},
		"vCPUs, Spot": {func(in *ec2.RunInstancesInput) {
			in.InstanceType, in.InstanceMarketOptions = "m5.2xlarge", &types.InstanceMarketOptionsRequest{MarketType: "spot"}
		}, dry, "MaxSpotInstanceCountExceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			in := e.launch()
			tc.change(in)
			before := e.free(tinySubnet)
			in.DryRun = aws.Bool(true)
			_, err := e.ec2().RunInstances(ctx, in)
			wantCode(t, err, tc.dry)
			if e.free(tinySubnet) != before {
				t.Error("a dry run took an address")
			}
			in.DryRun = nil
			out, err := e.ec2().RunInstances(ctx, in)
			wantCode(t, err, tc.launch)
			if err != nil {
				if e.free(tinySubnet) != before {
					t.Error("a refused launch took an address")
				}
				return
			}
			must(e.ec2().TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{aws.ToString(out.Instances[0].InstanceId)}}))(t)
			e.wait(2 * time.Second)
		})
	}
	unauthorized := e.srv.Faults().Add(awsemu.Fault{Operation: "RunInstances", Kind: awsemu.FailBefore, Code: "UnauthorizedOperation"})
	defer unauthorized()
	in := e.launch()
	in.DryRun = aws.Bool(true)
	_, err := e.ec2().RunInstances(ctx, in)
	wantCode(t, err, "UnauthorizedOperation")
}

// TestRunInstances: machines of a template under a request, as many as there is room for;
// the subnet's addresses and the quota's vCPUs go and come back with them.
func TestRunInstances(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.seed(runSeed)
	data := e.machine()
	data.TagSpecifications = []types.LaunchTemplateTagSpecificationRequest{{ResourceType: "instance", Tags: []types.Tag{{Key: aws.String("a"), Value: aws.String("template")}}}}
	id := e.template("web", data)
	in := e.launch()
	in.ImageId, in.InstanceType, in.LaunchTemplate = nil, "", &types.LaunchTemplateSpecification{LaunchTemplateId: aws.String(id)}
	in.Placement = &types.Placement{GroupName: aws.String("close")}
	in.MinCount, in.MaxCount, in.ClientToken = aws.Int32(2), aws.Int32(20), aws.String("once")
	before := e.free(tinySubnet)
	out := must(e.ec2().RunInstances(ctx, in))(t)
	if len(out.Instances) != 8 || e.free(tinySubnet) != before-8 { // 16 vCPUs of two each
		t.Fatalf("%d instances, %d addresses of %d", len(out.Instances), e.free(tinySubnet), before)
	}
	last := out.Instances[7]
	if last.State.Name != "pending" || aws.ToInt32(last.AmiLaunchIndex) != 7 || aws.ToString(last.Placement.GroupName) != "close" || last.InstanceType != "m5.large" || aws.ToString(last.KeyName) != "admin" {
		t.Errorf("%+v", last)
	}
	tags := map[string]string{}
	for _, tag := range last.Tags {
		tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	if tags["a"] != "template" || tags["aws:ec2launchtemplate:version"] != "1" {
		t.Errorf("tags %v", tags)
	}
	if again := must(e.ec2().RunInstances(ctx, in))(t); aws.ToString(again.ReservationId) != aws.ToString(out.ReservationId) || e.free(tinySubnet) != before-8 {
		t.Error("the same client token launched again")
	}
	_, err := e.ec2().RunInstances(ctx, e.launch())
	wantCode(t, err, "VcpuLimitExceeded")
	_, err = e.ec2().DeletePlacementGroup(ctx, &ec2.DeletePlacementGroupInput{GroupName: aws.String("close")})
	wantCode(t, err, "InvalidPlacementGroup.InUse")
	var ids []string
	for _, one := range out.Instances {
		ids = append(ids, aws.ToString(one.InstanceId))
	}
	must(e.ec2().TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids}))(t)
	e.wait(2 * time.Second)
	if e.free(tinySubnet) != before {
		t.Errorf("%d addresses after the end, %d before", e.free(tinySubnet), before)
	}
	must(e.ec2().RunInstances(ctx, e.launch()))(t)
	must(e.ec2().DeletePlacementGroup(ctx, &ec2.DeletePlacementGroupInput{GroupName: aws.String("close")}))(t)
}

// TestGroupLaunchesWithinQuotas: Auto Scaling's machines are held to the same.
func TestGroupLaunchesWithinQuotas(t *testing.T) {
	for name, tc := range map[string]struct{ seed, placement, want string }{
		"vCPUs":     {`{"quotas": {"vcpus-standard": 3}}`, "", "current vCPU limit of 3"},
		"zone":      {`{"notOffered": {"m5.large": ["eu-west-1a", "eu-west-1b", "eu-west-1c"]}}`, "", "not supported"},
		"placement": {`{}`, "far", "The Placement Group 'far' is unknown."},
	} {
		t.Run(name, func(t *testing.T) {
			e := start(t, awsemu.Options{})
			e.seed(tc.seed)
			in := &autoscaling.CreateAutoScalingGroupInput{AutoScalingGroupName: aws.String("web"), MinSize: aws.Int32(2), MaxSize: aws.Int32(2), VPCZoneIdentifier: e.subnets(), LaunchTemplate: spec(e.template("web", e.machine()), "1")}
			if tc.placement != "" {
				in.PlacementGroup = aws.String(tc.placement)
			}
			e.create(in)
			e.wait(2 * time.Second)
			var failed []string
			for _, a := range must(e.autoscaling().DescribeScalingActivities(ctx, &autoscaling.DescribeScalingActivitiesInput{AutoScalingGroupName: aws.String("web")}))(t).Activities {
				if a.StatusCode == "Failed" {
					failed = append(failed, aws.ToString(a.StatusMessage))
				}
			}
			if len(failed) == 0 || !strings.Contains(failed[0], tc.want) {
				t.Errorf("failed activities %q, want %q", failed, tc.want)
			}
		})
	}
}

func TestPlacementGroups(t *testing.T) {
	e := start(t, awsemu.Options{})
	create := func(name string, strategy types.PlacementStrategy, partitions *int32) (*ec2.CreatePlacementGroupOutput, error) {
		return e.ec2().CreatePlacementGroup(ctx, &ec2.CreatePlacementGroupInput{GroupName: aws.String(name), Strategy: strategy, PartitionCount: partitions,
			TagSpecifications: []types.TagSpecification{{ResourceType: "placement-group", Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String(name)}}}}})
	}
	made := must(create("parts", "partition", aws.Int32(3)))(t).PlacementGroup
	if made.State != "available" || aws.ToInt32(made.PartitionCount) != 3 || !strings.HasSuffix(aws.ToString(made.GroupArn), ":placement-group/parts") {
		t.Errorf("%+v", made)
	}
	must(create("apart", "spread", nil))(t)
	_, err := create("apart", "spread", nil)
	wantCode(t, err, "InvalidPlacementGroup.Duplicate")
	_, err = create("x", "partition", aws.Int32(8))
	wantCode(t, err, "InvalidParameterValue")
	_, err = create("x", "cluster", aws.Int32(2))
	wantCode(t, err, "InvalidParameterCombination")
	found := must(e.ec2().DescribePlacementGroups(ctx, &ec2.DescribePlacementGroupsInput{Filters: []types.Filter{{Name: aws.String("strategy"), Values: []string{"spread"}}}}))(t).PlacementGroups
	if len(found) != 1 || aws.ToString(found[0].GroupName) != "apart" || found[0].SpreadLevel != "rack" {
		t.Errorf("%+v", found)
	}
	must(e.ec2().CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{aws.ToString(made.GroupId)}, Tags: []types.Tag{{Key: aws.String("more"), Value: aws.String("1")}}}))(t)
	found = must(e.ec2().DescribePlacementGroups(ctx, &ec2.DescribePlacementGroupsInput{GroupNames: []string{"parts"}}))(t).PlacementGroups
	if len(found) != 1 || len(found[0].Tags) != 2 {
		t.Errorf("%+v", found)
	}
	must(e.ec2().DeletePlacementGroup(ctx, &ec2.DeletePlacementGroupInput{GroupName: aws.String("apart")}))(t)
	_, err = e.ec2().DeletePlacementGroup(ctx, &ec2.DeletePlacementGroupInput{GroupName: aws.String("apart")})
	wantCode(t, err, "InvalidPlacementGroup.Unknown")
	_, err = e.ec2().DescribePlacementGroups(ctx, &ec2.DescribePlacementGroupsInput{GroupNames: []string{"parts", "apart"}})
	wantCode(t, err, "InvalidPlacementGroup.Unknown")
	var saved bytes.Buffer
	if err := e.srv.Save(&saved); err != nil {
		t.Fatal(err)
	}
	again := start(t, awsemu.Options{Clock: e.clock})
	if err := again.srv.Load(&saved); err != nil {
		t.Fatal(err)
	}
	if kept := must(again.ec2().DescribePlacementGroups(ctx, &ec2.DescribePlacementGroupsInput{}))(t).PlacementGroups; len(kept) != 1 || fmt.Sprint(kept[0].Strategy) != "partition" {
		t.Errorf("after a restart %+v", kept)
	}
}

// TestCreateKeyPair: the private half is one that SSH takes, and fits the public one.
func TestCreateKeyPair(t *testing.T) {
	e := start(t, awsemu.Options{})
	for _, kind := range []types.KeyType{"rsa", "ed25519"} {
		out := must(e.ec2().CreateKeyPair(ctx, &ec2.CreateKeyPairInput{KeyName: aws.String(string(kind)), KeyType: kind}))(t)
		signer, err := ssh.ParsePrivateKey([]byte(aws.ToString(out.KeyMaterial)))
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if kind == "ed25519" && "SHA256:"+strings.TrimRight(aws.ToString(out.KeyFingerprint), "=") != ssh.FingerprintSHA256(signer.PublicKey()) {
			t.Errorf("fingerprint %s of %s", aws.ToString(out.KeyFingerprint), ssh.FingerprintSHA256(signer.PublicKey()))
		}
		if kind == "rsa" && len(aws.ToString(out.KeyFingerprint)) != 59 {
			t.Errorf("fingerprint %s", aws.ToString(out.KeyFingerprint))
		}
	}
	_, err := e.ec2().CreateKeyPair(ctx, &ec2.CreateKeyPairInput{KeyName: aws.String("rsa")})
	wantCode(t, err, "InvalidKeyPair.Duplicate")
}
