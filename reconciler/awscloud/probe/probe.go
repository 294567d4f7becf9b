// Package probe asks AWS about the names in manifests, for package preflight. A missing resource is an
// answer and no error: names are sent as filters, which ignore a missing name, while a list of names would
// make the call fail.
//
// RunInstances is called only as a dry run: DryRun is the only function of this package that calls it, and it
// sets that parameter in every call.
package probe

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"

	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/preflight"
)

var (
	_ preflight.Cloud    = (*Prober)(nil)
	_ preflight.Launcher = (*Prober)(nil)
)

// Prober reads one account and region.
type Prober struct {
	ec2    EC2Calls
	iam    IAMCalls
	kms    KMSCalls
	elb    ElasticLoadBalancingCalls
	quotas ServiceQuotasCalls
}

// New returns a Prober.
func New(ec2 EC2Calls, iam IAMCalls, kms KMSCalls, elb ElasticLoadBalancingCalls, quotas ServiceQuotasCalls) *Prober {
	return &Prober{ec2, iam, kms, elb, quotas}
}

const (
	filterValues = 200 // values of one EC2 filter
	typesBatch   = 100 // DescribeInstanceTypes: MaxResults
	// Assumed of AWS: pages-of-a-thousand.
	page         = 1000
	targetsBatch = 20 // DescribeTargetGroups: ARNs that always fit
	mostSplits   = 25 // bounds the splits of lists of names in one call of halved
)

