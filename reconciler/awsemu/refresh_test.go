package awsemu_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
)

func (e *env) refresh(name, templateID, version string, prefs *asgtypes.RefreshPreferences) {
	e.t.Helper()
	must(e.autoscaling().StartInstanceRefresh(ctx, &autoscaling.StartInstanceRefreshInput{
		AutoScalingGroupName: aws.String(name), Preferences: prefs,
		DesiredConfiguration: &asgtypes.DesiredConfiguration{LaunchTemplate: spec(templateID, version)},
	}))(e.t)
}

func (e *env) lastRefresh(name string) asgtypes.InstanceRefresh {
	e.t.Helper()
	out := must(e.autoscaling().DescribeInstanceRefreshes(ctx, &autoscaling.DescribeInstanceRefreshesInput{AutoScalingGroupName: aws.String(name)}))(e.t)
	return out.InstanceRefreshes[0]
}

// until moves the clock in steps until the last refresh has the status.
func (e *env) until(name string, want asgtypes.InstanceRefreshStatus) asgtypes.InstanceRefresh {
	e.t.Helper()
	var f asgtypes.InstanceRefresh
	for range 200 {
		if f = e.lastRefresh(name); f.Status == want {
			return f
		}
		e.advance(500 * time.Millisecond)
	}
	e.t.Fatalf("refresh is %s (%s), want %s", f.Status, aws.ToString(f.StatusReason), want)
	return f
}

// broken is a body whose image does not exist.
func broken() *ec2types.RequestLaunchTemplateData {
	return &ec2types.RequestLaunchTemplateData{ImageId: aws.String(missingImage), InstanceType: "m5.large"}
}

func TestRefreshReplacesInBatches(t *testing.T) {
	e := start(t, awsemu.Options{})
	id := e.group("web", 4)
	e.version(id, e.machine())
	e.refresh("web", id, "2", &asgtypes.RefreshPreferences{MinHealthyPercentage: aws.Int32(50)})
	if f := e.lastRefresh("web"); f.Status != asgtypes.InstanceRefreshStatusPending || aws.ToInt32(f.InstancesToUpdate) != 4 {
		t.Errorf("at the start: %s, %d to update", f.Status, aws.ToInt32(f.InstancesToUpdate))
	}
	least := 4
	seen := []int32{}
	for range 40 {
		f := e.lastRefresh("web")
		if f.Status == asgtypes.InstanceRefreshStatusSuccessful {
			break
		}
		if g := e.read("web"); aws.ToString(g.LaunchTemplate.Version) != "1" {
			t.Errorf("the group has version %s before the end", aws.ToString(g.LaunchTemplate.Version))
		}
		serving := 0
		for state, n := range states(e.read("web")) {
			if state == "InService/1" || state == "InService/2" {
				serving += n
			}
		}
		least = min(least, serving)
		if p := aws.ToInt32(f.PercentageComplete); len(seen) == 0 || seen[len(seen)-1] != p {
			seen = append(seen, p)
		}
		e.advance(500 * time.Millisecond)
	}
	if least != 2 {
		t.Errorf("fewest in service = %d, want 2 of 4 at 50%%", least)
	}
	if diff := cmp.Diff([]int32{0, 50}, seen); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	g := e.read("web")
	wantStates(t, g, map[string]int{"InService/2": 4})
	if aws.ToString(g.LaunchTemplate.Version) != "2" {
		t.Errorf("version = %s, want 2", aws.ToString(g.LaunchTemplate.Version))
	}
}

func TestRefreshLaunchesFirstWhenItMayExceed(t *testing.T) {
	e := start(t, awsemu.Options{})
	id := e.group("web", 3)
	e.version(id, e.machine())
	e.refresh("web", id, "2", &asgtypes.RefreshPreferences{MinHealthyPercentage: aws.Int32(100), MaxHealthyPercentage: aws.Int32(100)})
	for range 60 {
		serving := 0
		for _, in := range e.read("web").Instances {
			if in.LifecycleState == asgtypes.LifecycleStateInService {
				serving++
			}
		}
		if serving < 3 {
			t.Fatalf("%d in service, never fewer than 3 wanted", serving)
		}
		e.advance(500 * time.Millisecond)
	}
	e.until("web", asgtypes.InstanceRefreshStatusSuccessful)
	wantStates(t, e.read("web"), map[string]int{"InService/2": 3})
}

