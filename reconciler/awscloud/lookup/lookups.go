// Package lookup answers lookups for package resolve: images, networks, instance types, clusters, roles,
// launch templates of other owners. It also stores join tokens in parameters, for package jointoken. A
// missing resource is an answer and no error, so the requests have a form for which AWS does not fail if a
// name is missing.
package lookup

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/weir-gitops/weir/reconciler/awscloud/read"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/resolve"
	"github.com/weir-gitops/weir/render/intent"
)

var _ resolve.Cloud = (*Lookups)(nil)

// Lookups reads one account and region.
type Lookups struct {
	reader *read.Reader
	ec2    EC2Calls
	eks    EKSCalls
	iam    IAMCalls
	ssm    SSMCalls
}

// New returns Lookups.
func New(r *read.Reader, ec2 EC2Calls, eks EKSCalls, iam IAMCalls, ssm SSMCalls) *Lookups {
	return &Lookups{r, ec2, eks, iam, ssm}
}

// The batch and page sizes of the lookups.
const (
	parametersBatch    = 10  // GetParameters: names
	imagesBatch        = 200 // values of one EC2 filter
	instanceTypesBatch = 100 // DescribeInstanceTypes: MaxResults
	// Assumed of AWS: pages-of-a-thousand.
	lookupPage = 1000
)

// Parameters reads SSM parameters by name. It leaves out missing ones.
func (l *Lookups) Parameters(ctx context.Context, names []string) (map[string]string, error) {
	found := make(map[string]string, len(names))
	for batch := range slices.Chunk(names, parametersBatch) {
		out, err := l.ssm.GetParameters(ctx, &ssm.GetParametersInput{Names: batch})
		if err != nil {
			return nil, sdk.Classify("ssm", "GetParameters", err)
		}
		for _, p := range out.Parameters {
			// The selector is ":" and a version or label of the parameter.
			found[aws.ToString(p.Name)+aws.ToString(p.Selector)] = aws.ToString(p.Value)
		}
	}
	return found, nil
}

// Images reads AMIs by id, or by owner and name pattern. It uses ids as a filter: a filter ignores a missing
// id, while a list of ids would make the call fail.
func (l *Lookups) Images(ctx context.Context, q resolve.ImageQuery) ([]resolve.Image, error) {
	if len(q.IDs) == 0 {
		return l.imagePages(ctx, &ec2.DescribeImagesInput{
			Owners: []string{q.Owner},
			Filters: []types.Filter{
				filter("name", q.Name), filter("architecture", q.Architecture), filter("state", "available"), filter("virtualization-type", "hvm"),
			},
			MaxResults: aws.Int32(lookupPage),
		})
	}
	var out []resolve.Image
	for batch := range slices.Chunk(q.IDs, imagesBatch) {
		// A deprecated image can still be launched.
		page, err := l.imagePages(ctx, &ec2.DescribeImagesInput{
			Filters: []types.Filter{filter("image-id", batch...)}, IncludeDeprecated: aws.Bool(true), MaxResults: aws.Int32(lookupPage),
		})
		if err != nil {
			return nil, err
		}
		out = append(out, page...)
	}
	return out, nil
}

// imagePages returns the images of all pages of a request.
func (l *Lookups) imagePages(ctx context.Context, in *ec2.DescribeImagesInput) ([]resolve.Image, error) {
	var images []resolve.Image
	err := sdk.EachPage(ctx, "ec2", "DescribeImages", func(ctx context.Context, token *string) (*string, error) {
		in.NextToken = token
		out, err := l.ec2.DescribeImages(ctx, in)
		if err != nil {
			return nil, err
		}
		for i := range out.Images {
			images = append(images, image(&out.Images[i]))
		}
		return out.NextToken, nil
	})
	return images, err
}

