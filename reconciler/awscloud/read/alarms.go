package read

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
)

// alarmsPage is the number of alarms that a call of DescribeAlarms may name and return.
const alarmsPage = 100

// Alarms reads the states of metric and composite alarms by name. A missing alarm is not in the result.
func (r *Reader) Alarms(ctx context.Context, names []string) (map[string]string, error) {
	states := map[string]string{}
	for batch := range slices.Chunk(names, alarmsPage) {
		in := &cloudwatch.DescribeAlarmsInput{AlarmNames: batch, MaxRecords: aws.Int32(alarmsPage), AlarmTypes: []types.AlarmType{types.AlarmTypeMetricAlarm, types.AlarmTypeCompositeAlarm}}
		err := sdk.EachPage(ctx, "cloudwatch", "DescribeAlarms", func(ctx context.Context, token *string) (*string, error) {
			in.NextToken = token
			out, err := r.CloudWatch.DescribeAlarms(ctx, in)
			if err != nil {
				return nil, err
			}
			for _, a := range out.MetricAlarms {
				states[aws.ToString(a.AlarmName)] = string(a.StateValue)
			}
			for _, a := range out.CompositeAlarms {
				states[aws.ToString(a.AlarmName)] = string(a.StateValue)
			}
			return out.NextToken, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return states, nil
}
