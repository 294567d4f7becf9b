package cloudtest

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

func lookupContracts() []contract {
	return []contract{
		{"the caller has an account", nil, callerIdentity},
		{"parameters are read ten at a time, missing ones beside", nil, parameters},
		{"the images of EKS are parameters", []Capability{EKSParameters}, eksParameters},
		{"an image has an architecture and a root device", nil, images},
		{"an image that is not there fails an id and not a filter", []Capability{ImageFilters}, missingImages},
		{"instance types have architectures", nil, instanceTypes},
		{"the default VPC has subnets and a security group", nil, defaultNetwork},
		{"a subnet or group that is not there fails an id and not a filter", nil, missingNetwork},
		{"roles have ARNs", []Capability{DefaultRoles}, roles},
		{"a role that is not there is not found", nil, missingRole},
	}
}

func callerIdentity(e *env) {
	out, err := e.sts.GetCallerIdentity(e.ctx, &sts.GetCallerIdentityInput{})
	e.must(err)
	if len(aws.ToString(out.Account)) != 12 || !strings.HasPrefix(aws.ToString(out.Arn), "arn:aws") {
		e.Errorf("account %q, ARN %q", aws.ToString(out.Account), aws.ToString(out.Arn))
	}
}

func parameters(e *env) {
	const known = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-arm64"
	out, err := e.ssm.GetParameters(e.ctx, &ssm.GetParametersInput{Names: []string{known, "/weir/none"}})
	e.must(err)
	if len(out.Parameters) != 1 || *out.Parameters[0].Name != known || !strings.HasPrefix(*out.Parameters[0].Value, "ami-") {
		e.Errorf("parameters %+v", out.Parameters)
	}
	e.equal("missing", []string{"/weir/none"}, out.InvalidParameters)
	_, err = e.ssm.GetParameter(e.ctx, &ssm.GetParameterInput{Name: aws.String("/weir/none")})
	e.refused(err, "ParameterNotFound")
	var many []string
	for i := range 11 {
		many = append(many, fmt.Sprintf("/weir/%d", i))
	}
	_, err = e.ssm.GetParameters(e.ctx, &ssm.GetParametersInput{Names: many})
	e.refused(err, "ValidationException")
}

func eksParameters(e *env) {
	var names []string
	for _, path := range []string{"amazon-linux-2023/x86_64/standard", "amazon-linux-2023/arm64/standard", "amazon-linux-2023/x86_64/nvidia"} {
		names = append(names, "/aws/service/eks/optimized-ami/1.33/"+path+"/recommended/image_id")
	}
	out, err := e.ssm.GetParameters(e.ctx, &ssm.GetParametersInput{Names: names})
	e.must(err)
	if len(out.InvalidParameters) != 0 {
		e.Errorf("missing %v", out.InvalidParameters)
	}
}

func images(e *env) {
	out, err := e.ec2.DescribeImages(e.ctx, &ec2.DescribeImagesInput{ImageIds: []string{e.image()}})
	e.must(err)
	im := out.Images[0]
	if im.Architecture != types.ArchitectureValuesX8664 || aws.ToString(im.RootDeviceName) == "" || im.State != types.ImageStateAvailable || aws.ToString(im.CreationDate) == "" || aws.ToString(im.OwnerId) == "" {
		e.Errorf("image %+v", im)
	}
	// The same image again, by its owner and its name.
	out, err = e.ec2.DescribeImages(e.ctx, &ec2.DescribeImagesInput{Owners: []string{*im.OwnerId}, Filters: []types.Filter{
		{Name: aws.String("name"), Values: []string{*im.Name}}, {Name: aws.String("architecture"), Values: []string{"x86_64"}}, {Name: aws.String("state"), Values: []string{"available"}},
	}})
	e.must(err)
	found := false
	for _, o := range out.Images {
		found = found || *o.ImageId == *im.ImageId
		e.equal("name", *im.Name, *o.Name)
	}
	if !found {
		e.Errorf("the image %s is not found by its name %s", *im.ImageId, *im.Name)
	}
}