func TestRefreshSkipsWhatMatches(t *testing.T) {
	e := start(t, awsemu.Options{})
	id := e.group("web", 2)
	before := e.read("web").Instances
	e.refresh("web", id, "1", &asgtypes.RefreshPreferences{SkipMatching: aws.Bool(true)})
	if f := e.until("web", asgtypes.InstanceRefreshStatusSuccessful); aws.ToInt32(f.PercentageComplete) != 100 {
		t.Errorf("percentage = %d", aws.ToInt32(f.PercentageComplete))
	}
	if aws.ToString(before[0].InstanceId) != aws.ToString(e.read("web").Instances[0].InstanceId) {
		t.Error("a matching member was replaced")
	}
}

func TestRefreshStopsAtCheckpoints(t *testing.T) {
	e := start(t, awsemu.Options{})
	id := e.group("web", 4)
	e.version(id, e.machine())
	e.refresh("web", id, "2", &asgtypes.RefreshPreferences{
		MinHealthyPercentage: aws.Int32(0), CheckpointPercentages: []int32{25, 100}, CheckpointDelay: aws.Int32(600), BakeTime: aws.Int32(60),
	})
	e.wait(9 * time.Minute)
	wantStates(t, e.read("web"), map[string]int{"InService/1": 3, "InService/2": 1})
	if f := e.lastRefresh("web"); aws.ToInt32(f.PercentageComplete) != 25 || f.Status != asgtypes.InstanceRefreshStatusInProgress {
		t.Errorf("at the checkpoint: %s %d%%", f.Status, aws.ToInt32(f.PercentageComplete))
	}
	e.wait(80 * time.Second)
	if f := e.lastRefresh("web"); f.Status != asgtypes.InstanceRefreshStatusBaking {
		t.Errorf("status = %s, want Baking", f.Status)
	}
	e.wait(60 * time.Second)
	if f := e.lastRefresh("web"); f.Status != asgtypes.InstanceRefreshStatusSuccessful {
		t.Errorf("status = %s, want Successful", f.Status)
	}
}

func TestRefreshFailsOnAnImageThatIsNotThere(t *testing.T) {
	e := start(t, awsemu.Options{})
	id := e.group("web", 3)
	e.version(id, broken())
	e.refresh("web", id, "2", nil)
	f := e.until("web", asgtypes.InstanceRefreshStatusFailed)
	if got := aws.ToString(f.StatusReason); got != "Instances failed to launch: The image id '["+missingImage+"]' does not exist" {
		t.Errorf("reason = %q", got)
	}
	activities := must(e.autoscaling().DescribeScalingActivities(ctx, &autoscaling.DescribeScalingActivitiesInput{
		AutoScalingGroupName: aws.String("web"), Filters: []asgtypes.Filter{{Name: aws.String("Status"), Values: []string{"Failed"}}}}))(t)
	if len(activities.Activities) == 0 {
		t.Error("no failed activity")
	}
	e.wait(10 * time.Second)
	g := e.read("web")
	wantStates(t, g, map[string]int{"InService/1": 3})
	if aws.ToString(g.LaunchTemplate.Version) != "1" {
		t.Errorf("version = %s, want 1", aws.ToString(g.LaunchTemplate.Version))
	}
}

func TestRefreshRollsBackByItself(t *testing.T) {
	e := start(t, awsemu.Options{})
	id := e.group("web", 4)
	e.version(id, e.machine())
	e.refresh("web", id, "2", &asgtypes.RefreshPreferences{AutoRollback: aws.Bool(true), MinHealthyPercentage: aws.Int32(50)})
	for e.read("web"); states(e.read("web"))["InService/2"] < 2; {
		e.advance(500 * time.Millisecond)
	}
	remove := e.srv.Faults().Launches.Add(ec2.LaunchFault{Code: "InsufficientInstanceCapacity"})
	f := e.until("web", asgtypes.InstanceRefreshStatusRollbackInProgress)
	if d := f.RollbackDetails; d == nil || aws.ToInt32(d.PercentageCompleteOnRollback) != 50 {
		t.Errorf("rollback details = %+v", d)
	}
	remove()
	e.until("web", asgtypes.InstanceRefreshStatusRollbackSuccessful)
	e.wait(5 * time.Second)
	wantStates(t, e.read("web"), map[string]int{"InService/1": 4})
}

