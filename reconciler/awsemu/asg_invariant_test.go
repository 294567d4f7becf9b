package awsemu_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/reconciler/awsemu"
	emuec2 "github.com/weir-gitops/weir/reconciler/awsemu/ec2"
)

// asgModel drives an emulator with random calls on three groups.
type asgModel struct {
	e       *env
	id      string
	subnets *string
	faults  []func()
}

func (m *asgModel) name(rt *rapid.T) *string {
	return aws.String(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "group"))
}

// tolerate ends the test on anything but a fault of the API: whether a random call
// fits the state is not the point.
func tolerate(rt *rapid.T, err error) {
	if c := code(err); len(c) > 3 && c[:3] == "not" {
		rt.Fatal(err)
	}
}

func (m *asgModel) create(rt *rapid.T) {
	high := rapid.Int32Range(0, 6).Draw(rt, "max")
	in := &autoscaling.CreateAutoScalingGroupInput{
		AutoScalingGroupName: m.name(rt), MinSize: aws.Int32(rapid.Int32Range(0, high).Draw(rt, "min")), MaxSize: aws.Int32(high), VPCZoneIdentifier: m.subnets,
	}
	if rapid.Bool().Draw(rt, "mixed") {
		in.MixedInstancesPolicy = &asgtypes.MixedInstancesPolicy{
			LaunchTemplate: &asgtypes.LaunchTemplate{LaunchTemplateSpecification: spec(m.id, "1"), Overrides: []asgtypes.LaunchTemplateOverrides{
				{InstanceType: aws.String("m5.large")}, {InstanceType: aws.String("m5.xlarge")}}},
			InstancesDistribution: &asgtypes.InstancesDistribution{OnDemandPercentageAboveBaseCapacity: aws.Int32(50)},
		}
	} else {
		in.LaunchTemplate = spec(m.id, rapid.SampledFrom([]string{"1", "2", "$Latest"}).Draw(rt, "version"))
	}
	_, err := m.e.autoscaling().CreateAutoScalingGroup(ctx, in)
	tolerate(rt, err)
}

func (m *asgModel) update(rt *rapid.T) {
	in := &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: m.name(rt), DesiredCapacity: aws.Int32(rapid.Int32Range(0, 6).Draw(rt, "desired"))}
	if rapid.Bool().Draw(rt, "zones") {
		all := *m.subnets
		in.VPCZoneIdentifier = aws.String(all[:len("subnet-")+17])
	}
	_, err := m.e.autoscaling().UpdateAutoScalingGroup(ctx, in)
	tolerate(rt, err)
}

func (m *asgModel) remove(rt *rapid.T) {
	_, err := m.e.autoscaling().DeleteAutoScalingGroup(ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: m.name(rt), ForceDelete: aws.Bool(rapid.Bool().Draw(rt, "force"))})
	tolerate(rt, err)
}

func (m *asgModel) startRefresh(rt *rapid.T) {
	in := &autoscaling.StartInstanceRefreshInput{AutoScalingGroupName: m.name(rt), Preferences: &asgtypes.RefreshPreferences{
		MinHealthyPercentage: aws.Int32(rapid.SampledFrom([]int32{0, 50, 90, 100}).Draw(rt, "healthy")), SkipMatching: aws.Bool(rapid.Bool().Draw(rt, "skip"))}}
	if rapid.Bool().Draw(rt, "surge") {
		in.Preferences.MaxHealthyPercentage = aws.Int32(100)
	}
	if v := rapid.SampledFrom([]string{"", "1", "2", "3"}).Draw(rt, "version"); v != "" {
		in.DesiredConfiguration = &asgtypes.DesiredConfiguration{LaunchTemplate: spec(m.id, v)}
		in.Preferences.AutoRollback = aws.Bool(rapid.Bool().Draw(rt, "rollback"))
	}
	_, err := m.e.autoscaling().StartInstanceRefresh(ctx, in)
	tolerate(rt, err)
}

func (m *asgModel) stopRefresh(rt *rapid.T) {
	name := m.name(rt)
	var err error
	if rapid.Bool().Draw(rt, "back") {
		_, err = m.e.autoscaling().RollbackInstanceRefresh(ctx, &autoscaling.RollbackInstanceRefreshInput{AutoScalingGroupName: name})
	} else {
		_, err = m.e.autoscaling().CancelInstanceRefresh(ctx, &autoscaling.CancelInstanceRefreshInput{AutoScalingGroupName: name})
	}
	tolerate(rt, err)
}

