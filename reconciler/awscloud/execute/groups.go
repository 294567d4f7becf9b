package execute

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/weir-gitops/weir/reconciler/awscloud/convert"
	"github.com/weir-gitops/weir/reconciler/awscloud/read"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// groupResource is the resource type of Auto Scaling's tags.
const groupResource = "auto-scaling-group"

// createGroup creates an Auto Scaling group. If the group exists, it accepts one that an earlier attempt
// made. Existed is set if that attempt was not part of this call.
func (x groups) createGroup(ctx context.Context, a step.CreateGroup) (step.Result, error) {
	g := a.Group
	in := &autoscaling.CreateAutoScalingGroupInput{
		AutoScalingGroupName: aws.String(g.Name), MinSize: aws.Int32(g.MinSize), MaxSize: aws.Int32(g.MaxSize),
		DesiredCapacity:   aws.Int32(g.DesiredCapacity),
		VPCZoneIdentifier: convert.StringOrNil(strings.Join(g.SubnetIDs, ",")), LifecycleHookSpecificationList: convert.HookRequests(a.LifecycleHooks),
		Tags: groupTags(g.Name, g.Tags),
	}
	convert.CarrySettings(&g.GroupSettings, in)
	if m := in.InstanceMaintenancePolicy; m != nil && aws.ToInt32(m.MinHealthyPercentage) < 0 {
		in.InstanceMaintenancePolicy = nil // a negative value clears a policy, and no group exists yet
	}
	if g.MixedInstancesPolicy != nil {
		in.MixedInstancesPolicy = convert.PolicyRequest(g.MixedInstancesPolicy, g.Template, convert.Creates)
	} else {
		in.LaunchTemplate = convert.TemplateSpec(g.Template)
	}
	call, sent := sdk.Counting(ctx)
	_, err := x.autoscaling.CreateAutoScalingGroup(call, in)
	if e := sdk.Classify("autoscaling", "CreateAutoScalingGroup", err); e != nil {
		if e.Kind == observed.AlreadyThere {
			return step.Result{Existed: sent() == 1}, x.existingGroup(ctx, a, e)
		}
		return step.Result{}, e
	}
	x.memory.Made.Add(step.GroupSubject(g.Name))
	return step.Result{}, nil
}

// existingGroup decides whether the existing group of the name is the requested one. Auto Scaling has no
// client tokens, so a lost answer to an earlier attempt shows only here. The next pass corrects any
// difference.
func (x groups) existingGroup(ctx context.Context, a step.CreateGroup, conflict *observed.Error) error {
	found, err := x.reader.Groups(ctx, a.Group.Name)
	if err != nil {
		return err
	}
	have, ok := found[a.Group.Name]
	switch {
	case !ok:
		return busy("autoscaling", "CreateAutoScalingGroup", "the name "+a.Group.Name+" is taken by a group that AWS does not show yet")
	case have.Deleting:
		return busy("autoscaling", "CreateAutoScalingGroup", "the group "+a.Group.Name+" is still being deleted")
	}
	if whose := claimOf(observed.GroupTagValues(have.Tags), observed.GroupTagValues(a.Group.Tags)); whose != mine {
		return taken(conflict, whose, "group "+a.Group.Name)
	}
	x.memory.Made.Add(step.GroupSubject(a.Group.Name)) // made just now, as far as weir knows
	return nil
}

func groupTags(group string, tags map[string]observed.GroupTag) []types.Tag {
	out := make([]types.Tag, 0, len(tags))
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, types.Tag{
			Key: aws.String(k), Value: aws.String(tags[k].Value), PropagateAtLaunch: aws.Bool(tags[k].PropagateAtLaunch),
			ResourceId: aws.String(group), ResourceType: aws.String(groupResource),
		})
	}
	return out
}

// updateGroup sends only the members that are set. AWS keeps all others.
func (x groups) updateGroup(ctx context.Context, a step.UpdateGroup) error {
	in := &autoscaling.UpdateAutoScalingGroupInput{
		AutoScalingGroupName: aws.String(a.Name), MinSize: a.MinSize, MaxSize: a.MaxSize, DesiredCapacity: a.DesiredCapacity,
		VPCZoneIdentifier: convert.StringOrNil(strings.Join(a.SubnetIDs, ",")),
	}
	convert.CarrySettings(&a.GroupSettings, in)
	switch {
	case a.Template != nil && a.MixedInstancesPolicy != nil:
		in.MixedInstancesPolicy = convert.PolicyRequest(a.MixedInstancesPolicy, *a.Template, convert.Updates)
	case a.Template != nil:
		in.LaunchTemplate = convert.TemplateSpec(*a.Template)
	}
	_, err := x.autoscaling.UpdateAutoScalingGroup(ctx, in)
	return sdk.AsError("autoscaling", "UpdateAutoScalingGroup", err)
}

