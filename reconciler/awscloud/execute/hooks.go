package execute

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/weir-gitops/weir/reconciler/awscloud/convert"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// putHook sends defaults too, because AWS leaves missing members unchanged. It first forgets the group's
// remembered hooks, so that they are read again whatever the result.
func (x groups) putHook(ctx context.Context, a step.PutHook) error {
	x.memory.Hooks.Drop(a.Group)
	h := observed.HookDefaults(a.Hook)
	_, err := x.autoscaling.PutLifecycleHook(ctx, &autoscaling.PutLifecycleHookInput{
		AutoScalingGroupName: aws.String(a.Group), LifecycleHookName: aws.String(h.Name), LifecycleTransition: aws.String(h.LifecycleTransition),
		NotificationTargetARN: convert.StringOrNil(h.NotificationTargetARN), RoleARN: convert.StringOrNil(h.RoleARN),
		HeartbeatTimeout: aws.Int32(h.HeartbeatTimeout), DefaultResult: aws.String(h.DefaultResult),
		NotificationMetadata: convert.StringOrNil(h.NotificationMetadata),
	})
	return sdk.AsError("autoscaling", "PutLifecycleHook", err)
}

// deleteHook treats a refusal as success if the hook does not exist. AWS has no special code for that.
func (x groups) deleteHook(ctx context.Context, a step.DeleteHook) error {
	x.memory.Hooks.Drop(a.Group)
	_, err := x.autoscaling.DeleteLifecycleHook(ctx, &autoscaling.DeleteLifecycleHookInput{
		AutoScalingGroupName: aws.String(a.Group), LifecycleHookName: aws.String(a.Name),
	})
	e := sdk.Classify("autoscaling", "DeleteLifecycleHook", err)
	if e == nil {
		return nil
	}
	if e.Kind == observed.NotFound || e.Kind == observed.Invalid {
		left, err := x.reader.Hooks(ctx, a.Group)
		if err == nil && !slices.ContainsFunc(left, func(h intent.LifecycleHook) bool { return h.Name == a.Name }) {
			return nil
		}
	}
	return e
}

// holdMachine sends AWS a heartbeat for a machine's lifecycle action.
func (x groups) holdMachine(ctx context.Context, a step.HoldMachine) error {
	_, err := x.autoscaling.RecordLifecycleActionHeartbeat(ctx, &autoscaling.RecordLifecycleActionHeartbeatInput{
		AutoScalingGroupName: aws.String(a.Group), LifecycleHookName: aws.String(a.Hook), InstanceId: aws.String(a.Instance),
	})
	return sdk.AsError("autoscaling", "RecordLifecycleActionHeartbeat", err)
}

// releaseMachine completes a lifecycle action. AWS refuses that for an ended action, as it refuses a
// heartbeat. The caller decides who completed it first.
// Assumed of AWS: lifecycle-action-gone.
func (x groups) releaseMachine(ctx context.Context, a step.ReleaseMachine) error {
	_, err := x.autoscaling.CompleteLifecycleAction(ctx, &autoscaling.CompleteLifecycleActionInput{
		AutoScalingGroupName: aws.String(a.Group), LifecycleHookName: aws.String(a.Hook), InstanceId: aws.String(a.Instance), LifecycleActionResult: aws.String(a.Result),
	})
	return sdk.AsError("autoscaling", "CompleteLifecycleAction", err)
}