func (m *asgModel) processes(rt *rapid.T) {
	name, list := m.name(rt), []string{rapid.SampledFrom([]string{"Launch", "Terminate", "HealthCheck", "ReplaceUnhealthy", "InstanceRefresh", "AZRebalance"}).Draw(rt, "process")}
	var err error
	if rapid.Bool().Draw(rt, "suspend") {
		_, err = m.e.autoscaling().SuspendProcesses(ctx, &autoscaling.SuspendProcessesInput{AutoScalingGroupName: name, ScalingProcesses: list})
	} else {
		_, err = m.e.autoscaling().ResumeProcesses(ctx, &autoscaling.ResumeProcessesInput{AutoScalingGroupName: name})
	}
	tolerate(rt, err)
}

func (m *asgModel) warm(rt *rapid.T) {
	name := m.name(rt)
	var err error
	if rapid.IntRange(0, 3).Draw(rt, "no pool") == 0 {
		_, err = m.e.autoscaling().DeleteWarmPool(ctx, &autoscaling.DeleteWarmPoolInput{AutoScalingGroupName: name, ForceDelete: aws.Bool(true)})
	} else {
		_, err = m.e.autoscaling().PutWarmPool(ctx, &autoscaling.PutWarmPoolInput{AutoScalingGroupName: name, MinSize: aws.Int32(rapid.Int32Range(0, 2).Draw(rt, "warm")),
			MaxGroupPreparedCapacity: aws.Int32(rapid.Int32Range(-1, 4).Draw(rt, "prepared")), PoolState: rapid.SampledFrom([]asgtypes.WarmPoolState{"Stopped", "Running", "Hibernated"}).Draw(rt, "state"),
			InstanceReusePolicy: &asgtypes.InstanceReusePolicy{ReuseOnScaleIn: aws.Bool(rapid.Bool().Draw(rt, "reuse"))}})
	}
	tolerate(rt, err)
}

// checkWarm counts what a group has ready in its warm pool.
func (m *asgModel) checkWarm(rt *rapid.T, g *asgtypes.AutoScalingGroup, whole bool, members map[string]bool) {
	out, err := m.e.autoscaling().DescribeWarmPool(ctx, &autoscaling.DescribeWarmPoolInput{AutoScalingGroupName: g.AutoScalingGroupName})
	if err != nil {
		rt.Fatal(err)
	}
	ready := 0
	for _, in := range out.Instances {
		members[aws.ToString(in.InstanceId)] = true
		if out.WarmPoolConfiguration != nil && string(in.LifecycleState) == "Warmed:"+string(out.WarmPoolConfiguration.PoolState) {
			ready++
		}
	}
	want := 0
	if c := out.WarmPoolConfiguration; c != nil {
		most := aws.ToInt32(g.MaxSize)
		if c.MaxGroupPreparedCapacity != nil {
			most = *c.MaxGroupPreparedCapacity
		}
		want = int(max(aws.ToInt32(c.MinSize), most-aws.ToInt32(g.DesiredCapacity), 0))
	}
	if whole && (ready != want || len(out.Instances) != want) {
		rt.Fatalf("group %s: %d of %d instances are ready in the warm pool, want %d of %+v", *g.AutoScalingGroupName, ready, len(out.Instances), want, out.WarmPoolConfiguration)
	}
}

func (m *asgModel) kill(rt *rapid.T) {
	instances := m.instances(rt)
	if len(instances) == 0 {
		return
	}
	id := rapid.SampledFrom(instances).Draw(rt, "instance")
	if rapid.Bool().Draw(rt, "by group") {
		_, err := m.e.autoscaling().TerminateInstanceInAutoScalingGroup(ctx, &autoscaling.TerminateInstanceInAutoScalingGroupInput{InstanceId: aws.String(id), ShouldDecrementDesiredCapacity: aws.Bool(rapid.Bool().Draw(rt, "shrink"))})
		tolerate(rt, err)
		return
	}
	_, err := m.e.ec2().TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
	tolerate(rt, err)
}

func (m *asgModel) fault(rt *rapid.T) {
	if len(m.faults) > 0 {
		m.faults[0]()
		m.faults = m.faults[1:]
		return
	}
	m.faults = append(m.faults, m.e.srv.Faults().Launches.Add(emuec2.LaunchFault{
		Code:             rapid.SampledFrom([]string{"", "InsufficientInstanceCapacity"}).Draw(rt, "code"),
		AvailabilityZone: rapid.SampledFrom([]string{"", "eu-west-1a"}).Draw(rt, "zone"),
	}))
}