func missingImages(e *env) {
	const none = "ami-00000000000000000"
	_, err := e.ec2.DescribeImages(e.ctx, &ec2.DescribeImagesInput{ImageIds: []string{none}})
	e.refused(err, "InvalidAMIID.NotFound")
	out, err := e.ec2.DescribeImages(e.ctx, &ec2.DescribeImagesInput{Filters: []types.Filter{{Name: aws.String("image-id"), Values: []string{none, e.image()}}}})
	e.must(err)
	e.equal("images", 1, len(out.Images))
}

func instanceTypes(e *env) {
	out, err := e.ec2.DescribeInstanceTypes(e.ctx, &ec2.DescribeInstanceTypesInput{Filters: []types.Filter{{Name: aws.String("instance-type"), Values: []string{"m5.large", "m6g.large", "weir.none"}}}})
	e.must(err)
	got := map[types.InstanceType]types.ArchitectureType{}
	for _, t := range out.InstanceTypes {
		got[t.InstanceType] = t.ProcessorInfo.SupportedArchitectures[0]
	}
	e.equal("architectures", map[types.InstanceType]types.ArchitectureType{"m5.large": "x86_64", "m6g.large": "arm64"}, got)
	_, err = e.ec2.DescribeInstanceTypes(e.ctx, &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"weir.none"}})
	e.refused(err, "InvalidInstanceType")
}

func defaultNetwork(e *env) {
	vpcs, err := e.ec2.DescribeVpcs(e.ctx, &ec2.DescribeVpcsInput{})
	e.must(err)
	var id string
	for _, v := range vpcs.Vpcs {
		if aws.ToBool(v.IsDefault) {
			id = *v.VpcId
		}
	}
	subnets, err := e.ec2.DescribeSubnets(e.ctx, &ec2.DescribeSubnetsInput{Filters: []types.Filter{{Name: aws.String("vpc-id"), Values: []string{id}}}})
	e.must(err)
	zones := map[string]bool{}
	for _, s := range subnets.Subnets {
		zones[aws.ToString(s.AvailabilityZone)] = true
		if !aws.ToBool(s.MapPublicIpOnLaunch) {
			e.Errorf("the default subnet %s is private", *s.SubnetId)
		}
	}
	if len(zones) < 2 {
		e.Errorf("the default VPC %s reaches the zones %v", id, zones)
	}
	groups, err := e.ec2.DescribeSecurityGroups(e.ctx, &ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{
		{Name: aws.String("vpc-id"), Values: []string{id}}, {Name: aws.String("group-name"), Values: []string{"default"}},
	}})
	e.must(err)
	e.equal("security groups named default", 1, len(groups.SecurityGroups))
}

func missingNetwork(e *env) {
	_, err := e.ec2.DescribeSubnets(e.ctx, &ec2.DescribeSubnetsInput{SubnetIds: []string{"subnet-00000000000000000"}})
	e.refused(err, "InvalidSubnetID.NotFound")
	_, err = e.ec2.DescribeSecurityGroups(e.ctx, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{"sg-00000000000000000"}})
	e.refused(err, "InvalidGroup.NotFound")
	out, err := e.ec2.DescribeSubnets(e.ctx, &ec2.DescribeSubnetsInput{Filters: []types.Filter{{Name: aws.String("subnet-id"), Values: append(e.subnets(), "subnet-00000000000000000")}}})
	e.must(err)
	e.equal("subnets", len(e.subnets()), len(out.Subnets))
	tagged, err := e.ec2.DescribeSubnets(e.ctx, &ec2.DescribeSubnetsInput{Filters: []types.Filter{{Name: aws.String("tag-key"), Values: []string{"kubernetes.io/cluster/" + e.mark}}}})
	e.must(err)
	e.equal("subnets with a tag that nobody set", 0, len(tagged.Subnets))
}

func roles(e *env) {
	out, err := e.iam.GetRole(e.ctx, &iam.GetRoleInput{RoleName: aws.String("nodes.cluster-api-provider-aws.sigs.k8s.io")})
	e.must(err)
	if !strings.HasSuffix(*out.Role.Arn, ":role/nodes.cluster-api-provider-aws.sigs.k8s.io") {
		e.Errorf("ARN %s", *out.Role.Arn)
	}
}

func missingRole(e *env) {
	_, err := e.iam.GetRole(e.ctx, &iam.GetRoleInput{RoleName: aws.String(e.name("none"))})
	e.refused(err, "NoSuchEntity", "NoSuchEntityException")
}
