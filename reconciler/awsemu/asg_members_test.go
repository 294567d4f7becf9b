package awsemu_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// younger are members that the SDKs have and the emulator's models, of an earlier
// day, do not. Nothing here sends them.
var younger = []string{
	"InstancesDistribution.DistributionSegments", "CreateAutoScalingGroupInput.Operator",
	"TerminateInstanceInAutoScalingGroupInput.InstanceIds", "TerminateInstanceInAutoScalingGroupInput.AutoScalingGroupName",
}

// fillAll sets every member of a request, so that all of them are sent.
func fillAll(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillAll(v.Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(epoch))
			return
		}
		for i := range v.NumField() {
			if f, name := v.Field(i), v.Type().Field(i).Name; f.CanSet() && !slices.Contains(younger, v.Type().Name()+"."+name) {
				fillAll(f)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillAll(v.Index(0))
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"x": "x"}))
	case reflect.String:
		v.SetString("x")
	case reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Bool:
		v.SetBool(true)
	}
}

// TestEveryMemberIsKnown sends requests with all members that the SDKs have. The
// values are nonsense and refused; that a member is unknown must not be why.
func TestEveryMemberIsKnown(t *testing.T) {
	e := start(t, awsemu.Options{})
	for _, op := range []any{
		e.autoscaling().CreateAutoScalingGroup, e.autoscaling().UpdateAutoScalingGroup, e.autoscaling().DescribeAutoScalingGroups, e.autoscaling().DeleteAutoScalingGroup,
		e.autoscaling().CreateOrUpdateTags, e.autoscaling().DeleteTags, e.autoscaling().DescribeTags, e.autoscaling().StartInstanceRefresh,
		e.autoscaling().DescribeInstanceRefreshes, e.autoscaling().CancelInstanceRefresh, e.autoscaling().RollbackInstanceRefresh,
		e.autoscaling().SuspendProcesses, e.autoscaling().ResumeProcesses, e.autoscaling().SetDesiredCapacity, e.autoscaling().DescribeAccountLimits,
		e.autoscaling().DescribeScalingActivities, e.autoscaling().PutLifecycleHook, e.autoscaling().DescribeLifecycleHooks, e.autoscaling().DeleteLifecycleHook,
		e.autoscaling().PutWarmPool, e.autoscaling().DescribeWarmPool, e.autoscaling().DeleteWarmPool, e.autoscaling().AttachTrafficSources,
		e.autoscaling().DetachTrafficSources, e.autoscaling().DescribeTrafficSources, e.autoscaling().EnableMetricsCollection, e.autoscaling().DisableMetricsCollection, e.autoscaling().AttachLoadBalancerTargetGroups,
		e.autoscaling().DetachLoadBalancerTargetGroups, e.autoscaling().TerminateInstanceInAutoScalingGroup,
		e.autoscaling().DescribeAutoScalingInstances, e.autoscaling().SetInstanceProtection, e.autoscaling().SetInstanceHealth, e.autoscaling().EnterStandby,
		e.autoscaling().ExitStandby, e.autoscaling().AttachInstances, e.autoscaling().DetachInstances, e.autoscaling().CompleteLifecycleAction,
		e.autoscaling().RecordLifecycleActionHeartbeat, e.autoscaling().DescribeLifecycleHookTypes,
		e.autoscaling().PutScheduledUpdateGroupAction, e.autoscaling().BatchPutScheduledUpdateGroupAction, e.autoscaling().DescribeScheduledActions,
		e.autoscaling().DeleteScheduledAction, e.autoscaling().BatchDeleteScheduledAction, e.autoscaling().PutScalingPolicy, e.autoscaling().DescribePolicies,
		e.autoscaling().DeletePolicy, e.autoscaling().ExecutePolicy, e.autoscaling().PutNotificationConfiguration, e.autoscaling().DescribeNotificationConfigurations,
		e.autoscaling().DeleteNotificationConfiguration, e.autoscaling().CreateLaunchConfiguration, e.autoscaling().DescribeLaunchConfigurations, e.autoscaling().DeleteLaunchConfiguration, e.autoscaling().AttachLoadBalancers, e.autoscaling().DetachLoadBalancers, e.autoscaling().DescribeLoadBalancers, e.autoscaling().DescribeLoadBalancerTargetGroups,
		e.eks().CreateNodegroup, e.eks().UpdateNodegroupConfig, e.eks().UpdateNodegroupVersion, e.eks().DescribeNodegroup, e.eks().ListNodegroups,
		e.eks().TagResource, e.eks().UntagResource,
	} {
		f := reflect.ValueOf(op)
		in := reflect.New(f.Type().In(1).Elem())
		fillAll(in.Elem())
		t.Run(strings.TrimSuffix(in.Elem().Type().Name(), "Input"), func(t *testing.T) {
			err, _ := f.Call([]reflect.Value{reflect.ValueOf(ctx), in})[1].Interface().(error)
			if c := code(err); c == "MalformedInput" || c == "SerializationException" || strings.HasPrefix(c, "not an API error") || err != nil && strings.Contains(err.Error(), "Unknown parameter") {
				t.Error(err)
			}
		})
	}
}

// TestUnknownMembersAreRefused sends what the emulator does not have.
func TestUnknownMembersAreRefused(t *testing.T) {
	e := start(t, awsemu.Options{})
	in := &eks.CreateClusterInput{}
	fillAll(reflect.ValueOf(in).Elem())
	_, err := e.eks().CreateCluster(ctx, in)
	wantError(t, err, "InvalidParameterException", "Unknown parameter")
	_, err = e.autoscaling().GetPredictiveScalingForecast(ctx, &autoscaling.GetPredictiveScalingForecastInput{AutoScalingGroupName: aws.String("web"), PolicyName: aws.String("p"), StartTime: aws.Time(epoch), EndTime: aws.Time(epoch)})
	wantCode(t, err, "InvalidAction")
}
