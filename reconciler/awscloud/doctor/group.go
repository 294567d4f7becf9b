package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/weir-gitops/weir/reconciler/awscloud/convert"
	"github.com/weir-gitops/weir/reconciler/awscloud/fill"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/launch"
)

// The maximum times for actions of AWS.
const (
	starting  = 5 * time.Minute
	replacing = 15 * time.Minute
	refusing  = 3 * time.Minute
)

// groupChecks contains the checks of a visit that need a group.
type groupChecks struct{ *visit }

// run makes a group of one machine, changes it and rolls it.
func (v groupChecks) run(ctx context.Context, template, subnet string) {
	name := v.name("group")
	v.unknownNames(ctx, template)
	v.Progress("making a group of one " + v.InstanceType)
	if v.notes.refused("unit-of-capacity", "autoscaling", "CreateAutoScalingGroup", v.create(ctx, name, subnet, template)) {
		return
	}
	v.notes.kind("autoscaling", "CreateAutoScalingGroup", v.create(ctx, name, subnet, template), observed.AlreadyThere)
	v.missing(ctx)

	var g types.AutoScalingGroup
	if !v.until(ctx, starting, func() bool { g = v.readGroup(ctx, name); return inService(g) == 1 }) {
		v.lateLaunch(ctx, name)
		return
	}
	unit := aws.ToString(g.DesiredCapacityType)
	v.notes.judge("unit-of-capacity", unit == "" || unit == "units", "DesiredCapacityType of a new group is %q", unit)
	v.metrics(ctx, name)
	v.lateAnswers(ctx, name, g)
	v.refresh(ctx, name, template)
	v.checkpoints(ctx, name, template)
	v.refreshOverrides(ctx, name, template)
	v.overrides(ctx, name, template)
	v.brokenVersions(ctx, name, template)
}

// create makes the group, with a desired capacity of one machine.
func (v groupChecks) create(ctx context.Context, name, subnet, template string) error {
	in := &autoscaling.CreateAutoScalingGroupInput{
		AutoScalingGroupName: aws.String(name), MinSize: aws.Int32(0), MaxSize: aws.Int32(2), DesiredCapacity: aws.Int32(1),
		VPCZoneIdentifier: aws.String(subnet), MixedInstancesPolicy: policy(template, 1, v.InstanceType),
	}
	for k, value := range v.tags() {
		in.Tags = append(in.Tags, types.Tag{Key: aws.String(k), Value: aws.String(value), PropagateAtLaunch: aws.Bool(true), ResourceId: aws.String(name), ResourceType: aws.String("auto-scaling-group")})
	}
	_, err := v.calls.createGroup(ctx, in)
	return err
}

// policy returns a mixed instances policy for a template's version and, if given, for types.
func policy(template string, version int64, machines ...string) *types.MixedInstancesPolicy {
	lt := &types.LaunchTemplate{LaunchTemplateSpecification: &types.LaunchTemplateSpecification{LaunchTemplateId: aws.String(template), Version: aws.String(fmt.Sprint(version))}}
	for _, m := range machines {
		lt.Overrides = append(lt.Overrides, types.LaunchTemplateOverrides{InstanceType: aws.String(m)})
	}
	return &types.MixedInstancesPolicy{LaunchTemplate: lt}
}

// readGroup reads the group. It returns an empty group if the read fails.
func (v *visit) readGroup(ctx context.Context, name string) (g types.AutoScalingGroup) {
	out, err := v.calls.groups(ctx, &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{name}})
	if err == nil && len(out.AutoScalingGroups) == 1 {
		g = out.AutoScalingGroups[0]
		v.notes.retained(g)
	}
	return g
}

func inService(g types.AutoScalingGroup) (n int) {
	for _, m := range g.Instances {
		if m.LifecycleState == types.LifecycleStateInService {
			n++
		}
	}
	return n
}

// lateLaunch notes why no machine was available for the checks.
func (v groupChecks) lateLaunch(ctx context.Context, group string) {
	why := "no machine came into service in " + starting.String()
	for _, a := range v.activitiesOf(ctx, group) {
		v.notes.failedLaunch(a)
		if text := aws.ToString(a.StatusMessage); text != "" {
			why += ": " + text
			break
		}
	}
	for _, a := range assumptions {
		if a.needs == applies && v.notes.found[a.name] == nil {
			v.notes.note(a.name, NotSeen, "%s", why)
		}
	}
}

