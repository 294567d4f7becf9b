package awscloud

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/weir-gitops/weir/reconciler/observed"
	"golang.org/x/sync/errgroup"
)

// Page sizes and batch sizes are the largest that the APIs take.
const (
	groupsPage    = 100 // DescribeAutoScalingGroups: MaxRecords, and names in a request
	templatesPage = 200 // DescribeLaunchTemplates: MaxResults
	filterValues  = 200 // values of one EC2 filter
)

// parallel is how many calls of one kind run beside each other.
const parallel = 8

// Tags that EKS puts on the group behind a nodegroup.
const (
	tagEKSCluster   = "eks:cluster-name"
	tagEKSNodegroup = "eks:nodegroup-name"
)

// Observe reads what the owner has: its groups with their instances, its
// templates with the versions that are known already, and the nodegroups of the
// clusters that Git or those groups name. With nothing moving it costs a page
// for each 100 groups, one for each 200 templates, one for each 100 nodegroups
// of a cluster, and a call for each nodegroup that is due.
func (c *Cloud) Observe(ctx context.Context, q observed.Query) (observed.State, error) {
	s := observed.State{
		Account: c.account, Region: c.region,
		Templates: map[string]observed.Template{}, Groups: map[string]observed.Group{}, Nodegroups: map[observed.NodegroupName]observed.Nodegroup{},
		Clusters: map[string]bool{},
	}
	g, gctx := errgroup.WithContext(ctx)
	if q.Groups {
		g.Go(func() error { return c.observeGroups(gctx, q.Owner, s.Groups) })
	}
	if q.Templates {
		g.Go(func() error { return c.observeTemplates(gctx, q.Owner, s.Templates) })
	}
	if err := g.Wait(); err != nil {
		return observed.State{}, err
	}
	c.fresh.forget()
	c.activities.forget(c.now())
	c.versions.fill(s.Templates, c.now())
	if err := c.recallHooks(ctx, &s); err != nil {
		return observed.State{}, err
	}
	if err := c.observeNodegroups(ctx, q, &s); err != nil {
		return observed.State{}, err
	}
	return s, nil
}

// observeGroups reads the groups with the owner's tag. A page may be short or
// empty and still be followed by another.
func (c *Cloud) observeGroups(ctx context.Context, owner string, into map[string]observed.Group) error {
	in := &autoscaling.DescribeAutoScalingGroupsInput{
		MaxRecords: aws.Int32(groupsPage),
		Filters:    []astypes.Filter{{Name: aws.String("tag:" + observed.TagOwner), Values: []string{owner}}},
	}
	return c.groupPages(ctx, in, into)
}

func (c *Cloud) groupPages(ctx context.Context, in *autoscaling.DescribeAutoScalingGroupsInput, into map[string]observed.Group) error {
	var scanned []observed.Group
	scan := readPage(func(body []byte) (any, error) {
		groups, next, err := scanGroups(body)
		if err != nil {
			return nil, err
		}
		scanned = groups
		return &autoscaling.DescribeAutoScalingGroupsOutput{NextToken: stringOrNil(next)}, nil
	})
	return eachPage(ctx, "autoscaling", "DescribeAutoScalingGroups", func(ctx context.Context, token *string) (*string, error) {
		scanned, in.NextToken = nil, token
		out, err := c.autoscaling.DescribeAutoScalingGroups(ctx, in, func(o *autoscaling.Options) { o.APIOptions = append(o.APIOptions, scan) })
		if err != nil {
			return nil, err
		}
		for i := range scanned {
			into[scanned[i].Name] = scanned[i]
		}
		for i := range out.AutoScalingGroups { // where the SDK had to read the page
			g := group(out.AutoScalingGroups[i])
			into[g.Name] = g
		}
		return out.NextToken, nil
	})
}

func (c *Cloud) observeTemplates(ctx context.Context, owner string, into map[string]observed.Template) error {
	return c.templatePages(ctx, &ec2.DescribeLaunchTemplatesInput{
		MaxResults: aws.Int32(templatesPage),
		Filters:    []ec2types.Filter{{Name: aws.String("tag:" + observed.TagOwner), Values: []string{owner}}},
	}, into)
}

func (c *Cloud) templatePages(ctx context.Context, in *ec2.DescribeLaunchTemplatesInput, into map[string]observed.Template) error {
	var scanned []observed.Template
	scan := readPage(func(body []byte) (any, error) {
		templates, next, err := scanTemplates(body)
		if err != nil {
			return nil, err
		}
		scanned = templates
		return &ec2.DescribeLaunchTemplatesOutput{NextToken: stringOrNil(next)}, nil
	})
	return eachPage(ctx, "ec2", "DescribeLaunchTemplates", func(ctx context.Context, token *string) (*string, error) {
		scanned, in.NextToken = nil, token
		out, err := c.ec2.DescribeLaunchTemplates(ctx, in, func(o *ec2.Options) { o.APIOptions = append(o.APIOptions, scan) })
		if err != nil {
			return nil, err
		}
		for i := range scanned {
			into[scanned[i].Name] = scanned[i]
		}
		for i := range out.LaunchTemplates { // where the SDK had to read the page
			t := template(out.LaunchTemplates[i])
			into[t.Name] = t
		}
		return out.NextToken, nil
	})
}
