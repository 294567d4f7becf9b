package awsemu_test

import (
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

func ec2Filter(name string, values ...string) types.Filter {
	return types.Filter{Name: &name, Values: values}
}

func TestSeededNetwork(t *testing.T) {
	for region, zoneID := range map[string]string{"eu-west-1": "euw1-az1", "us-east-1": "use1-az1", "ap-northeast-2": "apne2-az1", "us-gov-west-1": "usgw1-az1"} {
		e := start(t, awsemu.Options{}).in(region)
		vpcs := must(e.ec2().DescribeVpcs(ctx, &ec2.DescribeVpcsInput{}))(t).Vpcs
		if len(vpcs) != 1 || !*vpcs[0].IsDefault || *vpcs[0].CidrBlock != "172.31.0.0/16" {
			t.Fatalf("%s: vpcs = %v, want exactly the default one", region, vpcs)
		}
		var zones []string
		for _, s := range must(e.ec2().DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: []types.Filter{ec2Filter("default-for-az", "true"), ec2Filter("map-public-ip-on-launch", "true")}}))(t).Subnets {
			if *s.VpcId != *vpcs[0].VpcId || *s.AvailableIpAddressCount != 4091 {
				t.Errorf("%s: subnet %s is in %s with %d addresses", region, *s.SubnetId, *s.VpcId, *s.AvailableIpAddressCount)
			}
			zones = append(zones, *s.AvailabilityZone)
		}
		sort.Strings(zones)
		if diff := cmp.Diff([]string{region + "a", region + "b", region + "c"}, zones); diff != "" {
			t.Errorf("%s: zones of the subnets (-want +got):\n%s", region, diff)
		}
		groups := must(e.ec2().DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{ec2Filter("group-name", "default")}}))(t).SecurityGroups
		if len(groups) != 1 || *groups[0].VpcId != *vpcs[0].VpcId {
			t.Errorf("%s: default groups = %v", region, groups)
		}
		az := must(e.ec2().DescribeAvailabilityZones(ctx, &ec2.DescribeAvailabilityZonesInput{ZoneNames: []string{region + "a"}}))(t).AvailabilityZones
		if len(az) != 1 || *az[0].ZoneId != zoneID || az[0].State != types.AvailabilityZoneStateAvailable {
			t.Errorf("%s: zone a = %v, want id %s", region, az, zoneID)
		}
	}
}

func TestShapeNetwork(t *testing.T) {
	e := start(t, awsemu.Options{})
	vpc := must(e.ec2().CreateVpc(ctx, &ec2.CreateVpcInput{CidrBlock: aws.String("10.1.0.0/16")}))(t).Vpc
	subnet := func(cidr, zone string) (*ec2.CreateSubnetOutput, error) {
		return e.ec2().CreateSubnet(ctx, &ec2.CreateSubnetInput{
			VpcId: vpc.VpcId, CidrBlock: &cidr, AvailabilityZone: &zone,
			TagSpecifications: []types.TagSpecification{{ResourceType: "subnet", Tags: []types.Tag{{Key: aws.String("kubernetes.io/cluster/c"), Value: aws.String("owned")}}}},
		})
	}
	made := must(subnet("10.1.0.0/24", "eu-west-1b"))(t).Subnet
	_, err := subnet("10.1.0.128/25", "eu-west-1b")
	wantCode(t, err, "InvalidSubnet.Conflict")
	_, err = subnet("10.2.0.0/24", "eu-west-1b")
	wantCode(t, err, "InvalidSubnet.Range")
	_, err = subnet("10.1.1.0/24", "eu-west-2a")
	wantCode(t, err, "InvalidParameterValue")
	found := must(e.ec2().DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: []types.Filter{ec2Filter("tag-key", "kubernetes.io/cluster/*")}}))(t).Subnets
	if len(found) != 1 || *found[0].SubnetId != *made.SubnetId || *found[0].AvailableIpAddressCount != 251 {
		t.Errorf("subnets by tag = %v, want %s with 251 addresses", found, *made.SubnetId)
	}
	group := must(e.ec2().CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{GroupName: aws.String("nodes"), Description: aws.String("d"), VpcId: vpc.VpcId}))(t)
	_, err = e.ec2().CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{GroupName: aws.String("nodes"), Description: aws.String("d"), VpcId: vpc.VpcId})
	wantCode(t, err, "InvalidGroup.Duplicate")
	must(e.ec2().DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{*group.GroupId}}))(t)
	_, err = e.ec2().DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{"sg-0123456789abcdef0"}})
	wantCode(t, err, "InvalidGroup.NotFound")
	_, err = e.ec2().DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{SubnetIds: []string{*made.SubnetId, "subnet-0123456789abcdef0"}})
	wantCode(t, err, "InvalidSubnetID.NotFound")
}