func (v groupChecks) activitiesOf(ctx context.Context, group string) []types.Activity {
	out, err := v.calls.activities(ctx, &autoscaling.DescribeScalingActivitiesInput{AutoScalingGroupName: aws.String(group)})
	if err != nil {
		return nil
	}
	return out.Activities
}

// unknownNames creates a group in a subnet that does not exist.
func (v groupChecks) unknownNames(ctx context.Context, template string) {
	const name, missing = "unknown-name-texts", "subnet-0123456789abcdef0"
	err := v.create(ctx, v.name("nowhere"), missing, template)
	e := sdk.Classify("autoscaling", "CreateAutoScalingGroup", err)
	switch {
	case e == nil:
		v.notes.note(name, Differs, "a group in the unknown subnet %s is accepted", missing)
	case e.Kind == observed.Denied:
		v.notes.note(name, NotSeen, "%s", e.Error())
	default:
		u, ok := observed.FindUnknownName(e.Message)
		v.notes.judge(name, ok && u.Name == missing, "%s: %s", e.Code, e.Message)
	}
}

// metrics enables warm pool metrics on a group without a warm pool.
func (v groupChecks) metrics(ctx context.Context, group string) {
	const name, metric = "warm-pool-metrics", "WarmPoolDesiredCapacity"
	_, err := v.calls.enableMetrics(ctx, &autoscaling.EnableMetricsCollectionInput{AutoScalingGroupName: aws.String(group), Granularity: aws.String("1Minute"), Metrics: []string{metric}})
	if e := sdk.Classify("autoscaling", "EnableMetricsCollection", err); e != nil {
		v.notes.judge(name, e.Kind == observed.Denied, "%s", e.Error())
		return
	}
	var enabled []string
	for _, m := range v.readGroup(ctx, group).EnabledMetrics {
		enabled = append(enabled, aws.ToString(m.Metric))
	}
	v.notes.judge(name, slices.Contains(enabled, metric), "enabled afterwards: %v", enabled)
}

// refresh rolls the group forward and back, cancels the way back, and replaces its machine.
func (v groupChecks) refresh(ctx context.Context, group, template string) {
	v.Progress("rolling the group, and back, and ending that")
	want := policy(template, 2, v.InstanceType)
	if err := v.start(ctx, group, want); v.notes.refused("desired-configuration-comes-back", "autoscaling", "StartInstanceRefresh", err) {
		return
	}
	err := v.start(ctx, group, want)
	v.notes.kind("autoscaling", "StartInstanceRefresh", err, observed.Busy)
	v.desired(ctx, group, want)
	v.cancelRollback(ctx, group)
	if !v.ended(ctx, group) {
		v.notes.note("skip-matching-types", NotSeen, "the refresh before had not ended after %s", replacing)
		return
	}
	v.Progress("exchanging the machine for a " + v.OtherType)
	v.otherType(ctx, group, policy(template, 2, v.OtherType))
	v.orderOfRefreshes(ctx, group)
}

// start starts a refresh, which ends at the given checkpoints.
func (v groupChecks) start(ctx context.Context, group string, want *types.MixedInstancesPolicy, checkpoints ...int32) error {
	in := &autoscaling.StartInstanceRefreshInput{
		AutoScalingGroupName: aws.String(group), DesiredConfiguration: &types.DesiredConfiguration{MixedInstancesPolicy: want},
		Preferences: &types.RefreshPreferences{SkipMatching: aws.Bool(true), MinHealthyPercentage: aws.Int32(0), InstanceWarmup: aws.Int32(0)},
	}
	if len(checkpoints) > 0 {
		in.Preferences.CheckpointPercentages, in.Preferences.CheckpointDelay = checkpoints, aws.Int32(0)
	}
	_, err := v.calls.startRefresh(ctx, in)
	return err
}