// startRefresh sends the configuration as the desired one, so that AWS writes it to the group only after the
// refresh has succeeded. It skips instances that have it already, so a repeated refresh replaces nothing.
// Assumed of AWS: desired-configuration-comes-back.
func (x groups) startRefresh(ctx context.Context, a step.StartRefresh) (step.Result, error) {
	desired := &types.DesiredConfiguration{}
	if a.MixedInstancesPolicy != nil {
		desired.MixedInstancesPolicy = convert.PolicyRequest(a.MixedInstancesPolicy, a.Template, convert.Refreshes)
	} else {
		desired.LaunchTemplate = convert.TemplateSpec(a.Template)
	}
	start := func(p intent.Refresh) (*autoscaling.StartInstanceRefreshOutput, *observed.Error) {
		out, err := x.autoscaling.StartInstanceRefresh(ctx, &autoscaling.StartInstanceRefreshInput{
			AutoScalingGroupName: aws.String(a.Group), DesiredConfiguration: desired, Strategy: types.RefreshStrategy(p.Strategy),
			Preferences: convert.Preferences(p),
		}, notRepeated)
		return out, sdk.Classify("autoscaling", "StartInstanceRefresh", err)
	}
	out, e := start(a.Preferences)
	if waiting, ends := waitsAtShare(a.Preferences); e != nil && e.Kind == observed.Invalid && ends {
		if again, refused := start(waiting); refused == nil {
			out, e = again, nil
		}
	}
	if e == nil {
		return step.Result{RefreshID: aws.ToString(out.InstanceRefreshId)}, nil
	}
	if e.Code != "InstanceRefreshInProgress" && e.Kind != observed.Transient {
		return step.Result{}, e
	}
	// The running refresh may be the requested one, whose answer was lost.
	running, err := x.reader.Refresh(ctx, a.Group)
	if err != nil {
		return step.Result{}, e
	}
	if (running.Active() || e.Kind == observed.Transient && running.Status == "Successful") && read.SameTemplate(running.Template, a.Template) && running.Brings(a.MixedInstancesPolicy) {
		return step.Result{RefreshID: running.ID}, nil
	}
	return step.Result{}, e
}

// waitsAtShare changes preferences whose last checkpoint is below 100 %. The refresh then waits at that
// checkpoint for as long as AWS can wait. It is for refreshes that AWS does not accept with such an
// end; weir ends them.
func waitsAtShare(p intent.Refresh) (out intent.Refresh, ends bool) {
	n := len(p.CheckpointPercentages)
	if n == 0 || p.CheckpointPercentages[n-1] >= 100 {
		return p, false
	}
	p.CheckpointPercentages = append(slices.Clone(p.CheckpointPercentages), 100)
	p.CheckpointDelay = aws.Int32(step.LongestDelay)
	return p, true
}

// cancelRefresh succeeds if no refresh is active.
func (x groups) cancelRefresh(ctx context.Context, a step.CancelRefresh) error {
	_, err := x.autoscaling.CancelInstanceRefresh(ctx, &autoscaling.CancelInstanceRefreshInput{AutoScalingGroupName: aws.String(a.Group)})
	if e := sdk.Classify("autoscaling", "CancelInstanceRefresh", err); e != nil && e.Code != "ActiveInstanceRefreshNotFound" {
		return e
	}
	return nil
}

