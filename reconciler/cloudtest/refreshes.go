package cloudtest

import (
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
)

func refreshContracts() []contract {
	needs := []Capability{InstanceRefresh}
	return []contract{
		{"a refresh replaces instances and moves the group when it succeeded", needs, refreshSucceeds},
		{"a refresh of what runs already replaces nothing", needs, refreshSkipsMatching},
		{"one refresh at a time, and it can be cancelled", needs, refreshOnlyOne},
		{"rollback needs a pinned version", needs, rollbackNeedsNumber},
		{"a rollback is cancelled", needs, rollbackIsCancelled},
		{"a rollback brings back what the group is set to", needs, rollbackBringsBack},
		{"an instance type that the policy lost does not match", needs, refreshReplacesLostTypes},
		{"a group without a refresh has an empty history", needs, noRefreshes},
	}
}

// rolling creates a group of two instances on version 1 of a template with two versions.
func (e *env) rolling() (name string, second *types.LaunchTemplateSpecification, first []string) {
	e.Helper()
	t := e.template("lt")
	e.version(t, "m5.xlarge")
	name = e.group("a", func(in *createGroup) { in.LaunchTemplate, in.DesiredCapacity = spec(t, 1), aws.Int32(2) })
	return name, spec(t, 2), instanceIDs(e.inService(name, 2))
}

func instanceIDs(g *types.AutoScalingGroup) []string {
	var out []string
	for _, in := range g.Instances {
		out = append(out, aws.ToString(in.InstanceId))
	}
	slices.Sort(out)
	return out
}

func (e *env) startRefresh(name string, want *types.LaunchTemplateSpecification) (string, error) {
	out, err := e.asg.StartInstanceRefresh(e.ctx, &autoscaling.StartInstanceRefreshInput{
		AutoScalingGroupName: aws.String(name), DesiredConfiguration: &types.DesiredConfiguration{LaunchTemplate: want},
		Preferences: &types.RefreshPreferences{SkipMatching: aws.Bool(true), MinHealthyPercentage: aws.Int32(50)},
	})
	if err != nil {
		return "", err
	}
	return aws.ToString(out.InstanceRefreshId), nil
}

func (e *env) refresh(name string) types.InstanceRefresh {
	e.Helper()
	out, err := e.asg.DescribeInstanceRefreshes(e.ctx, &autoscaling.DescribeInstanceRefreshesInput{AutoScalingGroupName: aws.String(name), MaxRecords: aws.Int32(1)})
	e.must(err)
	if len(out.InstanceRefreshes) != 1 {
		e.Fatalf("%d refreshes of %s", len(out.InstanceRefreshes), name)
	}
	return out.InstanceRefreshes[0]
}

// ended waits until the newest refresh has ended in a state.
func (e *env) ended(name string, want types.InstanceRefreshStatus) types.InstanceRefresh {
	e.Helper()
	var r types.InstanceRefresh
	e.eventually(fmt.Sprintf("the refresh of %s to be %s", name, want), func() bool { r = e.refresh(name); return r.Status == want })
	return r
}

func refreshSucceeds(e *env) {
	name, second, before := e.rolling()
	id, err := e.startRefresh(name, second)
	e.must(err)
	r := e.refresh(name)
	e.equal("the newest refresh", id, aws.ToString(r.InstanceRefreshId))
	if !slices.Contains([]types.InstanceRefreshStatus{types.InstanceRefreshStatusPending, types.InstanceRefreshStatusInProgress}, r.Status) {
		e.Errorf("it starts as %s", r.Status)
	}
	e.equal("its configuration", "2", aws.ToString(r.DesiredConfiguration.LaunchTemplate.Version))
	e.equal("the group's version meanwhile", "1", aws.ToString(e.describe(name).LaunchTemplate.Version))
	r = e.ended(name, types.InstanceRefreshStatusSuccessful)
	if aws.ToInt32(r.PercentageComplete) != 100 || r.EndTime == nil || r.StartTime == nil {
		e.Errorf("it ended as %+v", r)
	}
	g := e.inService(name, 2)
	e.equal("the group's version afterwards", "2", aws.ToString(g.LaunchTemplate.Version))
	for _, in := range g.Instances {
		if slices.Contains(before, *in.InstanceId) || aws.ToString(in.LaunchTemplate.Version) != "2" {
			e.Errorf("instance %s runs version %s", *in.InstanceId, aws.ToString(in.LaunchTemplate.Version))
		}
	}
}

func refreshSkipsMatching(e *env) {
	name, second, before := e.rolling()
	same := *second
	same.Version = aws.String("1")
	_, err := e.startRefresh(name, &same)
	e.must(err)
	e.ended(name, types.InstanceRefreshStatusSuccessful)
	e.equal("instances", before, instanceIDs(e.inService(name, 2)))
}

func refreshOnlyOne(e *env) {
	name, second, _ := e.rolling()
	_, err := e.startRefresh(name, second)
	e.must(err)
	_, err = e.startRefresh(name, second)
	e.refused(err, "InstanceRefreshInProgress")
	_, err = e.asg.CancelInstanceRefresh(e.ctx, &autoscaling.CancelInstanceRefreshInput{AutoScalingGroupName: aws.String(name)})
	e.must(err)
	e.ended(name, types.InstanceRefreshStatusCancelled)
	e.equal("the group's version", "1", aws.ToString(e.describe(name).LaunchTemplate.Version))
	_, err = e.asg.CancelInstanceRefresh(e.ctx, &autoscaling.CancelInstanceRefreshInput{AutoScalingGroupName: aws.String(name)})
	e.refused(err, "ActiveInstanceRefreshNotFound")
	id, err := e.startRefresh(name, second)
	e.must(err)
	e.equal("newest first", id, aws.ToString(e.refresh(name).InstanceRefreshId))
	e.ended(name, types.InstanceRefreshStatusSuccessful)
}