// newest reads the refresh that started last, whatever the order of the answer is.
func (v groupChecks) newest(ctx context.Context, group string) (r types.InstanceRefresh) {
	out, err := v.calls.refreshes(ctx, &autoscaling.DescribeInstanceRefreshesInput{AutoScalingGroupName: aws.String(group)})
	if err != nil {
		return r
	}
	for _, one := range out.InstanceRefreshes {
		if r.InstanceRefreshId == nil || one.StartTime == nil || r.StartTime != nil && one.StartTime.After(*r.StartTime) {
			r = one
		}
	}
	return r
}

// desired compares the configuration of a running refresh with the requested one.
func (v groupChecks) desired(ctx context.Context, group string, want *types.MixedInstancesPolicy) {
	const name = "desired-configuration-comes-back"
	got := v.newest(ctx, group).DesiredConfiguration
	if got == nil || got.MixedInstancesPolicy == nil {
		v.notes.note(name, Differs, "a running refresh has no desired configuration")
		return
	}
	sent, sentRef, _ := convert.Policy(want)
	read, readRef, unknown := convert.Policy(got.MixedInstancesPolicy)
	same := !unknown && sent.Same(read) && sentRef.ID == readRef.ID && sentRef.Version == readRef.Version
	v.notes.judge(name, same, "sent %s version %s, read %s version %s", typesOf(want), sentRef.Version, typesOf(got.MixedInstancesPolicy), readRef.Version)
}

// typesOf returns the instance types of a policy.
func typesOf(p *types.MixedInstancesPolicy) (out []string) {
	if p.LaunchTemplate != nil {
		for _, o := range p.LaunchTemplate.Overrides {
			out = append(out, aws.ToString(o.InstanceType))
		}
	}
	return out
}

// cancelRollback rolls the running refresh back, and cancels the rollback.
func (v groupChecks) cancelRollback(ctx context.Context, group string) {
	const name = "rollback-is-cancelled"
	var err error
	v.until(ctx, refusing, func() bool { // AWS may refuse a refresh that has not started yet
		_, err = v.calls.rollbackRefresh(ctx, &autoscaling.RollbackInstanceRefreshInput{AutoScalingGroupName: aws.String(group)})
		return err == nil || v.newest(ctx, group).Status != types.InstanceRefreshStatusPending
	})
	if v.notes.refused(name, "autoscaling", "RollbackInstanceRefresh", err) {
		return
	}
	_, err = v.calls.cancelRefresh(ctx, &autoscaling.CancelInstanceRefreshInput{AutoScalingGroupName: aws.String(group)})
	if e := sdk.Classify("autoscaling", "CancelInstanceRefresh", err); e != nil {
		v.notes.judge(name, e.Kind == observed.Denied, "%s", e.Error())
		return
	}
	v.notes.note(name, AsAssumed, "CancelInstanceRefresh was taken while the rollback ran")
}

// ended waits until no refresh runs.
func (v groupChecks) ended(ctx context.Context, group string) bool {
	return v.until(ctx, replacing, func() bool { return !convert.Refresh(v.newest(ctx, group)).Active() })
}

// otherType rolls the group to another instance type with the same version.
func (v groupChecks) otherType(ctx context.Context, group string, want *types.MixedInstancesPolicy) {
	const name = "skip-matching-types"
	if err := v.start(ctx, group, want); v.notes.refused(name, "autoscaling", "StartInstanceRefresh", err) {
		return
	}
	if !v.ended(ctx, group) {
		v.notes.note(name, NotSeen, "the refresh had not ended after %s", replacing)
		return
	}
	r := v.newest(ctx, group)
	if r.Status != types.InstanceRefreshStatusSuccessful {
		v.notes.note(name, NotSeen, "the refresh ended as %s: %s", r.Status, aws.ToString(r.StatusReason))
		return
	}
	var machines []string
	for _, m := range v.readGroup(ctx, group).Instances {
		machines = append(machines, aws.ToString(m.InstanceType))
	}
	v.notes.judge(name, len(machines) > 0 && !slices.Contains(machines, v.InstanceType), "after a refresh to %s the group has %v", v.OtherType, machines)
}