// rollbackRefresh succeeds if the refresh is rolling back, or did so. The request names a group and no
// refresh, so weir reads the result instead of requesting it again. If the refresh ended in another way, the
// next pass decides.
func (x groups) rollbackRefresh(ctx context.Context, a step.RollbackRefresh) (step.Result, error) {
	_, err := x.autoscaling.RollbackInstanceRefresh(ctx, &autoscaling.RollbackInstanceRefreshInput{AutoScalingGroupName: aws.String(a.Group)}, notRepeated)
	e := sdk.Classify("autoscaling", "RollbackInstanceRefresh", err)
	if e == nil {
		return step.Result{RefreshID: a.RefreshID}, nil
	}
	if e.Code != "IrreversibleInstanceRefresh" && e.Code != "ActiveInstanceRefreshNotFound" && e.Kind != observed.Transient {
		return step.Result{}, e
	}
	now, err := x.reader.Refresh(ctx, a.Group)
	switch {
	case err != nil:
		return step.Result{}, e
	case now.ID == a.RefreshID && strings.HasPrefix(now.Status, "Rollback"):
		return step.Result{RefreshID: now.ID}, nil
	case now.ID != a.RefreshID || !now.Moving():
		return step.Result{}, busy("autoscaling", "RollbackInstanceRefresh", "the instance refresh "+a.RefreshID+" of "+a.Group+" has ended: "+e.Message)
	}
	if e.Code == "IrreversibleInstanceRefresh" {
		// AWS cannot roll it back. So weir at least cancels it, and another refresh leads back.
		return step.Result{}, x.cancelRefresh(ctx, step.CancelRefresh(a))
	}
	return step.Result{}, e
}

// setProcesses never sends an empty list, because AWS would interpret it as all processes.
func (x groups) setProcesses(ctx context.Context, a step.SetProcesses) error {
	if len(a.Suspend) > 0 {
		_, err := x.autoscaling.SuspendProcesses(ctx, &autoscaling.SuspendProcessesInput{AutoScalingGroupName: aws.String(a.Group), ScalingProcesses: a.Suspend})
		if err != nil {
			return sdk.Classify("autoscaling", "SuspendProcesses", err)
		}
	}
	if len(a.Resume) > 0 {
		_, err := x.autoscaling.ResumeProcesses(ctx, &autoscaling.ResumeProcessesInput{AutoScalingGroupName: aws.String(a.Group), ScalingProcesses: a.Resume})
		if err != nil {
			return sdk.Classify("autoscaling", "ResumeProcesses", err)
		}
	}
	return nil
}

func (x groups) tagGroup(ctx context.Context, a step.TagGroup) error {
	return retag(a.Put, a.Remove, func(put map[string]observed.GroupTag) error {
		_, err := x.autoscaling.CreateOrUpdateTags(ctx, &autoscaling.CreateOrUpdateTagsInput{Tags: groupTags(a.Group, put)})
		return sdk.AsError("autoscaling", "CreateOrUpdateTags", err)
	}, func(keys []string) error {
		var tags []types.Tag
		for _, k := range keys {
			tags = append(tags, types.Tag{Key: aws.String(k), ResourceId: aws.String(a.Group), ResourceType: aws.String(groupResource)})
		}
		_, err := x.autoscaling.DeleteTags(ctx, &autoscaling.DeleteTagsInput{Tags: tags})
		return sdk.AsError("autoscaling", "DeleteTags", err)
	})
}

// deleteGroup deletes an Auto Scaling group. A missing group, and one that AWS is already deleting, count as
// deleted.
func (x groups) deleteGroup(ctx context.Context, a step.DeleteGroup) error {
	in := &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: aws.String(a.Name)}
	if a.Force {
		in.ForceDelete = aws.Bool(true)
	}
	_, err := x.autoscaling.DeleteAutoScalingGroup(ctx, in)
	if e := sdk.Classify("autoscaling", "DeleteAutoScalingGroup", err); e != nil && e.Kind != observed.NotFound {
		if e.Kind != observed.Busy {
			return e
		}
		// The group may be busy with this very deletion, whose first answer was lost.
		found, err := x.reader.Groups(ctx, a.Name)
		if err != nil {
			return err
		}
		if have, there := found[a.Name]; there && !have.Deleting {
			return e
		}
	}
	x.memory.Made.Drop(step.GroupSubject(a.Name))
	return nil
}

// notRepeated makes a call retry only if AWS said that it did not accept it, and not after a lost answer. An
// instance refresh has no client token: by the second attempt, the first refresh may have ended, or somebody
// may have started another one. The next pass reads the result.
func notRepeated(o *autoscaling.Options) {
	usual := o.Retryer
	o.Retryer = retry.NewStandard(func(s *retry.StandardOptions) {
		s.MaxAttempts = usual.MaxAttempts()
		s.Retryables = []retry.IsErrorRetryable{retry.RetryableErrorCode{Codes: retry.DefaultThrottleErrorCodes}}
	})
}
