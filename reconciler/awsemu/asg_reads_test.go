package awsemu_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// The Describe…Types calls list the values of AWS's API reference.
func TestTypesOfAutoScaling(t *testing.T) {
	e := start(t, awsemu.Options{})
	c := e.autoscaling()
	var processes, metrics []string
	for _, p := range must(c.DescribeScalingProcessTypes(ctx, &autoscaling.DescribeScalingProcessTypesInput{}))(t).Processes {
		processes = append(processes, *p.ProcessName)
	}
	kinds := must(c.DescribeMetricCollectionTypes(ctx, &autoscaling.DescribeMetricCollectionTypesInput{}))(t)
	for _, m := range kinds.Metrics {
		metrics = append(metrics, *m.Metric)
	}
	for name, got := range map[string][]string{
		"AZRebalance AddToLoadBalancer AlarmNotification HealthCheck InstanceRefresh Launch ReplaceUnhealthy ScheduledActions Terminate":    processes,
		"AllocationStrategy ClosestToNextInstanceHour Default NewestInstance OldestInstance OldestLaunchConfiguration OldestLaunchTemplate": must(c.DescribeTerminationPolicyTypes(ctx, &autoscaling.DescribeTerminationPolicyTypesInput{}))(t).TerminationPolicyTypes,
		"autoscaling:EC2_INSTANCE_LAUNCHING autoscaling:EC2_INSTANCE_TERMINATING":                                                           must(c.DescribeLifecycleHookTypes(ctx, &autoscaling.DescribeLifecycleHookTypesInput{}))(t).LifecycleHookTypes,
	} {
		if diff := cmp.Diff(strings.Fields(name), got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	var adjustments []string
	for _, a := range must(c.DescribeAdjustmentTypes(ctx, &autoscaling.DescribeAdjustmentTypesInput{}))(t).AdjustmentTypes {
		adjustments = append(adjustments, *a.AdjustmentType)
	}
	if diff := cmp.Diff([]string{"ChangeInCapacity", "ExactCapacity", "PercentChangeInCapacity"}, adjustments); diff != "" {
		t.Errorf("adjustment types (-want +got):\n%s", diff)
	}
	if len(metrics) != 20 || len(kinds.Granularities) != 1 || *kinds.Granularities[0].Granularity != "1Minute" {
		t.Errorf("metrics %v, granularities %v", metrics, kinds.Granularities)
	}
}

// Target groups and load balancers are attached, listed by page, and detached.
func TestLoadBalancersOfAGroup(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.group("web", 0)
	c, web := e.autoscaling(), aws.String("web")
	arn := func(name string) string {
		return "arn:aws:elasticloadbalancing:eu-west-1:000000000000:targetgroup/" + name + "/0123456789abcdef"
	}
	must(c.AttachLoadBalancers(ctx, &autoscaling.AttachLoadBalancersInput{AutoScalingGroupName: web, LoadBalancerNames: []string{"two", "one"}}))(t)
	must(c.AttachLoadBalancerTargetGroups(ctx, &autoscaling.AttachLoadBalancerTargetGroupsInput{AutoScalingGroupName: web, TargetGroupARNs: []string{arn("b"), arn("a")}}))(t)
	shown := func(most int32) (out []string) {
		for token := (*string)(nil); ; {
			page := must(c.DescribeLoadBalancers(ctx, &autoscaling.DescribeLoadBalancersInput{AutoScalingGroupName: web, MaxRecords: &most, NextToken: token}))(t)
			for _, b := range page.LoadBalancers {
				out = append(out, *b.LoadBalancerName+" "+*b.State)
			}
			if token = page.NextToken; token == nil {
				break
			}
		}
		for token := (*string)(nil); ; {
			page := must(c.DescribeLoadBalancerTargetGroups(ctx, &autoscaling.DescribeLoadBalancerTargetGroupsInput{AutoScalingGroupName: web, MaxRecords: &most, NextToken: token}))(t)
			for _, g := range page.LoadBalancerTargetGroups {
				out = append(out, strings.Split(*g.LoadBalancerTargetGroupARN, "/")[1]+" "+*g.State)
			}
			if token = page.NextToken; token == nil {
				return out
			}
		}
	}
	if diff := cmp.Diff([]string{"one Added", "two Added", "a Added", "b Added"}, shown(1)); diff != "" {
		t.Errorf("an empty group (-want +got):\n%s", diff)
	}
	must(c.SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: web, DesiredCapacity: aws.Int32(1)}))(t)
	e.wait(2 * time.Second)
	must(c.DetachLoadBalancers(ctx, &autoscaling.DetachLoadBalancersInput{AutoScalingGroupName: web, LoadBalancerNames: []string{"two"}}))(t)
	must(c.DetachLoadBalancerTargetGroups(ctx, &autoscaling.DetachLoadBalancerTargetGroupsInput{AutoScalingGroupName: web, TargetGroupARNs: []string{arn("a")}}))(t)
	if diff := cmp.Diff([]string{"one InService", "b InService"}, shown(10)); diff != "" {
		t.Errorf("after detaching (-want +got):\n%s", diff)
	}
	_, err := c.DetachLoadBalancers(ctx, &autoscaling.DetachLoadBalancersInput{AutoScalingGroupName: web, LoadBalancerNames: []string{"two"}})
	wantError(t, err, "ValidationError", "Trying to remove Load Balancers that are not part of the group")
	_, err = c.AttachLoadBalancers(ctx, &autoscaling.AttachLoadBalancersInput{AutoScalingGroupName: web, LoadBalancerNames: strings.Fields("a b c d e f g h i j k")})
	wantError(t, err, "ValidationError", "At most 10")
	_, err = c.DescribeLoadBalancers(ctx, &autoscaling.DescribeLoadBalancersInput{AutoScalingGroupName: aws.String("none")})
	wantError(t, err, "ValidationError", "AutoScalingGroup name not found")
}