// overrides sends an update without overrides, and then one with an empty list.
func (v groupChecks) overrides(ctx context.Context, group, template string) {
	const name = "empty-overrides"
	for _, empty := range []bool{false, true} {
		p := policy(template, 2)
		if empty {
			p.LaunchTemplate.Overrides = []types.LaunchTemplateOverrides{}
		}
		before := v.readGroup(ctx, group)
		_, err := v.calls.updateGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String(group), MixedInstancesPolicy: p})
		if e := sdk.Classify("autoscaling", "UpdateAutoScalingGroup", err); e != nil {
			v.notes.judge(name, e.Kind == observed.Denied, "%s", e.Error())
			return
		}
		after := v.readGroup(ctx, group)
		if before.MixedInstancesPolicy == nil || after.MixedInstancesPolicy == nil {
			return
		}
		had, has := typesOf(before.MixedInstancesPolicy), typesOf(after.MixedInstancesPolicy)
		if empty {
			v.notes.judge(name, len(has) == 0, "an empty list leaves %v of %v", has, had)
		} else {
			v.notes.judge(name, slices.Equal(had, has), "an absent list leaves %v of %v", has, had)
		}
	}
}

// brokenVersions gives the group versions that cannot launch, and records AWS's messages.
func (v groupChecks) brokenVersions(ctx context.Context, group, template string) {
	v.Progress("asking for machines that AWS refuses")
	shows := &ec2types.RequestLaunchTemplateData{MetadataOptions: &ec2types.LaunchTemplateInstanceMetadataOptionsRequest{InstanceMetadataTags: ec2types.LaunchTemplateInstanceMetadataTagsStateEnabled}}
	said := v.refusal(ctx, group, template, "shows", shows, nil)
	if said != "" {
		v.notes.judge("metadata-tags-text", launch.CauseOf(said) == "InvalidTagKey.Malformed", "%s", said)
	}
	said = v.refusal(ctx, group, template, "gone", nil, func(n int64) { v.dropVersion(ctx, template, n) })
	if said != "" {
		v.notes.judge("deleted-version-texts", fill.IsMissingVersion(said), "%s", said)
	}
}

// refusal sets the group to a new version of the template and requests one more machine. It returns AWS's
// message about the refusal, from the answer or an activity, or an empty string.
func (v groupChecks) refusal(ctx context.Context, group, template, suffix string, change *ec2types.RequestLaunchTemplateData, afterwards func(int64)) (said string) {
	about := map[string]string{"shows": "metadata-tags-text", "gone": "deleted-version-texts"}[suffix]
	n, err := v.version(ctx, template, suffix, change)
	if v.notes.refused(about, "ec2", "CreateLaunchTemplateVersion", err) {
		return ""
	}
	set := func(in *autoscaling.UpdateAutoScalingGroupInput) string {
		in.AutoScalingGroupName = aws.String(group)
		_, err := v.calls.updateGroup(ctx, in)
		if e := sdk.Classify("autoscaling", "UpdateAutoScalingGroup", err); e != nil {
			return e.Message
		}
		return ""
	}
	if said = set(&autoscaling.UpdateAutoScalingGroupInput{MixedInstancesPolicy: policy(template, n)}); said != "" {
		return said
	}
	if afterwards != nil {
		afterwards(n)
	}
	known := map[string]bool{}
	for _, a := range v.activitiesOf(ctx, group) {
		known[aws.ToString(a.ActivityId)] = true
	}
	if said = set(&autoscaling.UpdateAutoScalingGroupInput{DesiredCapacity: aws.Int32(2)}); said == "" {
		v.until(ctx, refusing, func() bool {
			for _, a := range v.activitiesOf(ctx, group) {
				if !known[aws.ToString(a.ActivityId)] && strings.HasPrefix(aws.ToString(a.Description), "Launching") && aws.ToString(a.StatusMessage) != "" {
					v.notes.failedLaunch(a)
					said = aws.ToString(a.StatusMessage)
				}
			}
			return said != ""
		})
	}
	if said == "" {
		v.notes.note(about, NotSeen, "AWS had not refused the launch after %s", refusing)
	}
	set(&autoscaling.UpdateAutoScalingGroupInput{DesiredCapacity: aws.Int32(1), MixedInstancesPolicy: policy(template, 2)})
	return said
}