// rollbackIsCancelled checks that a running rollback can be canceled like a refresh, so that the next
// refresh can start.
func rollbackIsCancelled(e *env) {
	name, second, _ := e.rolling()
	_, err := e.startRefresh(name, second)
	e.must(err)
	e.ended(name, types.InstanceRefreshStatusInProgress)
	_, err = e.asg.RollbackInstanceRefresh(e.ctx, &autoscaling.RollbackInstanceRefreshInput{AutoScalingGroupName: aws.String(name)})
	e.must(err)
	e.equal("meanwhile", types.InstanceRefreshStatusRollbackInProgress, e.refresh(name).Status)
	_, err = e.asg.CancelInstanceRefresh(e.ctx, &autoscaling.CancelInstanceRefreshInput{AutoScalingGroupName: aws.String(name)})
	e.must(err)
	e.ended(name, types.InstanceRefreshStatusCancelled)
	e.equal("the group's version", "1", aws.ToString(e.describe(name).LaunchTemplate.Version))
	_, err = e.startRefresh(name, second)
	e.must(err)
	e.ended(name, types.InstanceRefreshStatusSuccessful)
}

// rollbackBringsBack checks that a rollback removes the instances that a refresh has launched. Only a
// running refresh with a desired configuration can be rolled back.
func rollbackBringsBack(e *env) {
	name, second, before := e.rolling()
	rollback := func() error {
		_, err := e.asg.RollbackInstanceRefresh(e.ctx, &autoscaling.RollbackInstanceRefreshInput{AutoScalingGroupName: aws.String(name)})
		return err
	}
	e.refused(rollback(), "ActiveInstanceRefreshNotFound")
	id, err := e.startRefresh(name, second)
	e.must(err)
	e.eventually("a machine of the new version", func() bool {
		return slices.ContainsFunc(e.describe(name).Instances, func(i types.Instance) bool {
			return i.LaunchTemplate != nil && aws.ToString(i.LaunchTemplate.Version) == "2"
		})
	})
	e.must(rollback())
	r := e.refresh(name)
	e.equal("the refresh", id, aws.ToString(r.InstanceRefreshId))
	e.equal("meanwhile", types.InstanceRefreshStatusRollbackInProgress, r.Status)
	e.refused(rollback(), "IrreversibleInstanceRefresh")
	e.ended(name, types.InstanceRefreshStatusRollbackSuccessful)
	g := e.inService(name, len(before))
	e.equal("the group's version", "1", aws.ToString(g.LaunchTemplate.Version))
	for _, in := range g.Instances {
		e.equal("the version of "+aws.ToString(in.InstanceId), "1", aws.ToString(in.LaunchTemplate.Version))
	}
	_, err = e.asg.StartInstanceRefresh(e.ctx, &autoscaling.StartInstanceRefreshInput{AutoScalingGroupName: aws.String(name)})
	e.must(err)
	e.refused(rollback(), "IrreversibleInstanceRefresh")
}

// refreshReplacesLostTypes checks that a matching instance needs the template and an instance type that the
// policy still contains.
func refreshReplacesLostTypes(e *env) {
	t := e.template("lt")
	name := e.group("a", func(in *createGroup) {
		in.DesiredCapacity, in.MixedInstancesPolicy = aws.Int32(1), policy(spec(t, 1), "m5.large", "m5.xlarge")
	})
	before := instanceIDs(e.inService(name, 1))
	_, err := e.asg.StartInstanceRefresh(e.ctx, &autoscaling.StartInstanceRefreshInput{
		AutoScalingGroupName: aws.String(name), DesiredConfiguration: &types.DesiredConfiguration{MixedInstancesPolicy: policy(spec(t, 1), "m5.xlarge")},
		Preferences: &types.RefreshPreferences{SkipMatching: aws.Bool(true)},
	})
	e.must(err)
	e.ended(name, types.InstanceRefreshStatusSuccessful)
	g := e.inService(name, 1)
	if slices.Contains(before, *g.Instances[0].InstanceId) || aws.ToString(g.Instances[0].InstanceType) != "m5.xlarge" {
		e.Errorf("the instance is %+v", g.Instances[0])
	}
}

func rollbackNeedsNumber(e *env) {
	name, second, _ := e.rolling()
	second.Version = aws.String("$Latest")
	_, err := e.asg.StartInstanceRefresh(e.ctx, &autoscaling.StartInstanceRefreshInput{
		AutoScalingGroupName: aws.String(name), DesiredConfiguration: &types.DesiredConfiguration{LaunchTemplate: second},
		Preferences: &types.RefreshPreferences{AutoRollback: aws.Bool(true)},
	})
	e.refused(err, "ValidationError")
	_, err = e.asg.StartInstanceRefresh(e.ctx, &autoscaling.StartInstanceRefreshInput{AutoScalingGroupName: aws.String(name), Preferences: &types.RefreshPreferences{AutoRollback: aws.Bool(true)}})
	e.refused(err, "ValidationError")
}

func noRefreshes(e *env) {
	out, err := e.asg.DescribeInstanceRefreshes(e.ctx, &autoscaling.DescribeInstanceRefreshesInput{AutoScalingGroupName: aws.String(e.group("a")), MaxRecords: aws.Int32(1)})
	e.must(err)
	e.equal("refreshes", 0, len(out.InstanceRefreshes))
	_, err = e.asg.DescribeInstanceRefreshes(e.ctx, &autoscaling.DescribeInstanceRefreshesInput{AutoScalingGroupName: aws.String(e.name("none"))})
	e.refused(err, "ValidationError")
}