// reload saves the emulator and loads it again.
func (m *asgModel) reload(rt *rapid.T) {
	var saved bytes.Buffer
	if err := m.e.srv.Save(&saved); err != nil {
		rt.Fatal(err)
	}
	if err := m.e.srv.Load(&saved); err != nil {
		rt.Fatal(err)
	}
}

// instances are the ids of all instances that are pending, running or stopped.
func (m *asgModel) instances(rt *rapid.T) []string {
	out, err := m.e.ec2().DescribeInstances(ctx, &ec2.DescribeInstancesInput{Filters: []ec2types.Filter{{Name: aws.String("instance-state-name"), Values: []string{"pending", "running", "stopped"}}}})
	if err != nil {
		rt.Fatal(err)
	}
	var ids []string
	for _, r := range out.Reservations {
		for _, in := range r.Instances {
			ids = append(ids, aws.ToString(in.InstanceId))
		}
	}
	return ids
}

// converge lets everything come to rest and checks the invariants: a group without
// suspended processes has just its desired capacity in service, and every instance
// that lives is a member of a group.
func (m *asgModel) converge(rt *rapid.T) {
	m.e.srv.Faults().Clear()
	m.faults = nil
	for range 5 {
		m.e.clock.Advance(time.Minute)
		m.instances(rt)
	}
	out, err := m.e.autoscaling().DescribeAutoScalingGroups(ctx, &autoscaling.DescribeAutoScalingGroupsInput{})
	if err != nil {
		rt.Fatal(err)
	}
	members := map[string]bool{}
	for _, g := range out.AutoScalingGroups {
		serving := 0
		for _, in := range g.Instances {
			members[aws.ToString(in.InstanceId)] = true
			if in.LifecycleState == asgtypes.LifecycleStateInService && aws.ToString(in.HealthStatus) == "Healthy" {
				serving++
			}
		}
		// A refresh of an empty group succeeds with a version that cannot launch.
		launches := g.LaunchTemplate == nil || aws.ToString(g.LaunchTemplate.Version) != "3"
		if launches && len(g.SuspendedProcesses) == 0 && (serving != int(aws.ToInt32(g.DesiredCapacity)) || len(g.Instances) != serving) {
			rt.Fatalf("group %s: %d of %d in service, desired %d: %v", *g.AutoScalingGroupName, serving, len(g.Instances), *g.DesiredCapacity, m.dump(&g))
		}
		m.checkWarm(rt, &g, launches && len(g.SuspendedProcesses) == 0, members)
		if d := aws.ToInt32(g.DesiredCapacity); d < *g.MinSize || d > *g.MaxSize {
			rt.Fatalf("group %s: desired %d is outside [%d, %d]", *g.AutoScalingGroupName, d, *g.MinSize, *g.MaxSize)
		}
	}
	for _, id := range m.instances(rt) {
		if !members[id] {
			rt.Fatalf("instance %s belongs to no group", id)
		}
	}
}

func (m *asgModel) dump(g *asgtypes.AutoScalingGroup) string {
	out := ""
	for _, in := range g.Instances {
		out += fmt.Sprint(aws.ToString(in.InstanceId), " ", in.LifecycleState, " ", aws.ToString(in.HealthStatus), " ", aws.ToString(in.LaunchTemplate.Version), "; ")
	}
	return out
}

func TestGroupsConverge(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		e := start(t, awsemu.Options{})
		m := &asgModel{e: e, id: e.template("web", e.machine()), subnets: e.subnets()}
		e.version(m.id, e.machine())
		e.version(m.id, broken())
		_, err := e.ec2().ModifyLaunchTemplate(ctx, &ec2.ModifyLaunchTemplateInput{LaunchTemplateId: aws.String(m.id), DefaultVersion: aws.String("2")})
		tolerate(rt, err)
		actions := []func(*rapid.T){m.create, m.create, m.update, m.update, m.remove, m.startRefresh, m.startRefresh, m.stopRefresh, m.processes, m.warm, m.kill, m.fault, m.reload}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			rapid.SampledFrom(actions).Draw(rt, "action")(rt)
			e.advance(time.Duration(rapid.Int64Range(0, 6000).Draw(rt, "wait")) * time.Millisecond)
		}
		m.converge(rt)
	})
}