// TestPublicParametersNameImages reads the parameters that pools of machines look
// up and wants each to name an available image of its architecture.
func TestPublicParametersNameImages(t *testing.T) {
	e := start(t, awsemu.Options{})
	var names []string
	for minor := 29; minor <= 34; minor++ {
		for _, arch := range []string{"x86_64", "arm64"} {
			names = append(names,
				fmt.Sprintf("/aws/service/eks/optimized-ami/1.%d/amazon-linux-2023/%s/standard/recommended/image_id", minor, arch),
				fmt.Sprintf("/aws/service/bottlerocket/aws-k8s-1.%d/%s/latest/image_id", minor, arch))
		}
		names = append(names,
			fmt.Sprintf("/aws/service/eks/optimized-ami/1.%d/amazon-linux-2023/x86_64/nvidia/recommended/image_id", minor),
			fmt.Sprintf("/aws/service/eks/optimized-ami/1.%d/amazon-linux-2023/x86_64/neuron/recommended/image_id", minor))
	}
	for minor := 29; minor <= 32; minor++ {
		for _, kind := range []string{"amazon-linux-2", "amazon-linux-2-arm64", "amazon-linux-2-gpu"} {
			names = append(names, fmt.Sprintf("/aws/service/eks/optimized-ami/1.%d/%s/recommended/image_id", minor, kind))
		}
	}
	names = append(names, "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64", "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-arm64")
	for len(names) > 0 {
		batch := names[:min(10, len(names))]
		names = names[len(batch):]
		out := must(e.ssm().GetParameters(ctx, &ssm.GetParametersInput{Names: batch}))(t)
		if len(out.InvalidParameters) > 0 {
			t.Errorf("parameters that are not there: %v", out.InvalidParameters)
		}
		for _, p := range out.Parameters {
			im := must(e.ec2().DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{*p.Value}}))(t).Images[0]
			if strings.Contains(*p.Name, "arm64") != (im.Architecture == types.ArchitectureValuesArm64) || im.State != types.ImageStateAvailable {
				t.Errorf("%s names %s, %s, %s", *p.Name, *im.Name, im.Architecture, im.State)
			}
			if root := im.BlockDeviceMappings[0]; *root.DeviceName != *im.RootDeviceName || aws.ToString(root.Ebs.SnapshotId) == "" || *root.Ebs.VolumeSize == 0 {
				t.Errorf("%s has the root device %s and the first volume %s", *im.Name, *im.RootDeviceName, *root.DeviceName)
			}
		}
	}
}

func TestParameters(t *testing.T) {
	e := start(t, awsemu.Options{})
	get := func(name string) error {
		_, err := e.ssm().GetParameter(ctx, &ssm.GetParameterInput{Name: &name})
		return err
	}
	wantCode(t, get("/aws/service/eks/optimized-ami/1.33/amazon-linux-2/recommended/image_id"), "ParameterNotFound")
	wantCode(t, get("/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/arm64/standard/recommended/image_id:1"), "")
	wantCode(t, get("/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/arm64/standard/recommended/image_id:7"), "ParameterVersionNotFound")
	_, err := e.ssm().GetParameters(ctx, &ssm.GetParametersInput{Names: strings.Split("a b c d e f g h i j k", " ")})
	wantCode(t, err, "ValidationException")
	out := must(e.ssm().GetParameters(ctx, &ssm.GetParametersInput{Names: []string{"absent"}}))(t)
	if diff := cmp.Diff([]string{"absent"}, out.InvalidParameters); diff != "" {
		t.Errorf("invalid parameters (-want +got):\n%s", diff)
	}
	count := 0
	pages := ssm.NewGetParametersByPathPaginator(e.ssm(), &ssm.GetParametersByPathInput{Path: aws.String("/aws/service/eks/optimized-ami/1.34"), Recursive: aws.Bool(true)})
	for pages.HasMorePages() {
		page := must(pages.NextPage(ctx))(t)
		if len(page.Parameters) > 10 {
			t.Errorf("a page of %d parameters", len(page.Parameters))
		}
		count += len(page.Parameters)
	}
	if want := 5 * 4; count != want { // five variants of AL2023, four parameters each
		t.Errorf("parameters below the path = %d, want %d", count, want)
	}
}

