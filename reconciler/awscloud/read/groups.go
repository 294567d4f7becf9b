package read

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/weir-gitops/weir/reconciler/awscloud/convert"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// OwnedGroups reads the groups with the owner's tag. A page may be short or empty although further pages
// follow.
func (r *Reader) OwnedGroups(ctx context.Context, owner string) (map[string]observed.Group, error) {
	list := r.owned.groups.startList(r.Now())
	found, err := r.groups(ctx, list, &autoscaling.DescribeAutoScalingGroupsInput{
		Filters: []types.Filter{{Name: aws.String("tag:" + observed.TagOwner), Values: []string{owner}}},
	})
	if err == nil {
		list.complete()
	}
	return found, err
}

// AllGroups reads all groups of the account and region, of any owner.
func (r *Reader) AllGroups(ctx context.Context) (map[string]observed.Group, error) {
	return r.groups(ctx, nil, &autoscaling.DescribeAutoScalingGroupsInput{})
}

// Groups reads groups by name. Auto Scaling leaves out missing ones.
func (r *Reader) Groups(ctx context.Context, names ...string) (map[string]observed.Group, error) {
	found := map[string]observed.Group{}
	for batch := range slices.Chunk(names, groupsPage) {
		page, err := r.groups(ctx, nil, &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: batch})
		if err != nil {
			return nil, err
		}
		maps.Copy(found, page)
	}
	return found, nil
}

// groups returns the groups of all pages of a request, by name. It reads the pages with weir's own scanner
// instead of the SDK's, to save memory.
func (r *Reader) groups(ctx context.Context, list *list[observed.Group], in *autoscaling.DescribeAutoScalingGroupsInput) (map[string]observed.Group, error) {
	in.MaxRecords = aws.Int32(groupsPage)
	found := map[string]observed.Group{}
	var page []*observed.Group
	scan := sdk.ReadPage(func(body []byte) (_ any, err error) {
		var next string
		page, next, err = scanGroups(body, list)
		return &autoscaling.DescribeAutoScalingGroupsOutput{NextToken: convert.StringOrNil(next)}, err
	})
	err := sdk.EachPage(ctx, "autoscaling", "DescribeAutoScalingGroups", func(ctx context.Context, token *string) (*string, error) {
		in.NextToken = token
		out, err := r.AutoScaling.DescribeAutoScalingGroups(ctx, in, func(o *autoscaling.Options) { o.APIOptions = append(o.APIOptions, scan) })
		if err != nil {
			return nil, err
		}
		for i := range page {
			found[page[i].Name] = *page[i]
		}
		return out.NextToken, nil
	})
	return found, err
}
