package read

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/weir-gitops/weir/reconciler/awscloud/convert"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// Hooks reads a group's lifecycle hooks, sorted by name. AWS returns all of them in one answer, and an empty
// list for a missing group.
func (r *Reader) Hooks(ctx context.Context, group string) ([]intent.LifecycleHook, error) {
	out, err := r.AutoScaling.DescribeLifecycleHooks(ctx, &autoscaling.DescribeLifecycleHooksInput{AutoScalingGroupName: aws.String(group)})
	if e := sdk.Classify("autoscaling", "DescribeLifecycleHooks", err); e != nil {
		if e.Kind == observed.NotFound {
			return nil, nil
		}
		return nil, e
	}
	hooks := make([]intent.LifecycleHook, len(out.LifecycleHooks))
	for i, h := range out.LifecycleHooks {
		hooks[i] = convert.Hook(h)
	}
	slices.SortFunc(hooks, func(a, b intent.LifecycleHook) int { return strings.Compare(a.Name, b.Name) })
	return hooks, nil
}
