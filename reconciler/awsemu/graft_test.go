package awsemu_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/awsemu/asg"
	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/awsemu/eks"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

const (
	graftedTemplate = "lt-0aaaaaaaaaaaaaaaa"
	graftedMachine  = "i-0aaaaaaaaaaaaaaaa"
	graftedSubnet   = "subnet-0aaaaaaaaaaaaaaaa"
)

// A group is what it is in another AWS: its machines and their versions have the ids and
// numbers that they have there, and what it launches of a type and an image that nobody has
// told the emulator of comes as well, with ids of its own.
func TestGraft(t *testing.T) {
	e := start(t, awsemu.Options{Account: "123456789012"})
	who := must(e.sts().GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}))(t)
	if aws.ToString(who.Account) != "123456789012" {
		t.Fatalf("the account is %s", aws.ToString(who.Account))
	}
	graft := func(g awsemu.Graft) error {
		g.Account, g.Region = "123456789012", "eu-west-1"
		return e.srv.Graft(g)
	}
	id := e.group("web", 0)
	e.version(id, broken())
	if err := graft(awsemu.Graft{
		Subnets:   []ec2.SubnetGraft{{ID: graftedSubnet, Zone: "eu-west-1d"}},
		Templates: []ec2.TemplateGraft{{Name: "web", ID: graftedTemplate, Numbers: []int64{7, 9}, Default: 9, Latest: 12}},
	}); err != nil {
		t.Fatal(err)
	}
	must(e.autoscaling().UpdateAutoScalingGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{
		AutoScalingGroupName: aws.String("web"), LaunchTemplate: spec(graftedTemplate, "9"), VPCZoneIdentifier: aws.String(graftedSubnet), MaxSize: aws.Int32(5),
	}))(t)
	if err := graft(awsemu.Graft{Groups: []asg.GroupGraft{{Name: "web", Min: 1, Desired: 2, Created: epoch.Add(-time.Hour), Members: []asg.MemberGraft{
		{ID: graftedMachine, Type: "x99.huge", Zone: "eu-west-1d", Template: asg.TemplateSpec{ID: graftedTemplate, Name: "web", Version: "7"}, Lifecycle: "InService", Health: "Healthy", Protected: true},
	}}}}); err != nil {
		t.Fatal(err)
	}
	e.advance(time.Minute)
	must(e.autoscaling().SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: aws.String("web"), DesiredCapacity: aws.Int32(3)}))(t)
	e.advance(time.Minute)
	g := must(e.autoscaling().DescribeAutoScalingGroups(ctx, &autoscaling.DescribeAutoScalingGroupsInput{}))(t).AutoScalingGroups[0]
	versions := map[string]int{}
	for _, i := range g.Instances {
		versions[aws.ToString(i.LaunchTemplate.Version)]++
		if i.LifecycleState != asgtypes.LifecycleStateInService || aws.ToString(i.AvailabilityZone) != "eu-west-1d" {
			t.Errorf("%s is %s in %s", aws.ToString(i.InstanceId), i.LifecycleState, aws.ToString(i.AvailabilityZone))
		}
	}
	if first := g.Instances[0]; aws.ToString(first.InstanceId) != graftedMachine || !aws.ToBool(first.ProtectedFromScaleIn) || versions["7"] != 1 || versions["9"] != 2 {
		t.Errorf("%s, %v", aws.ToString(first.InstanceId), versions)
	}
	e.version(graftedTemplate, e.machine())
	if _, due := e.srv.NextDue(); due {
		t.Error("something is to happen though all rests")
	}

	for name, wrong := range map[string]awsemu.Graft{
		"a template's id":    {Templates: []ec2.TemplateGraft{{Name: "web", ID: "lt-x", Numbers: []int64{1, 2, 3}, Default: 1, Latest: 3}}},
		"too few numbers":    {Templates: []ec2.TemplateGraft{{Name: "web", ID: graftedTemplate, Numbers: []int64{1}, Default: 1, Latest: 3}}},
		"an unknown group":   {Groups: []asg.GroupGraft{{Name: "other"}}},
		"a group of before":  {Groups: []asg.GroupGraft{{Name: "web"}}},
		"an unknown cluster": {Nodegroups: []eks.NodegroupGraft{{Cluster: "none", Name: "x"}}},
		"a subnet's id":      {Subnets: []ec2.SubnetGraft{{ID: "x"}}},
	} {
		if err := graft(wrong); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if err := e.srv.Graft(awsemu.Graft{Account: "123456789012", Region: "mars-north-1"}); err == nil {
		t.Error("an unknown region is taken")
	}
}

// A refresh waits for warm-ups where timings have them, as AWS does.
func TestRefreshWaitsForWarmups(t *testing.T) {
	for _, warmups := range []bool{false, true} {
		timings := world.Fast()
		timings.Warmups = warmups
		e := start(t, awsemu.Options{Timings: timings})
		id := e.group("web", 2)
		e.version(id, e.machine())
		e.refresh("web", id, "2", &asgtypes.RefreshPreferences{MinHealthyPercentage: aws.Int32(50), InstanceWarmup: aws.Int32(10)})
		f := e.until("web", asgtypes.InstanceRefreshStatusSuccessful)
		if took := f.EndTime.Sub(*f.StartTime); warmups != (took > 20*time.Second) {
			t.Errorf("with warm-ups %t it took %s", warmups, took)
		}
	}
}
