package execute

import (
	"context"

	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
)

// Confirm reads a resource again and fails unless it is the seen resource with the same ownership tags.
// AWS's deletions accept no condition, so another client may still change the resource between this answer
// and the next request.
func (x *Executor) Confirm(ctx context.Context, seen step.Seen) error {
	now, operation, err := x.reread(ctx, seen)
	if err != nil {
		return sdk.Classify("", "", err)
	}
	why := "it is gone"
	if now != nil {
		why = seen.Differs(now)
	}
	if why == "" {
		return nil
	}
	return &observed.Error{
		Kind: observed.Busy, Service: operation.service, Operation: operation.name, Code: observed.CodeChanged,
		Message: "the " + string(seen.Resource) + " " + seen.Name + " has changed since the pass observed it: " + why + "; weir does not change it",
	}
}

type operation struct{ service, name string }

// reread reads the existing resource, or nil.
func (x *Executor) reread(ctx context.Context, seen step.Seen) (*step.Seen, operation, error) {
	switch seen.Resource {
	case step.AutoScalingGroup:
		found, err := x.reader.Groups(ctx, seen.Name)
		op := operation{"autoscaling", "DescribeAutoScalingGroups"}
		if g, ok := found[seen.Name]; ok && err == nil {
			return step.SeenGroup(g), op, nil
		}
		return nil, op, err
	case step.ManagedNodegroup:
		n, err := x.reader.Nodegroup(ctx, observed.NodegroupName{Cluster: seen.Cluster, Name: seen.Name})
		op := operation{"eks", "DescribeNodegroup"}
		if n == nil || err != nil {
			return nil, op, err
		}
		return step.SeenNodegroup(*n), op, nil
	default:
		found, err := x.reader.TemplatesByID(ctx, seen.ID)
		op := operation{"ec2", "DescribeLaunchTemplates"}
		for _, t := range found {
			return step.SeenTemplate(t), op, err
		}
		return nil, op, err
	}
}
