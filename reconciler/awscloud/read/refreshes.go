package read

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/weir-gitops/weir/reconciler/awscloud/convert"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// refreshesRead is the number of refreshes to read of a group: the newest, and enough earlier ones to show
// that several instances of weir roll a group back and forth.
const refreshesRead = 10

// Refresh reads the newest instance refresh of a group. Its ID is empty if the group never had one or is
// gone.
// Assumed of AWS: refreshes-newest-first.
func (r *Reader) Refresh(ctx context.Context, group string) (observed.Refresh, error) {
	return r.refresh(ctx, group)
}

// RefreshTriedOnce is Refresh without retries.
func (r *Reader) RefreshTriedOnce(ctx context.Context, group string) (observed.Refresh, error) {
	return r.refresh(ctx, group, func(o *autoscaling.Options) { o.RetryMaxAttempts = 1 })
}

// refresh returns the newest instance refresh of a group. The refresh has no ID if the group has none or does
// not exist.
func (r *Reader) refresh(ctx context.Context, group string, options ...func(*autoscaling.Options)) (observed.Refresh, error) {
	var list []types.InstanceRefresh
	in := &autoscaling.DescribeInstanceRefreshesInput{AutoScalingGroupName: aws.String(group), MaxRecords: aws.Int32(refreshesRead)}
	err := sdk.EachPage(ctx, "autoscaling", "DescribeInstanceRefreshes", func(ctx context.Context, token *string) (*string, error) {
		in.NextToken = token
		out, err := r.AutoScaling.DescribeInstanceRefreshes(ctx, in, options...)
		if err != nil {
			return nil, err
		}
		if list = out.InstanceRefreshes; len(list) == 0 {
			return out.NextToken, nil // the newest may be on the next page
		}
		return nil, nil //nolint:nilnil // no token: older ones do not matter
	})
	none := observed.Refresh{ReadAt: r.Now()}
	if e := sdk.Classify("autoscaling", "DescribeInstanceRefreshes", err); e != nil {
		if e.Kind == observed.NotFound {
			return none, nil
		}
		return observed.Refresh{}, e
	}
	if len(list) == 0 {
		return none, nil
	}
	newest := convert.Refresh(list[0])
	newest.ReadAt = none.ReadAt
	for _, earlier := range list[1:] {
		if r.Clock().Sub(aws.ToTime(earlier.StartTime)) < observed.Lately {
			newest.Earlier = append(newest.Earlier, convert.Refresh(earlier))
		}
	}
	return newest, nil
}
