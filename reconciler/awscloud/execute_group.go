package awscloud

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
)

// groupResource is the resource type of Auto Scaling's tags.
const groupResource = "auto-scaling-group"

func (c *Cloud) createGroup(ctx context.Context, a step.CreateGroup) error {
	g := a.Group
	in := &autoscaling.CreateAutoScalingGroupInput{
		AutoScalingGroupName: aws.String(g.Name), MinSize: aws.Int32(g.MinSize), MaxSize: aws.Int32(g.MaxSize),
		DesiredCapacity:   aws.Int32(g.DesiredCapacity),
		VPCZoneIdentifier: stringOrNil(strings.Join(g.SubnetIDs, ",")), LifecycleHookSpecificationList: lifecycleHooks(a.LifecycleHooks),
		Tags: groupTags(g.Name, g.Tags),
	}
	carrySettings(&g.GroupSettings, in)
	if m := in.InstanceMaintenancePolicy; m != nil && aws.ToInt32(m.MinHealthyPercentage) < 0 {
		in.InstanceMaintenancePolicy = nil // which clears one, and there is none yet
	}
	if g.MixedInstancesPolicy != nil {
		in.MixedInstancesPolicy = mixedPolicy(g.MixedInstancesPolicy, g.Template, false)
	} else {
		in.LaunchTemplate = templateSpec(g.Template)
	}
	_, err := c.autoscaling.CreateAutoScalingGroup(ctx, in)
	if e := classify("autoscaling", "CreateAutoScalingGroup", err); e != nil {
		if e.Kind == observed.AlreadyThere {
			return c.existingGroup(ctx, a, e)
		}
		return e
	}
	c.fresh.add(step.GroupSubject(g.Name))
	return nil
}

// existingGroup decides whether the group that is in the way is this very one.
// Auto Scaling has no client tokens, so a lost answer shows only here. What
// differs in it is put right by the next pass.
func (c *Cloud) existingGroup(ctx context.Context, a step.CreateGroup, conflict *observed.Error) error {
	found := map[string]observed.Group{}
	in := &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{a.Group.Name}}
	if err := c.groupPages(ctx, in, found); err != nil {
		return err
	}
	have, ok := found[a.Group.Name]
	switch {
	case !ok:
		return busy("autoscaling", "CreateAutoScalingGroup", "the name "+a.Group.Name+" is taken by a group that AWS does not show yet")
	case have.Deleting:
		return busy("autoscaling", "CreateAutoScalingGroup", "the group "+a.Group.Name+" is still being deleted")
	}
	if whose := claimOf(tagValues(have.Tags), tagValues(a.Group.Tags)); whose != mine {
		return taken(conflict, whose, "group "+a.Group.Name)
	}
	return nil
}

