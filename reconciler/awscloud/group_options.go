package awscloud

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// trafficBatch is how many traffic sources one call takes.
const trafficBatch = 10

// settleOptions brings what was read of a group into the form that the planner
// has: all traffic sources in one list, the warm pool whole.
func settleOptions(o *intent.GroupOptions, pond *types.WarmPoolConfiguration, metrics []string) {
	if len(o.TargetGroupARNs)+len(o.LoadBalancerNames)+len(o.TrafficSources) > 0 {
		o.TrafficSources = o.Sources()
		o.TargetGroupARNs, o.LoadBalancerNames = nil, nil
	}
	if pond != nil {
		w := intent.UsualWarmPool()
		w.MinSize = aws.ToInt32(pond.MinSize)
		if pond.MaxGroupPreparedCapacity != nil {
			w.MaxGroupPreparedCapacity = *pond.MaxGroupPreparedCapacity
		}
		if pond.PoolState != "" {
			w.PoolState = string(pond.PoolState)
		}
		if p := pond.InstanceReusePolicy; p != nil {
			w.InstanceReusePolicy.ReuseOnScaleIn = aws.ToBool(p.ReuseOnScaleIn)
		}
		o.WarmPool, o.DeleteWarmPool = &w, pond.Status == types.WarmPoolStatusPendingDelete
	}
	if len(metrics) > 0 {
		slices.Sort(metrics)
		o.MetricsCollection = &intent.MetricsCollection{Metrics: metrics}
	}
}

func metricsOf(list []types.EnabledMetric) []string {
	var out []string
	for _, m := range list {
		out = append(out, aws.ToString(m.Metric))
	}
	return out
}

// carrySettings writes the members of a group's settings into a request. Those of
// PoolOptions are a level deeper in the intent.
func carrySettings(s *intent.GroupSettings, in any) {
	carry(s, in)
	carry(&s.Options, in)
}

// preferences always skips what matches unless Git says otherwise, so that a
// repeated refresh replaces nothing.
func preferences(r intent.Refresh) *types.RefreshPreferences {
	var out types.RefreshPreferences
	carry(r, &out)
	if out.SkipMatching == nil {
		out.SkipMatching = aws.Bool(true)
	}
	return &out
}

func trafficSources(list []intent.TrafficSource) []types.TrafficSourceIdentifier {
	var out []types.TrafficSourceIdentifier
	for _, s := range list {
		out = append(out, types.TrafficSourceIdentifier{Identifier: aws.String(s.Identifier), Type: stringOrNil(s.Type)})
	}
	return out
}

// setTrafficSources attaches before it detaches, so that the group is never
// without traffic. Attaching what is attached already changes nothing.
func (c *Cloud) setTrafficSources(ctx context.Context, a step.SetTrafficSources) error {
	for batch := range slices.Chunk(trafficSources(a.Attach), trafficBatch) {
		_, err := c.autoscaling.AttachTrafficSources(ctx, &autoscaling.AttachTrafficSourcesInput{
			AutoScalingGroupName: aws.String(a.Group), TrafficSources: batch, SkipZonalShiftValidation: a.SkipZonalShiftValidation,
		})
		if err != nil {
			return classify("autoscaling", "AttachTrafficSources", err)
		}
	}
	for batch := range slices.Chunk(trafficSources(a.Detach), trafficBatch) {
		_, err := c.autoscaling.DetachTrafficSources(ctx, &autoscaling.DetachTrafficSourcesInput{AutoScalingGroupName: aws.String(a.Group), TrafficSources: batch})
		if err != nil {
			return classify("autoscaling", "DetachTrafficSources", err)
		}
	}
	return nil
}

// putWarmPool sends all of a warm pool: AWS keeps what a call leaves out.
func (c *Cloud) putWarmPool(ctx context.Context, a step.PutWarmPool) error {
	in := &autoscaling.PutWarmPoolInput{
		AutoScalingGroupName: aws.String(a.Group), MinSize: aws.Int32(a.WarmPool.MinSize), PoolState: types.WarmPoolState(a.WarmPool.PoolState),
		InstanceReusePolicy:      &types.InstanceReusePolicy{ReuseOnScaleIn: aws.Bool(a.WarmPool.InstanceReusePolicy.ReuseOnScaleIn)},
		MaxGroupPreparedCapacity: aws.Int32(a.WarmPool.MaxGroupPreparedCapacity),
	}
	if a.New && a.WarmPool.MaxGroupPreparedCapacity < 0 {
		in.MaxGroupPreparedCapacity = nil // there is none to remove
	}
	_, err := c.autoscaling.PutWarmPool(ctx, in)
	return asError("autoscaling", "PutWarmPool", err)
}

// deleteWarmPool is done where there is none.
func (c *Cloud) deleteWarmPool(ctx context.Context, a step.DeleteWarmPool) error {
	_, err := c.autoscaling.DeleteWarmPool(ctx, &autoscaling.DeleteWarmPoolInput{AutoScalingGroupName: aws.String(a.Group), ForceDelete: aws.Bool(true)})
	if e := classify("autoscaling", "DeleteWarmPool", err); e != nil && !noWarmPool(e) {
		return e
	}
	return nil
}

// noWarmPool: Auto Scaling has no code of its own for it.
func noWarmPool(err error) bool {
	var e *observed.Error
	return errors.As(err, &e) && containsAny(e.Message, "No warm pool found")
}

// setMetrics never sends an empty list, which would mean all metrics.
func (c *Cloud) setMetrics(ctx context.Context, a step.SetMetrics) error {
	if len(a.Enable) > 0 {
		_, err := c.autoscaling.EnableMetricsCollection(ctx, &autoscaling.EnableMetricsCollectionInput{
			AutoScalingGroupName: aws.String(a.Group), Granularity: aws.String(a.Granularity), Metrics: a.Enable,
		})
		if err != nil {
			return classify("autoscaling", "EnableMetricsCollection", err)
		}
	}
	if len(a.Disable) > 0 {
		_, err := c.autoscaling.DisableMetricsCollection(ctx, &autoscaling.DisableMetricsCollectionInput{AutoScalingGroupName: aws.String(a.Group), Metrics: a.Disable})
		if err != nil {
			return classify("autoscaling", "DisableMetricsCollection", err)
		}
	}
	return nil
}