func TestRefreshFailsOnMembersThatDoNotGetHealthy(t *testing.T) {
	e := start(t, awsemu.Options{})
	id := e.group("web", 2)
	e.version(id, e.machine())
	e.srv.Faults().Launches.Add(ec2.LaunchFault{InstanceType: "m5.large"})
	e.refresh("web", id, "2", nil)
	e.until("web", asgtypes.InstanceRefreshStatusFailed)
	e.srv.Faults().Clear()
	e.wait(2 * time.Minute)
	wantStates(t, e.read("web"), map[string]int{"InService/1": 2})
}

func TestRefreshIsCancelled(t *testing.T) {
	e := start(t, awsemu.Options{})
	id := e.group("web", 4)
	e.version(id, e.machine())
	e.refresh("web", id, "2", nil)
	e.wait(2 * time.Second)
	must(e.autoscaling().CancelInstanceRefresh(ctx, &autoscaling.CancelInstanceRefreshInput{AutoScalingGroupName: aws.String("web")}))(t)
	if f := e.lastRefresh("web"); f.Status != asgtypes.InstanceRefreshStatusCancelling {
		t.Errorf("status = %s, want Cancelling", f.Status)
	}
	e.until("web", asgtypes.InstanceRefreshStatusCancelled)
	_, err := e.autoscaling().CancelInstanceRefresh(ctx, &autoscaling.CancelInstanceRefreshInput{AutoScalingGroupName: aws.String("web")})
	wantError(t, err, "ActiveInstanceRefreshNotFound", "No in progress")
	if v := aws.ToString(e.read("web").LaunchTemplate.Version); v != "1" {
		t.Errorf("version = %s, want 1", v)
	}
}

func TestRefreshRefuses(t *testing.T) {
	e := start(t, awsemu.Options{})
	id := e.group("web", 2)
	e.version(id, e.machine())
	begin := func(version string, prefs *asgtypes.RefreshPreferences) error {
		in := &autoscaling.StartInstanceRefreshInput{AutoScalingGroupName: aws.String("web"), Preferences: prefs}
		if version != "" {
			in.DesiredConfiguration = &asgtypes.DesiredConfiguration{LaunchTemplate: spec(id, version)}
		}
		_, err := e.autoscaling().StartInstanceRefresh(ctx, in)
		return err
	}
	rollback := func() error {
		_, err := e.autoscaling().RollbackInstanceRefresh(ctx, &autoscaling.RollbackInstanceRefreshInput{AutoScalingGroupName: aws.String("web")})
		return err
	}
	auto := &asgtypes.RefreshPreferences{AutoRollback: aws.Bool(true)}
	wantError(t, begin("", auto), "ValidationError", "requires a desired configuration")
	wantError(t, begin("$Latest", auto), "ValidationError", "$Latest")
	wantError(t, begin("9", nil), "ValidationError", "Could not find the specified version 9")
	wantError(t, begin("2", &asgtypes.RefreshPreferences{CheckpointPercentages: []int32{50, 20}}), "ValidationError", "ascending")
	wantError(t, begin("2", &asgtypes.RefreshPreferences{MaxHealthyPercentage: aws.Int32(120)}), "ValidationError", "requires MinHealthyPercentage")
	wantError(t, rollback(), "ActiveInstanceRefreshNotFound", "web")
	if err := begin("2", nil); err != nil {
		t.Fatal(err)
	}
	wantError(t, begin("2", nil), "InstanceRefreshInProgress", "already in progress")
	_, err := e.autoscaling().UpdateAutoScalingGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String("web"), LaunchTemplate: spec(id, "2")})
	wantError(t, err, "ValidationError", "active instance refresh with a desired configuration")
	_, err = e.autoscaling().PutWarmPool(ctx, &autoscaling.PutWarmPoolInput{AutoScalingGroupName: aws.String("web")})
	wantError(t, err, "InstanceRefreshInProgress", "warm pool")
	if err := rollback(); err != nil {
		t.Fatal(err)
	}
	wantError(t, rollback(), "IrreversibleInstanceRefresh", "RollbackInProgress")
	e.until("web", asgtypes.InstanceRefreshStatusRollbackSuccessful)
	if err := begin("", nil); err != nil {
		t.Fatal(err)
	}
	wantError(t, rollback(), "IrreversibleInstanceRefresh", "no desired configuration")
}