// filter returns a filter with literal values: it escapes the special characters of EC2's filters.
func filter(name string, values ...string) types.Filter {
	escaped := make([]string, len(values))
	for i, v := range values {
		escaped[i] = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`).Replace(v)
	}
	return types.Filter{Name: aws.String(name), Values: escaped}
}

// Profile reads an instance profile.
func (p *Prober) Profile(ctx context.Context, name string) (preflight.Profile, bool, error) {
	out, err := p.iam.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: aws.String(name)})
	if e := sdk.Classify("iam", "GetInstanceProfile", err); e != nil {
		return preflight.Profile{}, false, unlessMissing(e)
	}
	if out.InstanceProfile == nil {
		return preflight.Profile{}, false, sdk.Incomplete("iam", "GetInstanceProfile", "instance profile")
	}
	var found preflight.Profile
	if roles := out.InstanceProfile.Roles; len(roles) > 0 {
		found.Role = aws.ToString(roles[0].RoleName)
	}
	return found, true, nil
}

// unlessMissing returns nil for an error that says that the resource does not exist.
func unlessMissing(e *observed.Error) error {
	if e.Kind == observed.NotFound {
		return nil
	}
	return e
}

// KeyPairs reads which key pairs exist.
func (p *Prober) KeyPairs(ctx context.Context, names []string) (map[string]bool, error) {
	found := map[string]bool{}
	for batch := range slices.Chunk(names, filterValues) {
		out, err := p.ec2.DescribeKeyPairs(ctx, &ec2.DescribeKeyPairsInput{Filters: []types.Filter{filter("key-name", batch...)}})
		if err != nil {
			return found, sdk.Classify("ec2", "DescribeKeyPairs", err)
		}
		for _, k := range out.KeyPairs {
			found[aws.ToString(k.KeyName)] = true
		}
	}
	return found, nil
}

// Snapshots reads the sizes of the snapshots that the account may see. A filter leaves out all others, while
// a list of ids would be refused.
func (p *Prober) Snapshots(ctx context.Context, ids []string) (map[string]int32, error) {
	found := map[string]int32{}
	for batch := range slices.Chunk(ids, filterValues) {
		in := &ec2.DescribeSnapshotsInput{Filters: []types.Filter{filter("snapshot-id", batch...)}, MaxResults: aws.Int32(page)}
		err := sdk.EachPage(ctx, "ec2", "DescribeSnapshots", func(ctx context.Context, token *string) (*string, error) {
			in.NextToken = token
			out, err := p.ec2.DescribeSnapshots(ctx, in)
			if err != nil {
				return nil, err
			}
			for _, s := range out.Snapshots {
				found[aws.ToString(s.SnapshotId)] = aws.ToInt32(s.VolumeSize)
			}
			return out.NextToken, nil
		})
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

// ImagesNamed reads which of the names belong to public images of AWS, including deprecated ones: EKS
// accepts a release until its image is gone.
func (p *Prober) ImagesNamed(ctx context.Context, names []string) (map[string]bool, error) {
	found := map[string]bool{}
	for batch := range slices.Chunk(names, filterValues) {
		in := &ec2.DescribeImagesInput{Owners: []string{"amazon"}, Filters: []types.Filter{filter("name", batch...)}, IncludeDeprecated: aws.Bool(true), MaxResults: aws.Int32(page)}
		err := sdk.EachPage(ctx, "ec2", "DescribeImages", func(ctx context.Context, token *string) (*string, error) {
			in.NextToken = token
			out, err := p.ec2.DescribeImages(ctx, in)
			if err != nil {
				return nil, err
			}
			for _, im := range out.Images {
				found[aws.ToString(im.Name)] = true
			}
			return out.NextToken, nil
		})
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

// GroupsThatExist reads which security groups exist.
func (p *Prober) GroupsThatExist(ctx context.Context, ids []string) (map[string]bool, error) {
	found := map[string]bool{}
	for batch := range slices.Chunk(ids, filterValues) {
		in := &ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{filter("group-id", batch...)}, MaxResults: aws.Int32(page)}
		err := sdk.EachPage(ctx, "ec2", "DescribeSecurityGroups", func(ctx context.Context, token *string) (*string, error) {
			in.NextToken = token
			out, err := p.ec2.DescribeSecurityGroups(ctx, in)
			if err != nil {
				return nil, err
			}
			for _, g := range out.SecurityGroups {
				found[aws.ToString(g.GroupId)] = true
			}
			return out.NextToken, nil
		})
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

// SubnetRoom reads the zones of subnets, and their free addresses.
func (p *Prober) SubnetRoom(ctx context.Context, ids []string) (map[string]preflight.Subnet, error) {
	found := map[string]preflight.Subnet{}
	for batch := range slices.Chunk(ids, filterValues) {
		in := &ec2.DescribeSubnetsInput{Filters: []types.Filter{filter("subnet-id", batch...)}, MaxResults: aws.Int32(page)}
		err := sdk.EachPage(ctx, "ec2", "DescribeSubnets", func(ctx context.Context, token *string) (*string, error) {
			in.NextToken = token
			out, err := p.ec2.DescribeSubnets(ctx, in)
			if err != nil {
				return nil, err
			}
			for _, s := range out.Subnets {
				found[aws.ToString(s.SubnetId)] = preflight.Subnet{Zone: aws.ToString(s.AvailabilityZone), Free: aws.ToInt32(s.AvailableIpAddressCount), NoIPv4: aws.ToBool(s.Ipv6Native)}
			}
			return out.NextToken, nil
		})
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

// TargetGroups reads target groups by ARN, because no filter exists.
func (p *Prober) TargetGroups(ctx context.Context, arns []string) (map[string]preflight.TargetGroup, error) {
	found := map[string]preflight.TargetGroup{}
	return found, halved(arns, targetsBatch, func(arns []string) *observed.Error {
		out, err := p.elb.DescribeTargetGroups(ctx, &elb.DescribeTargetGroupsInput{TargetGroupArns: arns})
		if err != nil {
			return sdk.Classify("elasticloadbalancing", "DescribeTargetGroups", err)
		}
		for _, g := range out.TargetGroups {
			found[aws.ToString(g.TargetGroupArn)] = preflight.TargetGroup{VPC: aws.ToString(g.VpcId), Type: string(g.TargetType)}
		}
		return nil
	})
}

// halved reads names in lists of at most batch. AWS fails the whole list if one name does not exist or is
// malformed. halved then reads each half of the list, so a few calls find every existing name, and a
// malformed name hides no other.
func halved(names []string, batch int, read func(names []string) *observed.Error) error {
	splits := mostSplits
	var one func(names []string) *observed.Error
	one = func(names []string) *observed.Error {
		e := read(names)
		switch {
		case e == nil:
			return nil
		case e.Kind != observed.NotFound && e.Kind != observed.Invalid:
			return e
		case len(names) == 1:
			return nil
		case splits == 0:
			return preflight.TooMany(e.Service, e.Operation)
		}
		splits--
		if e := one(names[:len(names)/2]); e != nil {
			return e
		}
		return one(names[len(names)/2:])
	}
	for list := range slices.Chunk(names, batch) {
		if e := one(list); e != nil {
			return e
		}
	}
	return nil
}

// PlacementGroups reads placement groups by name, or by id if the text looks like one.
// DescribePlacementGroups has no filter for ids, so they go into GroupIds.
func (p *Prober) PlacementGroups(ctx context.Context, names []string) (map[string]preflight.PlacementGroup, error) {
	found := map[string]preflight.PlacementGroup{}
	read := func(in *ec2.DescribePlacementGroupsInput, key func(types.PlacementGroup) *string) *observed.Error {
		out, err := p.ec2.DescribePlacementGroups(ctx, in)
		if err != nil {
			return sdk.Classify("ec2", "DescribePlacementGroups", err)
		}
		for _, g := range out.PlacementGroups {
			found[aws.ToString(key(g))] = preflight.PlacementGroup{Strategy: string(g.Strategy), State: string(g.State), Partitions: aws.ToInt32(g.PartitionCount)}
		}
		return nil
	}
	isID := func(name string) bool { return strings.HasPrefix(name, "pg-") }
	for batch := range slices.Chunk(slices.DeleteFunc(slices.Clone(names), isID), filterValues) {
		in := &ec2.DescribePlacementGroupsInput{Filters: []types.Filter{filter("group-name", batch...)}}
		if e := read(in, func(g types.PlacementGroup) *string { return g.GroupName }); e != nil {
			return found, e
		}
	}
	ids := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !isID(name) })
	return found, halved(ids, filterValues, func(ids []string) *observed.Error {
		return read(&ec2.DescribePlacementGroupsInput{GroupIds: ids}, func(g types.PlacementGroup) *string { return g.GroupId })
	})
}

// Key reads a KMS key.
func (p *Prober) Key(ctx context.Context, id string) (preflight.Key, bool, error) {
	out, err := p.kms.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: aws.String(id)})
	if e := sdk.Classify("kms", "DescribeKey", err); e != nil {
		return preflight.Key{}, false, unlessMissing(e)
	}
	if out.KeyMetadata == nil {
		return preflight.Key{}, false, sdk.Incomplete("kms", "DescribeKey", "key")
	}
	k := out.KeyMetadata
	return preflight.Key{State: string(k.KeyState), Symmetric: k.KeySpec == "" || k.KeySpec == kmstypes.KeySpecSymmetricDefault}, true, nil
}

// Quota reads a quota of EC2.
func (p *Prober) Quota(ctx context.Context, code string) (float64, bool, error) {
	out, err := p.quotas.GetServiceQuota(ctx, &servicequotas.GetServiceQuotaInput{ServiceCode: aws.String("ec2"), QuotaCode: aws.String(code)})
	if e := sdk.Classify("servicequotas", "GetServiceQuota", err); e != nil {
		return 0, false, unlessMissing(e)
	}
	if out.Quota == nil || out.Quota.Value == nil {
		return 0, false, sdk.Incomplete("servicequotas", "GetServiceQuota", "quota")
	}
	return *out.Quota.Value, true, nil
}
