package doctor

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// missing updates a group that does not exist. With a policy that limits writes by tags, AWS may deny that
// instead of reporting a missing group.
func (v groupChecks) missing(ctx context.Context) {
	const about = "denied-where-missing"
	_, err := v.calls.updateGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String(v.name("missing")), MinSize: aws.Int32(0)})
	v.notes.kind("autoscaling", "UpdateAutoScalingGroup", err, observed.NotFound)
	switch e := sdk.Classify("autoscaling", "UpdateAutoScalingGroup", err); {
	case e == nil: // kind reports it
	case e.Kind == observed.Denied:
		v.notes.note(about, AsAssumed, "an update of a group that does not exist: %s", e.Error())
	default:
		v.notes.note(about, NotSeen, "an update of a group that does not exist is answered with %s; a role with the printed policy alone may get another answer", e.Code)
	}
}

// lateAnswers checks which error AWS returns for a heartbeat and for a completed action of a machine that no
// hook keeps waiting. It deletes its hook at once, because a terminating machine would wait for it.
func (v groupChecks) lateAnswers(ctx context.Context, group string, g types.AutoScalingGroup) {
	const about = "lifecycle-action-gone"
	v.Progress("answering a lifecycle hook that nothing waits for")
	hook, machine := aws.String("weir-doctor"), g.Instances[0].InstanceId
	_, err := v.calls.putHook(ctx, &autoscaling.PutLifecycleHookInput{AutoScalingGroupName: aws.String(group), LifecycleHookName: hook,
		LifecycleTransition: aws.String(intent.Terminating), HeartbeatTimeout: aws.Int32(30), DefaultResult: aws.String("CONTINUE")})
	if v.notes.refused(about, "autoscaling", "PutLifecycleHook", err) {
		return
	}
	defer func() {
		// The group is deleted by force, and no hook delays that.
		_, _ = v.calls.deleteHook(context.WithoutCancel(ctx), &autoscaling.DeleteLifecycleHookInput{AutoScalingGroupName: aws.String(group), LifecycleHookName: hook})
	}()
	_, err = v.calls.heartbeat(ctx, &autoscaling.RecordLifecycleActionHeartbeatInput{AutoScalingGroupName: aws.String(group), LifecycleHookName: hook, InstanceId: machine})
	v.judgeLateAnswer(about, "RecordLifecycleActionHeartbeat", err)
	_, err = v.calls.completeAction(ctx, &autoscaling.CompleteLifecycleActionInput{AutoScalingGroupName: aws.String(group), LifecycleHookName: hook, InstanceId: machine, LifecycleActionResult: aws.String("CONTINUE")})
	v.judgeLateAnswer(about, "CompleteLifecycleAction", err)
}

// judgeLateAnswer judges how AWS refuses late answers.
func (v groupChecks) judgeLateAnswer(about, operation string, err error) {
	e := sdk.Classify("autoscaling", operation, err)
	switch {
	case e == nil:
		v.notes.note(about, Differs, "%s for a machine that waits for nothing is accepted", operation)
	case e.Kind == observed.Denied || e.Kind == observed.Transient || e.Kind == observed.Throttled:
		v.notes.note(about, NotSeen, "%s", e.Error())
	default:
		v.notes.judge(about, e.Code == "ValidationError", "%s: %s: %s", operation, e.Code, e.Message)
	}
}

