package awsemu_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/awsemu/asg"
)

// A group whose policy retains instances keeps those whose termination hook was
// abandoned, beside its capacity, until somebody ends them; without a hook, or without
// the policy, they end.
func TestInstancesAreRetained(t *testing.T) {
	for name, tc := range map[string]struct {
		policy     asgtypes.RetentionAction
		transition string
		retained   bool
	}{
		"policy and hook":                {policy: "retain", transition: "autoscaling:EC2_INSTANCE_TERMINATING", retained: true},
		"a policy without a hook":        {policy: "retain"},
		"a hook for launches":            {policy: "retain", transition: "autoscaling:EC2_INSTANCE_LAUNCHING"},
		"a hook and a policy that ends":  {policy: "terminate", transition: "autoscaling:EC2_INSTANCE_TERMINATING"},
		"a hook without a policy at all": {transition: "autoscaling:EC2_INSTANCE_TERMINATING"},
	} {
		t.Run(name, func(t *testing.T) {
			e := start(t, awsemu.Options{})
			e.group("web", 2)
			client, group := e.autoscaling(), aws.String("web")
			if tc.policy != "" {
				must(client.UpdateAutoScalingGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: group,
					InstanceLifecyclePolicy: &asgtypes.InstanceLifecyclePolicy{RetentionTriggers: &asgtypes.RetentionTriggers{TerminateHookAbandon: tc.policy}}}))(t)
			}
			if tc.transition != "" {
				must(client.PutLifecycleHook(ctx, &autoscaling.PutLifecycleHookInput{AutoScalingGroupName: group, LifecycleHookName: aws.String("h"), LifecycleTransition: &tc.transition}))(t)
			}
			e.srv.Faults().Hooks.Add(asg.HookListener{Group: "web", Result: "ABANDON", Transition: "autoscaling:EC2_INSTANCE_TERMINATING"})
			set := func(n int32) {
				must(client.SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: group, DesiredCapacity: aws.Int32(n)}))(t)
				e.wait(5 * time.Second)
			}
			set(1)
			if !tc.retained {
				wantStates(t, e.read("web"), map[string]int{"InService/1": 1})
				return
			}
			wantStates(t, e.read("web"), map[string]int{"InService/1": 1, "Terminating:Retained/1": 1})
			set(2) // which takes a new one
			wantStates(t, e.read("web"), map[string]int{"InService/1": 2, "Terminating:Retained/1": 1})
			set(0)
			wantStates(t, e.read("web"), map[string]int{"Terminating:Retained/1": 3})
			_, err := client.DeleteAutoScalingGroup(ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: group})
			wantCode(t, err, "ResourceInUse")
			_, err = client.DeleteAutoScalingGroup(ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: group, ForceDelete: aws.Bool(true)})
			wantError(t, err, "ValidationError", "You can't force delete this Auto Scaling group because the TerminateHookAbandon retention trigger is set to retain.")
			ids := e.read("web").Instances
			must(client.TerminateInstanceInAutoScalingGroup(ctx, &autoscaling.TerminateInstanceInAutoScalingGroupInput{InstanceId: ids[0].InstanceId, ShouldDecrementDesiredCapacity: aws.Bool(false)}))(t)
			must(e.ec2().TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{*ids[1].InstanceId}}))(t)
			e.wait(5 * time.Second)
			wantStates(t, e.read("web"), map[string]int{"Terminating:Retained/1": 1})
			must(client.UpdateAutoScalingGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: group,
				InstanceLifecyclePolicy: &asgtypes.InstanceLifecyclePolicy{RetentionTriggers: &asgtypes.RetentionTriggers{TerminateHookAbandon: "terminate"}}}))(t)
			must(client.DeleteAutoScalingGroup(ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: group, ForceDelete: aws.Bool(true)}))(t)
			e.wait(5 * time.Second)
			if e.read("web") != nil {
				t.Error("the group is still there")
			}
		})
	}
}