// image converts an image of EC2, with the size and snapshot of its root volume.
func image(im *types.Image) resolve.Image {
	out := resolve.Image{
		Image: observed.Image{
			ID: aws.ToString(im.ImageId), Name: aws.ToString(im.Name), Architecture: string(im.Architecture), RootDevice: aws.ToString(im.RootDeviceName),
			CreatedAt: aws.ToString(im.CreationDate),
		},
		Owner: aws.ToString(im.OwnerId), DeprecatedAt: aws.ToString(im.DeprecationTime), State: string(im.State),
	}
	for _, m := range im.BlockDeviceMappings {
		if aws.ToString(m.DeviceName) == out.RootDevice && m.Ebs != nil {
			out.RootSize, out.RootSnapshot = aws.ToInt32(m.Ebs.VolumeSize), aws.ToString(m.Ebs.SnapshotId)
		}
	}
	return out
}

// Architectures reads the architectures of instance types. It leaves out unknown types.
func (l *Lookups) Architectures(ctx context.Context, instanceTypes []string) (map[string][]string, error) {
	found := map[string][]string{}
	for batch := range slices.Chunk(instanceTypes, instanceTypesBatch) {
		in := &ec2.DescribeInstanceTypesInput{Filters: []types.Filter{filter("instance-type", batch...)}, MaxResults: aws.Int32(instanceTypesBatch)}
		err := sdk.EachPage(ctx, "ec2", "DescribeInstanceTypes", func(ctx context.Context, token *string) (*string, error) {
			in.NextToken = token
			out, err := l.ec2.DescribeInstanceTypes(ctx, in)
			if err != nil {
				return nil, err
			}
			for _, t := range out.InstanceTypes {
				if t.ProcessorInfo == nil {
					continue
				}
				for _, a := range t.ProcessorInfo.SupportedArchitectures {
					found[string(t.InstanceType)] = append(found[string(t.InstanceType)], string(a))
				}
			}
			return out.NextToken, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// VPCs reads all VPCs of the region.
func (l *Lookups) VPCs(ctx context.Context) ([]resolve.VPC, error) {
	var vpcs []resolve.VPC
	in := &ec2.DescribeVpcsInput{MaxResults: aws.Int32(lookupPage)}
	err := sdk.EachPage(ctx, "ec2", "DescribeVpcs", func(ctx context.Context, token *string) (*string, error) {
		in.NextToken = token
		out, err := l.ec2.DescribeVpcs(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, v := range out.Vpcs {
			vpcs = append(vpcs, resolve.VPC{ID: aws.ToString(v.VpcId), Default: aws.ToBool(v.IsDefault)})
		}
		return out.NextToken, nil
	})
	return vpcs, err
}

// Subnets reads the subnets that match all filters.
func (l *Lookups) Subnets(ctx context.Context, filters []intent.Filter) ([]resolve.Subnet, error) {
	var subnets []resolve.Subnet
	in := &ec2.DescribeSubnetsInput{Filters: requestFilters(filters), MaxResults: aws.Int32(lookupPage)}
	err := sdk.EachPage(ctx, "ec2", "DescribeSubnets", func(ctx context.Context, token *string) (*string, error) {
		in.NextToken = token
		out, err := l.ec2.DescribeSubnets(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, s := range out.Subnets {
			subnets = append(subnets, resolve.Subnet{
				ID: aws.ToString(s.SubnetId), VPCID: aws.ToString(s.VpcId), Zone: aws.ToString(s.AvailabilityZone),
				MapPublicIP: aws.ToBool(s.MapPublicIpOnLaunch), Tags: read.Tags(s.Tags),
			})
		}
		return out.NextToken, nil
	})
	return subnets, err
}

// SecurityGroups reads the security groups that match all filters.
func (l *Lookups) SecurityGroups(ctx context.Context, filters []intent.Filter) ([]resolve.SecurityGroup, error) {
	var groups []resolve.SecurityGroup
	in := &ec2.DescribeSecurityGroupsInput{Filters: requestFilters(filters), MaxResults: aws.Int32(lookupPage)}
	err := sdk.EachPage(ctx, "ec2", "DescribeSecurityGroups", func(ctx context.Context, token *string) (*string, error) {
		in.NextToken = token
		out, err := l.ec2.DescribeSecurityGroups(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, g := range out.SecurityGroups {
			groups = append(groups, resolve.SecurityGroup{
				ID: aws.ToString(g.GroupId), Name: aws.ToString(g.GroupName), VPCID: aws.ToString(g.VpcId), Tags: read.Tags(g.Tags),
			})
		}
		return out.NextToken, nil
	})
	return groups, err
}

// Cluster describes an EKS cluster.
func (l *Lookups) Cluster(ctx context.Context, name string) (observed.EKSCluster, bool, error) {
	out, err := l.eks.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String(name)})
	if e := sdk.Classify("eks", "DescribeCluster", err); e != nil {
		if e.Kind == observed.NotFound {
			return observed.EKSCluster{}, false, nil
		}
		return observed.EKSCluster{}, false, e
	}
	cl := out.Cluster
	if cl == nil {
		return observed.EKSCluster{}, false, sdk.Incomplete("eks", "DescribeCluster", "cluster")
	}
	found := observed.EKSCluster{
		Name: aws.ToString(cl.Name), ARN: aws.ToString(cl.Arn), Status: string(cl.Status), Version: aws.ToString(cl.Version),
		Endpoint: aws.ToString(cl.Endpoint),
	}
	if cl.CertificateAuthority != nil {
		found.CertificateAuthority = aws.ToString(cl.CertificateAuthority.Data)
	}
	if n := cl.KubernetesNetworkConfig; n != nil {
		found.ServiceCIDR = aws.ToString(n.ServiceIpv4Cidr)
		if found.ServiceCIDR == "" {
			found.ServiceCIDR = aws.ToString(n.ServiceIpv6Cidr)
		}
	}
	if v := cl.ResourcesVpcConfig; v != nil {
		found.VPCID, found.ClusterSecurityGroupID = aws.ToString(v.VpcId), aws.ToString(v.ClusterSecurityGroupId)
		found.SubnetIDs, found.SecurityGroupIDs = slices.Sorted(slices.Values(v.SubnetIds)), slices.Sorted(slices.Values(v.SecurityGroupIds))
	}
	return found, true, nil
}

// Role reads an IAM role.
func (l *Lookups) Role(ctx context.Context, name string) (resolve.Role, bool, error) {
	out, err := l.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String(name)})
	if e := sdk.Classify("iam", "GetRole", err); e != nil {
		if e.Kind == observed.NotFound {
			return resolve.Role{}, false, nil
		}
		return resolve.Role{}, false, e
	}
	if out.Role == nil || out.Role.Arn == nil {
		return resolve.Role{}, false, sdk.Incomplete("iam", "GetRole", "role")
	}
	r := resolve.Role{ARN: *out.Role.Arn, Path: aws.ToString(out.Role.Path)}
	if b := out.Role.PermissionsBoundary; b != nil {
		r.Boundary = aws.ToString(b.PermissionsBoundaryArn)
	}
	return r, true, nil
}

// RolePolicies reads the policies that are attached to an IAM role.
func (l *Lookups) RolePolicies(ctx context.Context, name string) ([]string, bool, error) {
	in, arns := &iam.ListAttachedRolePoliciesInput{RoleName: aws.String(name)}, []string{}
	err := sdk.EachPage(ctx, "iam", "ListAttachedRolePolicies", func(ctx context.Context, marker *string) (*string, error) {
		in.Marker = marker
		out, err := l.iam.ListAttachedRolePolicies(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, p := range out.AttachedPolicies {
			arns = append(arns, aws.ToString(p.PolicyArn))
		}
		return out.Marker, nil
	})
	var e *observed.Error
	switch {
	case err == nil:
		return arns, true, nil
	case errors.As(err, &e) && e.Kind == observed.NotFound:
		return nil, false, nil
	}
	return nil, false, err
}

func filter(name string, values ...string) types.Filter {
	return types.Filter{Name: aws.String(name), Values: values}
}

func requestFilters(in []intent.Filter) []types.Filter {
	out := make([]types.Filter, 0, len(in))
	for _, f := range in {
		out = append(out, filter(f.Name, f.Values...))
	}
	return out
}
