package reconciler_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awscloud"
	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// TestTargetGroupsThatAreNoneHideNoOther: AWS fails a list of ARNs for one that it does
// not know, or does not take for one, and thousands of these cost few calls.
func TestTargetGroupsThatAreNoneHideNoOther(t *testing.T) {
	w := newWorld(t)
	w.seed(fmt.Sprintf(`{"targetGroups": [{"name": "web", "vpc": %q}]}`, w.defaultVPC()))
	there := targetGroupARNs(t, w)["web"]
	cloud := w.scope.Cloud.(*awscloud.Cloud)
	odd := "arn:aws:elasticloadbalancing:" + testRegion + ":000000000000:targetgroup/odd"
	arns := []string{there, odd, strings.Replace(odd, "odd", "gone/0123456789abcdef", 1)}
	for i := range 15 {
		arns = append(arns, fmt.Sprintf("%s%d", odd, i))
	}
	slices.Sort(arns)
	found, err := cloud.TargetGroups(context.Background(), arns)
	if len(found) != 1 || found[there].VPC == "" || err != nil {
		t.Errorf("got %v, %v", found, err)
	}
	arns = []string{there}
	for i := range 2000 {
		arns = append(arns, fmt.Sprintf("%s%05d/0123456789abcdef", odd, i))
	}
	w.srv.ResetCalls()
	_, err = cloud.TargetGroups(context.Background(), arns)
	if n := w.srv.CallCounts()["elasticloadbalancing:DescribeTargetGroups"]; n > 150 || err == nil {
		t.Errorf("%d calls: %v", n, err)
	}
}

// TestWildcardsAreNames: what a manifest names is no pattern, which would have AWS list
// all that there is.
func TestWildcardsAreNames(t *testing.T) {
	w := newWorld(t)
	cloud, ctx := w.scope.Cloud.(*awscloud.Cloud), context.Background()
	w.srv.ResetCalls()
	types, err := cloud.InstanceTypes(ctx, []string{"*", "m5.*", "m5.large"})
	if len(types) != 1 || err != nil {
		t.Errorf("got %v, %v", types, err)
	}
	zones, err := cloud.Offerings(ctx, []string{"*", "m5.larg?", "m5.large"})
	if len(zones) != 1 || err != nil {
		t.Errorf("got %v, %v", zones, err)
	}
	groups, err := cloud.GroupsThatExist(ctx, []string{"sg-*"})
	if len(groups) != 0 || err != nil {
		t.Errorf("got %v, %v", groups, err)
	}
}

// preflightCalls are those that nothing but a preflight makes for the pool web.
var preflightCalls = []string{
	"GetInstanceProfile", "DescribeKeyPairs", "DescribePlacementGroups", "DescribeTargetGroups", "DescribeKey", "DescribeInstanceTypeOfferings", "GetServiceQuota", "RunInstances",
}

// TestPuttingRightAsksNothing: whatever somebody changed by hand, a pass that only puts it
// back asks none of the questions.
func TestPuttingRightAsksNothing(t *testing.T) {
	ctx := context.Background()
	for name, drift := range map[string]func(*world){
		"size": func(w *world) {
			w.check(w.groups().SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: aws.String("web"), DesiredCapacity: aws.Int32(1)}))
		},
		"bounds": func(w *world) {
			w.check(w.groups().UpdateAutoScalingGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String("web"), MaxSize: aws.Int32(30), DefaultCooldown: aws.Int32(7)}))
		},
		"subnets": func(w *world) {
			subnet := strings.Split(*w.group("web").VPCZoneIdentifier, ",")[0]
			w.check(w.groups().UpdateAutoScalingGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String("web"), VPCZoneIdentifier: &subnet}))
		},
		"default version": func(w *world) {
			w.byHand("web", func(d *types.RequestLaunchTemplateData) { d.InstanceType = types.InstanceTypeT3Large })
			w.check(w.ec2().ModifyLaunchTemplate(ctx, &ec2.ModifyLaunchTemplateInput{LaunchTemplateName: aws.String("web"), DefaultVersion: aws.String("2")}))
		},
		"a version that nothing runs": func(w *world) {
			w.setVersion("web", w.byHand("web", func(d *types.RequestLaunchTemplateData) { d.InstanceType = types.InstanceTypeT3Large }))
		},
		"suspended process": func(w *world) {
			w.check(w.groups().SuspendProcesses(ctx, &autoscaling.SuspendProcessesInput{AutoScalingGroupName: aws.String("web"), ScalingProcesses: []string{"AZRebalance"}}))
		},
	} {
		w := newWorld(t).asks()
		blue := target("blue", groupPool("web", "m5.large", 2))
		w.settle(blue)
		w.clock.Advance(25 * time.Hour) // every answer is old
		w.must(reconciler.Apply, blue)
		drift(w)
		w.srv.ResetCalls()
		w.settle(blue)
		for _, c := range w.srv.Calls() {
			if slices.Contains(preflightCalls, c.Operation) {
				t.Errorf("%s: weir calls %s", name, c.Operation)
			}
		}
	}
}

// TestAnAWSThatDoesNotAnswerHoldsUpOnePass: one question hangs; the plan is applied
// without it, tells what the others told, and the passes that follow do not wait.
func TestAnAWSThatDoesNotAnswerHoldsUpOnePass(t *testing.T) {
	t.Parallel()
	w := newWorld(t).asks()
	defer w.srv.Faults().Add(awsemu.Fault{Kind: awsemu.Slow, Operation: "GetInstanceProfile", Delay: time.Minute, Times: -1})()
	d := w.written(writtenText("web", "", webSpec+"  iamInstanceProfile: nodes.cluster-api-provider-aws.sigs.k8s.io\n  sshKeyName: gone"))
	began := time.Now()
	codes := func() (out []string) {
		for _, f := range refusalsOf(w.must(reconciler.PlanOnly, d)[0]) {
			out = append(out, f.Code)
		}
		slices.Sort(out)
		return out
	}
	first := codes()
	took := time.Since(began)
	if !slices.Equal(first, []string{"preflight-unasked", "unknown-name"}) || took > 50*time.Second { // less than the answer takes
		t.Errorf("after %s: %v", took, first)
	}
	w.srv.ResetCalls()
	for range 4 {
		w.clock.Advance(time.Minute)
		if again := codes(); !slices.Equal(again, first) {
			t.Errorf("again: %v", again)
		}
	}
	if n := w.srv.CallCounts()["iam:GetInstanceProfile"]; n > 0 {
		t.Errorf("it was asked %d times again", n)
	}
}