func tagValues(tags map[string]observed.GroupTag) map[string]string {
	out := make(map[string]string, len(tags))
	for k, t := range tags {
		out[k] = t.Value
	}
	return out
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

// updateGroup sends the members that are set; AWS keeps the others.
func (c *Cloud) updateGroup(ctx context.Context, a step.UpdateGroup) error {
	in := &autoscaling.UpdateAutoScalingGroupInput{
		AutoScalingGroupName: aws.String(a.Name), MinSize: a.MinSize, MaxSize: a.MaxSize, DesiredCapacity: a.DesiredCapacity,
		VPCZoneIdentifier: stringOrNil(strings.Join(a.SubnetIDs, ",")),
	}
	carrySettings(&a.GroupSettings, in)
	switch {
	case a.Template != nil && a.MixedInstancesPolicy != nil:
		in.MixedInstancesPolicy = mixedPolicy(a.MixedInstancesPolicy, *a.Template, true)
	case a.Template != nil:
		in.LaunchTemplate = templateSpec(*a.Template)
	}
	_, err := c.autoscaling.UpdateAutoScalingGroup(ctx, in)
	return asError("autoscaling", "UpdateAutoScalingGroup", err)
}

// startRefresh asks for the configuration as desired one, so that AWS writes it
// to the group only when the refresh succeeded, and skips instances that have it
// already, so that a repeated refresh replaces nothing.
// Assumed of AWS: desired-configuration-comes-back.
func (c *Cloud) startRefresh(ctx context.Context, a step.StartRefresh) (step.Result, error) {
	desired := &types.DesiredConfiguration{}
	if a.MixedInstancesPolicy != nil {
		desired.MixedInstancesPolicy = mixedPolicy(a.MixedInstancesPolicy, a.Template, true)
	} else {
		desired.LaunchTemplate = templateSpec(a.Template)
	}
	out, err := c.autoscaling.StartInstanceRefresh(ctx, &autoscaling.StartInstanceRefreshInput{
		AutoScalingGroupName: aws.String(a.Group), DesiredConfiguration: desired, Strategy: types.RefreshStrategy(a.Preferences.Strategy),
		Preferences: preferences(a.Preferences),
	}, withoutDoubt)
	e := classify("autoscaling", "StartInstanceRefresh", err)
	if e == nil {
		return step.Result{RefreshID: aws.ToString(out.InstanceRefreshId)}, nil
	}
	if e.Code != "InstanceRefreshInProgress" && e.Kind != observed.Transient {
		return step.Result{}, e
	}
	// It may be this very one, whose answer was lost.
	running, err := c.newestRefresh(ctx, a.Group)
	if err != nil {
		return step.Result{}, e
	}
	if (running.Active() || e.Kind == observed.Transient && running.Status == "Successful") && sameTemplate(running.Template, a.Template) && running.MixedInstancesPolicy.Same(a.MixedInstancesPolicy) {
		return step.Result{RefreshID: running.ID}, nil
	}
	return step.Result{}, e
}

// sameTemplate compares by id where both have one: AWS answers with both names.
func sameTemplate(a, b observed.TemplateRef) bool {
	if a.ID != "" && b.ID != "" {
		return a.ID == b.ID && a.Version == b.Version
	}
	return a.Name == b.Name && a.Version == b.Version
}

// cancelRefresh is done where nothing is left to cancel.
func (c *Cloud) cancelRefresh(ctx context.Context, a step.CancelRefresh) error {
	_, err := c.autoscaling.CancelInstanceRefresh(ctx, &autoscaling.CancelInstanceRefreshInput{AutoScalingGroupName: aws.String(a.Group)})
	if e := classify("autoscaling", "CancelInstanceRefresh", err); e != nil && e.Code != "ActiveInstanceRefreshNotFound" {
		return e
	}
	return nil
}

// setProcesses never sends an empty list, which would mean all processes.
func (c *Cloud) setProcesses(ctx context.Context, a step.SetProcesses) error {
	if len(a.Suspend) > 0 {
		_, err := c.autoscaling.SuspendProcesses(ctx, &autoscaling.SuspendProcessesInput{AutoScalingGroupName: aws.String(a.Group), ScalingProcesses: a.Suspend})
		if err != nil {
			return classify("autoscaling", "SuspendProcesses", err)
		}
	}
	if len(a.Resume) > 0 {
		_, err := c.autoscaling.ResumeProcesses(ctx, &autoscaling.ResumeProcessesInput{AutoScalingGroupName: aws.String(a.Group), ScalingProcesses: a.Resume})
		if err != nil {
			return classify("autoscaling", "ResumeProcesses", err)
		}
	}
	return nil
}

func (c *Cloud) tagGroup(ctx context.Context, a step.TagGroup) error {
	return retag(a.Put, a.Remove, func(put map[string]observed.GroupTag) error {
		_, err := c.autoscaling.CreateOrUpdateTags(ctx, &autoscaling.CreateOrUpdateTagsInput{Tags: groupTags(a.Group, put)})
		return asError("autoscaling", "CreateOrUpdateTags", err)
	}, func(keys []string) error {
		var tags []types.Tag
		for _, k := range keys {
			tags = append(tags, types.Tag{Key: aws.String(k), ResourceId: aws.String(a.Group), ResourceType: aws.String(groupResource)})
		}
		_, err := c.autoscaling.DeleteTags(ctx, &autoscaling.DeleteTagsInput{Tags: tags})
		return asError("autoscaling", "DeleteTags", err)
	})
}

func (c *Cloud) deleteGroup(ctx context.Context, a step.DeleteGroup) error {
	in := &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: aws.String(a.Name)}
	if a.Force {
		in.ForceDelete = aws.Bool(true)
	}
	_, err := c.autoscaling.DeleteAutoScalingGroup(ctx, in)
	if e := classify("autoscaling", "DeleteAutoScalingGroup", err); e != nil && e.Kind != observed.NotFound {
		if e.Kind != observed.Busy {
			return e
		}
		// It may be busy with this very deletion, whose first answer was lost.
		found := map[string]observed.Group{}
		if err := c.groupPages(ctx, &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{a.Name}}, found); err != nil {
			return err
		}
		if have, there := found[a.Name]; there && !have.Deleting {
			return e
		}
	}
	c.fresh.drop(step.GroupSubject(a.Name))
	return nil
}
