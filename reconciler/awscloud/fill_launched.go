package awscloud

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// fillLaunched reads when instances were launched. It filters rather than names
// them: a filter passes over one that is gone, where its id would fail the whole
// call. Where AWS refuses, no time is known, and a pool's machines count as in
// service from now on.
func (c *Cloud) fillLaunched(ctx context.Context, s *observed.State, ids []string) error {
	s.Launched = cloned(s.Launched)
	for _, id := range ids {
		if t, known := s.Launched[id]; !known {
			s.Launched[id] = t
		}
	}
	for batch := range slices.Chunk(ids, filterValues) {
		in := &ec2.DescribeInstancesInput{MaxResults: aws.Int32(instancesPage)}
		in.Filters = append(in.Filters, filter("instance-id", batch...))
		err := eachPage(ctx, "ec2", "DescribeInstances", func(ctx context.Context, token *string) (*string, error) {
			in.NextToken = token
			out, err := c.ec2.DescribeInstances(ctx, in)
			if err != nil {
				return nil, err
			}
			for _, r := range out.Reservations {
				for _, i := range r.Instances {
					s.Launched[aws.ToString(i.InstanceId)] = aws.ToTime(i.LaunchTime)
				}
			}
			return out.NextToken, nil
		})
		if refused(err) != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