// checkpoints rolls half of a group of two machines, and then half again.
func (v groupChecks) checkpoints(ctx context.Context, group, template string) {
	const ends, counts = "refresh-ends-at-its-last-checkpoint", "checkpoints-count-the-group"
	v.Progress("rolling one of two machines")
	size := func(n int32) error {
		_, err := v.calls.updateGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String(group), DesiredCapacity: aws.Int32(n)})
		return err
	}
	if err := size(2); v.notes.refused(ends, "autoscaling", "UpdateAutoScalingGroup", err) {
		return
	}
	defer func() { _ = size(1) }() // another machine costs little, and is deleted with the group
	if !v.until(ctx, starting, func() bool { return inService(v.readGroup(ctx, group)) == 2 }) {
		v.notes.note(ends, NotSeen, "no second machine came into service in %s", starting)
		return
	}
	want := policy(template, 1, v.OtherType)
	r, ok := v.roll(ctx, ends, group, want, 50)
	if !ok {
		return
	}
	g := v.readGroup(ctx, group)
	set := g.MixedInstancesPolicy != nil && g.MixedInstancesPolicy.LaunchTemplate != nil && aws.ToString(g.MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification.Version) == "1"
	v.notes.judge(ends, r.Status == types.InstanceRefreshStatusSuccessful && ofVersion(g, "1") == 1 && set,
		"a refresh with the checkpoint 50 ended as %s; %d of %d machines run the new version, and the group is set to it: %t", r.Status, ofVersion(g, "1"), len(g.Instances), set)
	if r, ok = v.roll(ctx, counts, group, want, 50); !ok {
		return
	}
	g = v.readGroup(ctx, group)
	v.notes.judge(counts, ofVersion(g, "1") == 1, "the same again ended as %s; %d of %d machines run the new version", r.Status, ofVersion(g, "1"), len(g.Instances))
}

// roll starts a refresh and waits for its end.
func (v groupChecks) roll(ctx context.Context, about, group string, want *types.MixedInstancesPolicy, checkpoints ...int32) (r types.InstanceRefresh, ok bool) {
	if e := sdk.Classify("autoscaling", "StartInstanceRefresh", v.start(ctx, group, want, checkpoints...)); e != nil {
		if e.Kind == observed.Invalid {
			v.notes.note(about, Differs, "%s", e.Error())
		} else {
			v.notes.note(about, NotSeen, "%s", e.Error())
		}
		return r, false
	}
	if !v.ended(ctx, group) {
		v.notes.note(about, NotSeen, "the refresh had not ended after %s", replacing)
		return r, false
	}
	return v.newest(ctx, group), true
}

// ofVersion counts the machines in service with a version of the launch template.
func ofVersion(g types.AutoScalingGroup, version string) (n int) {
	for _, m := range g.Instances {
		if m.LifecycleState == types.LifecycleStateInService && m.LaunchTemplate != nil && aws.ToString(m.LaunchTemplate.Version) == version {
			n++
		}
	}
	return n
}

// refreshOverrides rolls the group to a policy without overrides, as weir sends it, and then to one with an
// empty list, which AWS may leave Pending.
func (v groupChecks) refreshOverrides(ctx context.Context, group, template string) {
	const about = "empty-overrides-in-refresh"
	v.Progress("rolling the group to a policy without overrides")
	if r, ok := v.roll(ctx, about, group, policy(template, 2)); ok {
		v.notes.judge(about, r.Status == types.InstanceRefreshStatusSuccessful, "a refresh without the list ended as %s and leaves %v", r.Status, v.overridesOf(ctx, group))
	}
	if err := v.setOverrides(ctx, group, template); v.notes.refused(about, "autoscaling", "UpdateAutoScalingGroup", err) {
		return
	}
	empty := policy(template, 2)
	empty.LaunchTemplate.Overrides = []types.LaunchTemplateOverrides{}
	switch e := sdk.Classify("autoscaling", "StartInstanceRefresh", v.start(ctx, group, empty)); {
	case e != nil:
		v.notes.note(about, NotSeen, "a refresh with an empty list: %s", e.Error())
	case v.ended(ctx, group):
		v.notes.note(about, NotSeen, "a refresh with an empty list ended as %s and leaves %v", v.newest(ctx, group).Status, v.overridesOf(ctx, group))
	default:
		v.notes.note(about, NotSeen, "a refresh with an empty list is %s after %s", v.newest(ctx, group).Status, replacing)
		_, _ = v.calls.cancelRefresh(ctx, &autoscaling.CancelInstanceRefreshInput{AutoScalingGroupName: aws.String(group)})
		v.ended(ctx, group)
	}
	_ = v.setOverrides(ctx, group, template) // the next check reports a failure
}

// setOverrides restores the group's overrides.
func (v groupChecks) setOverrides(ctx context.Context, group, template string) error {
	_, err := v.calls.updateGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String(group), MixedInstancesPolicy: policy(template, 2, v.OtherType)})
	return err
}

func (v groupChecks) overridesOf(ctx context.Context, group string) []string {
	p := v.readGroup(ctx, group).MixedInstancesPolicy
	if p == nil {
		return nil
	}
	return typesOf(p)
}
