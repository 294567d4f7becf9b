package cloudtest

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
)

func groupChangeContracts() []contract {
	return []contract{
		{"an absent member of an update changes nothing", nil, absentMembers},
		{"the desired size follows the bounds", []Capability{GroupChecks}, desiredFollowsBounds},
		{"a group is moved between template and policy", []Capability{GroupSettings}, templateAndPolicy},
		{"an empty spot price clears it", []Capability{PricedPolicies}, clearSpotPrice},
		{"tags of several groups are set and removed in one call", nil, groupTagCalls},
		{"processes are suspended and resumed", nil, processes},
		{"a group that is not there is refused", nil, missingGroupWrites},
		{"processes of a group that is not there are refused", []Capability{MissingResources}, missingGroupProcesses},
		{"a group with instances is deleted by force only", []Capability{GroupDeletion}, deleteByForce},
		{"a deleted group is gone, and its name is free", nil, deletedGroup},
	}
}

type updateGroup = autoscaling.UpdateAutoScalingGroupInput

func (e *env) update(name string, change func(*updateGroup)) error {
	in := &updateGroup{AutoScalingGroupName: aws.String(name)}
	change(in)
	_, err := e.asg.UpdateAutoScalingGroup(e.ctx, in)
	return err
}

func absentMembers(e *env) {
	name := e.group("a", func(in *createGroup) { in.MinSize, in.DesiredCapacity = aws.Int32(1), aws.Int32(2) })
	before := e.describe(name)
	e.must(e.update(name, func(in *updateGroup) { in.MaxSize = aws.Int32(9) }))
	g := e.describe(name)
	e.equal("sizes", []int32{1, 9, 2}, []int32{*g.MinSize, *g.MaxSize, *g.DesiredCapacity})
	e.equal("subnets", *before.VPCZoneIdentifier, *g.VPCZoneIdentifier)
	e.equal("version", *before.LaunchTemplate.Version, *g.LaunchTemplate.Version)
	e.equal("tags", len(before.Tags), len(g.Tags))
}

func desiredFollowsBounds(e *env) {
	name := e.group("a", func(in *createGroup) { in.DesiredCapacity = aws.Int32(3) })
	e.must(e.update(name, func(in *updateGroup) { in.MaxSize = aws.Int32(2) }))
	e.equal("desired below a lower maximum", int32(2), *e.describe(name).DesiredCapacity)
	e.must(e.update(name, func(in *updateGroup) { in.MinSize, in.MaxSize = aws.Int32(4), aws.Int32(6) }))
	e.equal("desired above a higher minimum", int32(4), *e.describe(name).DesiredCapacity)
	e.refused(e.update(name, func(in *updateGroup) { in.DesiredCapacity = aws.Int32(7) }), "ValidationError")
	e.refused(e.update(name, func(in *updateGroup) { in.MinSize = aws.Int32(7) }), "ValidationError")
}

func templateAndPolicy(e *env) {
	t := e.template("lt")
	e.version(t, "m5.xlarge")
	name := e.group("a", func(in *createGroup) { in.LaunchTemplate = spec(t, 1) })
	e.must(e.update(name, func(in *updateGroup) { in.MixedInstancesPolicy = policy(spec(t, 2), "m5.large") }))
	g := e.describe(name)
	if g.LaunchTemplate != nil || g.MixedInstancesPolicy == nil {
		e.Fatalf("template %v, policy %v", g.LaunchTemplate, g.MixedInstancesPolicy)
	}
	e.must(e.update(name, func(in *updateGroup) { in.LaunchTemplate = spec(t, 2) }))
	if g = e.describe(name); g.MixedInstancesPolicy != nil || aws.ToString(g.LaunchTemplate.Version) != "2" {
		e.Errorf("template %v, policy %v", g.LaunchTemplate, g.MixedInstancesPolicy)
	}
}

func clearSpotPrice(e *env) {
	t := e.template("lt")
	priced := func(price string) *types.MixedInstancesPolicy {
		p := policy(spec(t, 1), "m5.large")
		p.InstancesDistribution.SpotMaxPrice = aws.String(price)
		return p
	}
	name := e.group("a", func(in *createGroup) { in.MixedInstancesPolicy = priced("0.05") })
	e.equal("the price", "0.05", aws.ToString(e.describe(name).MixedInstancesPolicy.InstancesDistribution.SpotMaxPrice))
	e.must(e.update(name, func(in *updateGroup) { in.MixedInstancesPolicy = priced("") }))
	e.equal("the cleared price", "", aws.ToString(e.describe(name).MixedInstancesPolicy.InstancesDistribution.SpotMaxPrice))
}

