package awsemu_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// warm counts the instances of a warm pool by "lifecycle state/version".
func (e *env) warm(group string) (ids []string, states map[string]int) {
	e.t.Helper()
	states = map[string]int{}
	out := must(e.autoscaling().DescribeWarmPool(ctx, &autoscaling.DescribeWarmPoolInput{AutoScalingGroupName: aws.String(group)}))(e.t)
	for _, in := range out.Instances {
		ids = append(ids, aws.ToString(in.InstanceId))
		states[string(in.LifecycleState)+"/"+aws.ToString(in.LaunchTemplate.Version)]++
	}
	return ids, states
}

func (e *env) wantWarm(group string, want map[string]int) {
	e.t.Helper()
	if _, got := e.warm(group); cmp.Diff(want, got) != "" {
		e.t.Errorf("warm pool (-want +got):\n%s", cmp.Diff(want, got))
	}
}

// A warm pool fills to what may be prepared, gives its instances to the group that
// grows, and fills again; it is no part of the group's own instances.
func TestWarmPoolFillsAndIsUsed(t *testing.T) {
	e := start(t, awsemu.Options{})
	id := e.group("web", 1)
	client, name := e.autoscaling(), aws.String("web")
	put := func(in autoscaling.PutWarmPoolInput) {
		t.Helper()
		in.AutoScalingGroupName = name
		must(client.PutWarmPool(ctx, &in))(t)
		e.wait(3 * time.Second)
	}
	desire := func(n int32) {
		t.Helper()
		must(client.SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: name, DesiredCapacity: aws.Int32(n)}))(t)
		e.wait(4 * time.Second)
	}
	put(autoscaling.PutWarmPoolInput{MaxGroupPreparedCapacity: aws.Int32(4)})
	e.wantWarm("web", map[string]int{"Warmed:Stopped/1": 3})
	g := e.read("web")
	wantStates(t, g, map[string]int{"InService/1": 1})
	if aws.ToInt32(g.WarmPoolSize) != 3 {
		t.Errorf("warm pool size %d", aws.ToInt32(g.WarmPoolSize))
	}
	ids, _ := e.warm("web")
	stopped := must(e.ec2().DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: ids[:1]}))(t).Reservations[0].Instances[0]
	if stopped.State.Name != "stopped" {
		t.Errorf("an instance of the pool is %s", stopped.State.Name)
	}
	desire(2)
	wantStates(t, e.read("web"), map[string]int{"InService/1": 2})
	e.wantWarm("web", map[string]int{"Warmed:Stopped/1": 2})
	used := map[string]bool{}
	for _, in := range e.read("web").Instances {
		used[aws.ToString(in.InstanceId)] = true
	}
	if !used[ids[0]] && !used[ids[1]] && !used[ids[2]] {
		t.Errorf("the group grew without the warm pool: %v of %v", used, ids)
	}
	put(autoscaling.PutWarmPoolInput{PoolState: "Running", MinSize: aws.Int32(3)})
	e.wantWarm("web", map[string]int{"Warmed:Running/1": 3})
	put(autoscaling.PutWarmPoolInput{InstanceReusePolicy: &asgtypes.InstanceReusePolicy{ReuseOnScaleIn: aws.Bool(true)}, MaxGroupPreparedCapacity: aws.Int32(5), MinSize: aws.Int32(0)})
	before := len(must(e.ec2().DescribeInstances(ctx, &ec2.DescribeInstancesInput{}))(t).Reservations)
	desire(1)
	e.wantWarm("web", map[string]int{"Warmed:Running/1": 4})
	if after := len(must(e.ec2().DescribeInstances(ctx, &ec2.DescribeInstancesInput{}))(t).Reservations); after != before {
		t.Errorf("%d instances became %d although the pool takes them back", before, after)
	}

	// A refresh replaces the pool as well.
	e.version(id, e.machine())
	must(client.StartInstanceRefresh(ctx, &autoscaling.StartInstanceRefreshInput{AutoScalingGroupName: name,
		DesiredConfiguration: &asgtypes.DesiredConfiguration{LaunchTemplate: spec(id, "2")}, Preferences: &asgtypes.RefreshPreferences{SkipMatching: aws.Bool(true)}}))(t)
	e.until("web", asgtypes.InstanceRefreshStatusSuccessful)
	e.wait(5 * time.Second)
	wantStates(t, e.read("web"), map[string]int{"InService/2": 1})
	e.wantWarm("web", map[string]int{"Warmed:Running/2": 4})

	_, err := client.DeleteAutoScalingGroup(ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: name})
	wantCode(t, err, "ResourceInUse")
	must(client.DeleteWarmPool(ctx, &autoscaling.DeleteWarmPoolInput{AutoScalingGroupName: name, ForceDelete: aws.Bool(true)}))(t)
	e.wait(4 * time.Second)
	if e.read("web").WarmPoolConfiguration != nil {
		t.Error("the warm pool is still there")
	}
	e.wantWarm("web", map[string]int{})
}

// The group behind a nodegroup has the nodegroup's warm pool.
func TestNodegroupWarmPoolFills(t *testing.T) {
	e := start(t, awsemu.Options{})
	in := e.nodegroupInput("workers")
	in.WarmPoolConfig = &ekstypes.WarmPoolConfig{Enabled: aws.Bool(true), MaxGroupPreparedCapacity: aws.Int32(5), PoolState: "HIBERNATED"}
	e.createNodegroup(in)
	group := aws.ToString(e.untilNodegroup("workers", ekstypes.NodegroupStatusActive).Resources.AutoScalingGroups[0].Name)
	e.wait(3 * time.Second)
	e.wantWarm(group, map[string]int{"Warmed:Hibernated/1": 2})
	must(e.eks().UpdateNodegroupConfig(ctx, &eks.UpdateNodegroupConfigInput{ClusterName: in.ClusterName, NodegroupName: in.NodegroupName, WarmPoolConfig: &ekstypes.WarmPoolConfig{Enabled: aws.Bool(false)}}))(t)
	e.wait(5 * time.Second)
	e.wantWarm(group, map[string]int{})
	if e.read(group).WarmPoolConfiguration != nil || e.nodegroup("workers").WarmPoolConfig != nil {
		t.Error("the warm pool is still there")
	}
}