func TestClusterAPIImages(t *testing.T) {
	e := start(t, awsemu.Options{})
	for _, os := range []string{"ubuntu-24.04", "flatcar-stable"} {
		for _, arch := range []string{"x86_64", "arm64"} {
			images := must(e.ec2().DescribeImages(ctx, &ec2.DescribeImagesInput{Filters: []types.Filter{
				ec2Filter("owner-id", "819546954734"), ec2Filter("name", "capa-ami-"+os+"-?1.33.5-*"),
				ec2Filter("architecture", arch), ec2Filter("state", "available"), ec2Filter("virtualization-type", "hvm"),
			}}))(t).Images
			if len(images) != 2 || *images[0].CreationDate == *images[1].CreationDate {
				t.Errorf("%s on %s: images = %v, want two of different age", os, arch, images)
			}
		}
	}
	mine := must(e.ec2().DescribeImages(ctx, &ec2.DescribeImagesInput{Owners: []string{"self"}}))(t).Images
	if len(mine) != 0 {
		t.Errorf("the account owns %d images, want none", len(mine))
	}
	paged := 0
	pages := ec2.NewDescribeImagesPaginator(e.ec2(), &ec2.DescribeImagesInput{Owners: []string{"819546954734"}, MaxResults: aws.Int32(50)})
	for pages.HasMorePages() {
		paged += len(must(pages.NextPage(ctx))(t).Images)
	}
	if whole := len(must(e.ec2().DescribeImages(ctx, &ec2.DescribeImagesInput{Owners: []string{"819546954734"}}))(t).Images); whole != paged || whole < 100 {
		t.Errorf("images in pages = %d, at once = %d", paged, whole)
	}
	_, err := e.ec2().DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{"ami-0123456789abcdef0"}})
	wantCode(t, err, "InvalidAMIID.NotFound")
	_, err = e.ec2().DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{"ami-x"}})
	wantCode(t, err, "InvalidAMIID.Malformed")
}

func TestInstanceTypes(t *testing.T) {
	e := start(t, awsemu.Options{})
	out := must(e.ec2().DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"m5.large", "m7g.2xlarge", "t4g.small", "c5n.large"}}))(t)
	got := map[string]string{}
	for _, it := range out.InstanceTypes {
		got[string(it.InstanceType)] = fmt.Sprint(it.ProcessorInfo.SupportedArchitectures, *it.VCpuInfo.DefaultVCpus, " ", *it.MemoryInfo.SizeInMiB)
	}
	want := map[string]string{"m5.large": "[x86_64] 2 8192", "m7g.2xlarge": "[arm64] 8 32768", "t4g.small": "[arm64] 2 2048", "c5n.large": "[x86_64] 2 5376"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("instance types (-want +got):\n%s", diff)
	}
	_, err := e.ec2().DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"m5.large", "m5.tiny"}})
	wantCode(t, err, "InvalidInstanceType")
	_, err = e.ec2().DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{MaxResults: aws.Int32(101)})
	wantCode(t, err, "InvalidParameterValue")
	offered := must(e.ec2().DescribeInstanceTypeOfferings(ctx, &ec2.DescribeInstanceTypeOfferingsInput{
		LocationType: types.LocationTypeAvailabilityZone, Filters: []types.Filter{ec2Filter("instance-type", "m5.large")},
	}))(t)
	if len(offered.InstanceTypeOfferings) != 3 {
		t.Errorf("m5.large is offered in %d zones, want 3", len(offered.InstanceTypeOfferings))
	}
}