func (e *env) tagsOf(name string) map[string]string {
	e.Helper()
	out := map[string]string{}
	for _, t := range e.describe(name).Tags {
		out[*t.Key] = aws.ToString(t.Value)
	}
	return out
}

func groupTagCalls(e *env) {
	t := e.template("lt")
	with := func(in *createGroup) {
		in.LaunchTemplate, in.Tags = spec(t, 1), e.groupTags(*in.AutoScalingGroupName, "k", "1", "drop", "1")
	}
	a, b := e.group("a", with), e.group("b", with)
	_, err := e.asg.CreateOrUpdateTags(e.ctx, &autoscaling.CreateOrUpdateTagsInput{Tags: append(e.groupTags(a, "k", "2"), e.groupTags(b, "new", "3")...)})
	e.must(err)
	var drop []types.Tag
	for _, name := range []string{a, b} {
		drop = append(drop, types.Tag{ResourceId: aws.String(name), ResourceType: aws.String("auto-scaling-group"), Key: aws.String("drop")})
	}
	_, err = e.asg.DeleteTags(e.ctx, &autoscaling.DeleteTagsInput{Tags: drop})
	e.must(err)
	e.equal("tags of the first", map[string]string{tagMark: e.mark, "k": "2"}, e.tagsOf(a))
	e.equal("tags of the second", map[string]string{tagMark: e.mark, "k": "1", "new": "3"}, e.tagsOf(b))
}

func processes(e *env) {
	name := e.group("a")
	suspended := func() []string {
		var out []string
		for _, p := range e.describe(name).SuspendedProcesses {
			out = append(out, aws.ToString(p.ProcessName))
		}
		slices.Sort(out)
		return out
	}
	_, err := e.asg.SuspendProcesses(e.ctx, &autoscaling.SuspendProcessesInput{AutoScalingGroupName: aws.String(name), ScalingProcesses: []string{"Launch", "AZRebalance"}})
	e.must(err)
	e.equal("suspended", []string{"AZRebalance", "Launch"}, suspended())
	_, err = e.asg.ResumeProcesses(e.ctx, &autoscaling.ResumeProcessesInput{AutoScalingGroupName: aws.String(name), ScalingProcesses: []string{"Launch"}})
	e.must(err)
	e.equal("after resuming one", []string{"AZRebalance"}, suspended())
}

func missingGroupWrites(e *env) {
	none := e.name("none")
	e.refused(e.update(none, func(in *updateGroup) { in.MaxSize = aws.Int32(1) }), "ValidationError")
	_, err := e.asg.DeleteAutoScalingGroup(e.ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: aws.String(none)})
	e.refused(err, "ValidationError")
}

func missingGroupProcesses(e *env) {
	_, err := e.asg.SuspendProcesses(e.ctx, &autoscaling.SuspendProcessesInput{AutoScalingGroupName: aws.String(e.name("none")), ScalingProcesses: []string{"Launch"}})
	e.refused(err, "ValidationError")
}

func deleteByForce(e *env) {
	t := e.template("lt")
	name := e.group("a", func(in *createGroup) { in.LaunchTemplate, in.DesiredCapacity = spec(t, 1), aws.Int32(1) })
	e.inService(name, 1)
	_, err := e.asg.DeleteAutoScalingGroup(e.ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: aws.String(name)})
	e.refused(err, "ResourceInUse", "ScalingActivityInProgress")
	_, err = e.asg.DeleteAutoScalingGroup(e.ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: aws.String(name), ForceDelete: aws.Bool(true)})
	e.must(err)
	if g := e.describe(name); g != nil {
		if g.Status == nil {
			e.Error("a group that is being deleted has no status")
		}
		_, err := e.tryGroup("a", func(in *createGroup) { in.LaunchTemplate = spec(t, 1) })
		e.refused(err, "AlreadyExists")
	}
	e.eventually("the group to be gone", func() bool { return e.describe(name) == nil })
}

func deletedGroup(e *env) {
	name := e.group("a")
	_, err := e.asg.DeleteAutoScalingGroup(e.ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: aws.String(name), ForceDelete: aws.Bool(true)})
	e.must(err)
	e.eventually("the group to be gone", func() bool { return e.describe(name) == nil })
	t := e.template("again")
	e.group("a", func(in *createGroup) { in.LaunchTemplate = spec(t, 1) })
}
