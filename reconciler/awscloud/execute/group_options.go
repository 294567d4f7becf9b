package execute

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/weir-gitops/weir/reconciler/awscloud/convert"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// trafficBatch is the number of traffic sources that one call accepts.
const trafficBatch = 10

// setTrafficSources attaches before it detaches, so that the group always has traffic. A second attachment
// changes nothing.
func (x groups) setTrafficSources(ctx context.Context, a step.SetTrafficSources) error {
	for batch := range slices.Chunk(convert.TrafficSources(a.Attach), trafficBatch) {
		_, err := x.autoscaling.AttachTrafficSources(ctx, &autoscaling.AttachTrafficSourcesInput{
			AutoScalingGroupName: aws.String(a.Group), TrafficSources: batch, SkipZonalShiftValidation: a.SkipZonalShiftValidation,
		})
		if err != nil {
			return sdk.Classify("autoscaling", "AttachTrafficSources", err)
		}
	}
	for batch := range slices.Chunk(a.Detach, trafficBatch) {
		if err := x.detach(ctx, a.Group, batch); err != nil {
			return err
		}
	}
	return nil
}

// detach treats a refusal as success if none of the sources is attached, and otherwise repeats the request
// for the attached ones. AWS refuses the whole request if one source is not attached, for example after a
// lost first answer.
func (x groups) detach(ctx context.Context, group string, sources []intent.TrafficSource) error {
	in := &autoscaling.DetachTrafficSourcesInput{AutoScalingGroupName: aws.String(group), TrafficSources: convert.TrafficSources(sources)}
	_, err := x.autoscaling.DetachTrafficSources(ctx, in)
	e := sdk.Classify("autoscaling", "DetachTrafficSources", err)
	if e == nil || e.Kind != observed.Invalid {
		return sdk.AsError("autoscaling", "DetachTrafficSources", err)
	}
	have, err := x.reader.Groups(ctx, group)
	if err != nil {
		return e
	}
	left := slices.DeleteFunc(slices.Clone(sources), func(s intent.TrafficSource) bool {
		return !slices.ContainsFunc(have[group].Options.TrafficSources, func(a intent.TrafficSource) bool { return a.Identifier == s.Identifier })
	})
	switch len(left) {
	case 0:
		return nil
	case len(sources):
		return e
	}
	in.TrafficSources = convert.TrafficSources(left)
	_, err = x.autoscaling.DetachTrafficSources(ctx, in)
	return sdk.AsError("autoscaling", "DetachTrafficSources", err)
}

// putWarmPool sends all members of a warm pool, because AWS keeps the members that a call leaves out.
func (x groups) putWarmPool(ctx context.Context, a step.PutWarmPool) error {
	in := &autoscaling.PutWarmPoolInput{
		AutoScalingGroupName: aws.String(a.Group), MinSize: aws.Int32(a.WarmPool.MinSize), PoolState: types.WarmPoolState(a.WarmPool.PoolState),
		InstanceReusePolicy:      &types.InstanceReusePolicy{ReuseOnScaleIn: aws.Bool(a.WarmPool.InstanceReusePolicy.ReuseOnScaleIn)},
		MaxGroupPreparedCapacity: aws.Int32(a.WarmPool.MaxGroupPreparedCapacity),
	}
	if a.New && a.WarmPool.MaxGroupPreparedCapacity < 0 {
		in.MaxGroupPreparedCapacity = nil // nothing to remove
	}
	_, err := x.autoscaling.PutWarmPool(ctx, in)
	return sdk.AsError("autoscaling", "PutWarmPool", err)
}

// deleteWarmPool succeeds if no warm pool exists.
func (x groups) deleteWarmPool(ctx context.Context, a step.DeleteWarmPool) error {
	_, err := x.autoscaling.DeleteWarmPool(ctx, &autoscaling.DeleteWarmPoolInput{AutoScalingGroupName: aws.String(a.Group), ForceDelete: aws.Bool(true)})
	if e := sdk.Classify("autoscaling", "DeleteWarmPool", err); e != nil && !noWarmPool(e) {
		return e
	}
	return nil
}

// noWarmPool reports whether a group has no warm pool. Auto Scaling has no special error code for that.
func noWarmPool(err error) bool {
	var e *observed.Error
	return errors.As(err, &e) && strings.Contains(e.Message, "No warm pool found")
}

// setMetrics never sends an empty list, because AWS would interpret it as all metrics.
func (x groups) setMetrics(ctx context.Context, a step.SetMetrics) error {
	if len(a.Enable) > 0 {
		_, err := x.autoscaling.EnableMetricsCollection(ctx, &autoscaling.EnableMetricsCollectionInput{
			AutoScalingGroupName: aws.String(a.Group), Granularity: aws.String(a.Granularity), Metrics: a.Enable,
		})
		if err != nil {
			return sdk.Classify("autoscaling", "EnableMetricsCollection", err)
		}
	}
	if len(a.Disable) > 0 {
		_, err := x.autoscaling.DisableMetricsCollection(ctx, &autoscaling.DisableMetricsCollectionInput{AutoScalingGroupName: aws.String(a.Group), Metrics: a.Disable})
		if err != nil {
			return sdk.Classify("autoscaling", "DisableMetricsCollection", err)
		}
	}
	return nil
}
