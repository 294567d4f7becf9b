package awscloud

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
)

// Confirm reads a resource once more and fails unless it is the one that was seen,
// with the same tags about whose it is. AWS's deletions know no condition, so this is
// as near as one comes: what happens between the answer and the next request, nothing
// can exclude.
func (c *Cloud) Confirm(ctx context.Context, seen step.Seen) error {
	now, operation, err := c.look(ctx, seen)
	if err != nil {
		return classify("", "", err)
	}
	why := "it is gone"
	if now != nil {
		why = seen.Differs(now)
	}
	if why == "" {
		return nil
	}
	return busy(operation.service, operation.name, "the "+string(seen.Resource)+" "+seen.Name+" is not what it was when the pass observed it: "+why+"; nothing of it is deleted")
}

type operation struct{ service, name string }

// look reads what is there now, nil where nothing is.
func (c *Cloud) look(ctx context.Context, seen step.Seen) (*step.Seen, operation, error) {
	switch seen.Resource {
	case step.AutoScalingGroup:
		found := map[string]observed.Group{}
		err := c.groupPages(ctx, &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{seen.Name}}, found)
		op := operation{"autoscaling", "DescribeAutoScalingGroups"}
		if g, ok := found[seen.Name]; ok && err == nil {
			return step.SeenGroup(g), op, nil
		}
		return nil, op, err
	case step.ManagedNodegroup:
		n, err := c.describeNodegroup(ctx, observed.NodegroupName{Cluster: seen.Cluster, Name: seen.Name})
		op := operation{"eks", "DescribeNodegroup"}
		if n == nil || err != nil {
			return nil, op, err
		}
		return step.SeenNodegroup(*n), op, nil
	default:
		found := map[string]observed.Template{}
		err := c.templatePages(ctx, &ec2.DescribeLaunchTemplatesInput{LaunchTemplateIds: []string{seen.ID}}, found)
		op := operation{"ec2", "DescribeLaunchTemplates"}
		if e := classify(op.service, op.name, err); e != nil && e.Kind == observed.NotFound {
			return nil, op, nil
		}
		for _, t := range found {
			return step.SeenTemplate(t), op, err
		}
		return nil, op, err
	}
}
