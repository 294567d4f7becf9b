package read

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/weir-gitops/weir/reconciler/awscloud/convert"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
)

// activitiesRead is the number of a group's newest scaling activities to read. Every start or end of a
// machine adds one.
const activitiesRead = 50

// Activity is one scaling activity of a group.
type Activity struct {
	Group, Description, Cause, Status, Message string
	// Ended is zero while the activity is in progress.
	Started, Ended time.Time
}

// Activities reads the newest scaling activities of a group, the newest first. deleted says that the group
// may be gone. If group is "", Activities reads the activities of the whole account, twice as many.
func (r *Reader) Activities(ctx context.Context, group string, deleted bool) ([]Activity, error) {
	in := &autoscaling.DescribeScalingActivitiesInput{MaxRecords: aws.Int32(activitiesRead), AutoScalingGroupName: convert.StringOrNil(group)}
	if group == "" {
		in.MaxRecords = aws.Int32(2 * activitiesRead)
	}
	if deleted {
		in.IncludeDeletedGroups = aws.Bool(true)
	}
	out, err := r.AutoScaling.DescribeScalingActivities(ctx, in)
	if e := sdk.Classify("autoscaling", "DescribeScalingActivities", err); e != nil {
		return nil, e
	}
	list := make([]Activity, len(out.Activities))
	for i, a := range out.Activities {
		list[i] = Activity{
			Group: aws.ToString(a.AutoScalingGroupName), Description: aws.ToString(a.Description), Cause: aws.ToString(a.Cause),
			Status: string(a.StatusCode), Message: aws.ToString(a.StatusMessage), Started: aws.ToTime(a.StartTime), Ended: aws.ToTime(a.EndTime),
		}
	}
	return list, nil
}
