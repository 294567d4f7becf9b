package awsemu_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

type policyInput = autoscaling.PutScalingPolicyInput

func (e *env) putPolicy(in policyInput) (*autoscaling.PutScalingPolicyOutput, error) {
	if in.PolicyName == nil {
		in.PolicyName = aws.String("p")
	}
	in.AutoScalingGroupName = aws.String("web")
	return e.autoscaling().PutScalingPolicy(ctx, &in)
}

func tracking(metric asgtypes.MetricType) *asgtypes.TargetTrackingConfiguration {
	return &asgtypes.TargetTrackingConfiguration{TargetValue: aws.Float64(50), PredefinedMetricSpecification: &asgtypes.PredefinedMetricSpecification{PredefinedMetricType: metric}}
}

func forecast() *asgtypes.PredictiveScalingConfiguration {
	return &asgtypes.PredictiveScalingConfiguration{MetricSpecifications: []asgtypes.PredictiveScalingMetricSpecification{{TargetValue: aws.Float64(40.5),
		PredefinedMetricPairSpecification: &asgtypes.PredictiveScalingPredefinedMetricPair{PredefinedMetricType: "ASGCPUUtilization"}}}}
}

func step(low, high *float64, n int32) asgtypes.StepAdjustment {
	return asgtypes.StepAdjustment{MetricIntervalLowerBound: low, MetricIntervalUpperBound: high, ScalingAdjustment: &n}
}

// Policies of every type come back as they were sent, with AWS's defaults, and with the
// alarms that target tracking makes, after a restart too.
func TestScalingPolicies(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.group("web", 1)
	f := aws.Float64
	sent := map[string]policyInput{
		"simple": {AdjustmentType: aws.String("ChangeInCapacity"), ScalingAdjustment: aws.Int32(-1), Cooldown: aws.Int32(60), Enabled: aws.Bool(false)},
		"step": {PolicyType: aws.String("StepScaling"), AdjustmentType: aws.String("PercentChangeInCapacity"), MinAdjustmentMagnitude: aws.Int32(2), EstimatedInstanceWarmup: aws.Int32(90),
			StepAdjustments: []asgtypes.StepAdjustment{step(f(0), f(10.5), 10), step(f(10.5), nil, 30)}},
		"target": {PolicyType: aws.String("TargetTrackingScaling"), TargetTrackingConfiguration: &asgtypes.TargetTrackingConfiguration{TargetValue: f(12.25), CustomizedMetricSpecification: &asgtypes.CustomizedMetricSpecification{
			MetricName: aws.String("m"), Namespace: aws.String("n"), Statistic: "Average", Dimensions: []asgtypes.MetricDimension{{Name: aws.String("d"), Value: aws.String("v")}}}}},
		"out only": {PolicyType: aws.String("TargetTrackingScaling"), TargetTrackingConfiguration: &asgtypes.TargetTrackingConfiguration{TargetValue: f(50), DisableScaleIn: aws.Bool(true),
			PredefinedMetricSpecification: &asgtypes.PredefinedMetricSpecification{PredefinedMetricType: "ALBRequestCountPerTarget", ResourceLabel: aws.String("app/a/1/targetgroup/b/2")}}},
		"predictive": {PolicyType: aws.String("PredictiveScaling"), PredictiveScalingConfiguration: forecast()},
	}
	arns := map[string]string{}
	for name, in := range sent {
		in.PolicyName = &name
		out := must(e.putPolicy(in))(t)
		arns[name] = *out.PolicyARN
		if alarms := map[string]int{"target": 2, "out only": 1}[name]; len(out.Alarms) != alarms {
			t.Errorf("%s: alarms %+v", name, out.Alarms)
		}
		again := must(e.putPolicy(in))(t)
		if diff := cmp.Diff(out.Alarms, again.Alarms, cmp.Exporter(func(reflect.Type) bool { return true })); *again.PolicyARN != *out.PolicyARN || diff != "" {
			t.Errorf("%s: put again it is another one: %s, %s", name, *again.PolicyARN, diff)
		}
	}
	e.saveAndLoad()
	got := map[string]asgtypes.ScalingPolicy{}
	for token := (*string)(nil); ; {
		page := must(e.autoscaling().DescribePolicies(ctx, &autoscaling.DescribePoliciesInput{AutoScalingGroupName: aws.String("web"), MaxRecords: aws.Int32(2), NextToken: token}))(t)
		for _, p := range page.ScalingPolicies {
			got[*p.PolicyName] = p
		}
		if token = page.NextToken; token == nil {
			break
		}
	}
	for name, in := range sent {
		p := got[name]
		want := asgtypes.ScalingPolicy{
			AutoScalingGroupName: aws.String("web"), PolicyName: &name, PolicyARN: aws.String(arns[name]), PolicyType: in.PolicyType, Enabled: in.Enabled, AdjustmentType: in.AdjustmentType,
			ScalingAdjustment: in.ScalingAdjustment, Cooldown: in.Cooldown, MinAdjustmentMagnitude: in.MinAdjustmentMagnitude, EstimatedInstanceWarmup: in.EstimatedInstanceWarmup,
			StepAdjustments: in.StepAdjustments, TargetTrackingConfiguration: in.TargetTrackingConfiguration, PredictiveScalingConfiguration: in.PredictiveScalingConfiguration,
		}
		switch name {
		case "simple":
			want.PolicyType = aws.String("SimpleScaling")
		case "step":
			want.MetricAggregationType = aws.String("Average")
		case "target":
			want.TargetTrackingConfiguration.DisableScaleIn = aws.Bool(false)
		case "predictive":
			want.PredictiveScalingConfiguration.Mode, want.PredictiveScalingConfiguration.MaxCapacityBreachBehavior = "ForecastOnly", "HonorMaxCapacity"
		}
		if want.Enabled == nil {
			want.Enabled = aws.Bool(true)
		}
		if len(p.Alarms) > 0 && (!strings.HasPrefix(*p.Alarms[0].AlarmName, "TargetTracking-web-AlarmHigh-") || !strings.HasPrefix(*p.Alarms[0].AlarmARN, "arn:aws:cloudwatch:eu-west-1:000000000000:alarm:TargetTracking-web-")) {
			t.Errorf("%s: alarms %+v", name, p.Alarms)
		}
		p.Alarms = nil
		if diff := cmp.Diff(want, p, cmpopts.EquateEmpty(), cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	names := func(in *autoscaling.DescribePoliciesInput) (out []string) {
		for _, p := range must(e.autoscaling().DescribePolicies(ctx, in))(t).ScalingPolicies {
			out = append(out, *p.PolicyName)
		}
		return out
	}
	for want, in := range map[string]*autoscaling.DescribePoliciesInput{
		"[out only target]": {PolicyTypes: []string{"TargetTrackingScaling"}},
		"[simple step]":     {PolicyNames: []string{"simple", arns["step"], "none"}},
	} {
		if got := fmt.Sprint(names(in)); got != want {
			t.Errorf("policies %s, want %s", got, want)
		}
	}
	for _, name := range []*string{aws.String("simple"), aws.String(arns["step"])} {
		must(e.autoscaling().DeletePolicy(ctx, &autoscaling.DeletePolicyInput{AutoScalingGroupName: aws.String("web"), PolicyName: name}))(t)
	}
	if got := fmt.Sprint(names(&autoscaling.DescribePoliciesInput{})); got != "[out only predictive target]" {
		t.Errorf("left are %s", got)
	}
	_, err := e.autoscaling().DeletePolicy(ctx, &autoscaling.DeletePolicyInput{AutoScalingGroupName: aws.String("web"), PolicyName: aws.String("simple")})
	wantError(t, err, "ValidationError", "not found")
}

func TestScalingPoliciesThatAreRefused(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.group("web", 1)
	f, change := aws.Float64, aws.String("ChangeInCapacity")
	steps := func(s ...asgtypes.StepAdjustment) policyInput {
		return policyInput{PolicyType: aws.String("StepScaling"), AdjustmentType: change, StepAdjustments: s}
	}
	target := func(c *asgtypes.TargetTrackingConfiguration) policyInput {
		return policyInput{PolicyType: aws.String("TargetTrackingScaling"), TargetTrackingConfiguration: c}
	}
	predictive := func(change func(*asgtypes.PredictiveScalingConfiguration)) policyInput {
		c := forecast()
		change(c)
		return policyInput{PolicyType: aws.String("PredictiveScaling"), PredictiveScalingConfiguration: c}
	}
	for _, tc := range []struct {
		in   policyInput
		text string
	}{
		{policyInput{PolicyType: aws.String("Magic")}, "PolicyType"},
		{policyInput{ScalingAdjustment: aws.Int32(1)}, "AdjustmentType is required"},
		{policyInput{AdjustmentType: change}, "ScalingAdjustment is required"},
		{policyInput{AdjustmentType: aws.String("Some"), ScalingAdjustment: aws.Int32(1)}, "AdjustmentType: Some"},
		{policyInput{AdjustmentType: change, ScalingAdjustment: aws.Int32(1), MinAdjustmentMagnitude: aws.Int32(1)}, "MinAdjustmentMagnitude"},
		{policyInput{AdjustmentType: aws.String("ExactCapacity"), ScalingAdjustment: aws.Int32(-1)}, "negative"},
		{policyInput{AdjustmentType: change, ScalingAdjustment: aws.Int32(1), EstimatedInstanceWarmup: aws.Int32(1)}, "EstimatedInstanceWarmup is not supported"},
		{steps(), "StepAdjustments is required"},
		{steps(step(nil, nil, 1)), "At least one of"},
		{steps(step(f(0), f(5), 1), step(f(4), nil, 1)), "can't overlap"},
		{steps(step(f(0), f(5), 1), step(f(6), nil, 1)), "gaps"},
		{steps(step(f(0), f(5), 1)), "unspecified upper bound"},
		{steps(step(f(-5), f(0), 1)), "unspecified lower bound"},
		{steps(step(f(5), f(5), 1)), "greater than its lower bound"},
		{target(nil), "TargetTrackingConfiguration is required"},
		{target(&asgtypes.TargetTrackingConfiguration{TargetValue: f(1)}), "exactly one"},
		{target(tracking("ALBRequestCountPerTarget")), "ResourceLabel must be specified"},
		{policyInput{PolicyType: aws.String("TargetTrackingScaling"), TargetTrackingConfiguration: tracking("ASGAverageCPUUtilization"), Cooldown: aws.Int32(1)}, "Cooldown is not supported"},
		{target(tracking("ASGAverageMood")), "failed to satisfy"},
		{predictive(func(c *asgtypes.PredictiveScalingConfiguration) { c.MaxCapacityBreachBehavior = "IncreaseMaxCapacity" }), "MaxCapacityBuffer"},
		{predictive(func(c *asgtypes.PredictiveScalingConfiguration) { c.SchedulingBufferTime = aws.Int32(3601) }), "SchedulingBufferTime"},
		{predictive(func(c *asgtypes.PredictiveScalingConfiguration) {
			c.MetricSpecifications = append(c.MetricSpecifications, c.MetricSpecifications[0])
		}), "exactly one metric"},
	} {
		_, err := e.putPolicy(tc.in)
		wantError(t, err, "ValidationError", tc.text)
	}
	ok := policyInput{AdjustmentType: change, ScalingAdjustment: aws.Int32(1)}
	for n := range 50 {
		ok.PolicyName = aws.String(fmt.Sprint("p", n))
		must(e.putPolicy(ok))(t)
	}
	ok.PolicyName = aws.String("p50")
	_, err := e.putPolicy(ok)
	wantError(t, err, "LimitExceeded", "scaling policies")
}

// A policy that is executed moves the desired capacity as AWS rounds it, within the
// group's bounds, and no sooner than its cooldown allows where that is honoured.
func TestExecutePolicy(t *testing.T) {
	f := aws.Float64
	simple := func(kind string, n int32, least *int32) policyInput {
		return policyInput{AdjustmentType: &kind, ScalingAdjustment: &n, MinAdjustmentMagnitude: least}
	}
	stepped := policyInput{PolicyType: aws.String("StepScaling"), AdjustmentType: aws.String("ChangeInCapacity"),
		StepAdjustments: []asgtypes.StepAdjustment{step(nil, f(-10), -3), step(f(-10), f(0), -1), step(f(0), f(10), 1), step(f(10), nil, 3)}}
	for name, tc := range map[string]struct {
		in    policyInput
		value *float64 // the threshold is 50
		want  string   // of 0 7 20
	}{
		"change":                 {simple("ChangeInCapacity", 2, nil), nil, "0 9 20"},
		"exact":                  {simple("ExactCapacity", 3, nil), nil, "0 3 20"},
		"beyond the maximum":     {simple("ExactCapacity", 30, nil), nil, "0 20 20"},
		"below the minimum":      {simple("ChangeInCapacity", -30, nil), nil, "0 0 20"},
		"percent, rounded down":  {simple("PercentChangeInCapacity", 40, nil), nil, "0 9 20"},
		"percent, less than one": {simple("PercentChangeInCapacity", 1, nil), nil, "0 8 20"},
		"percent, downwards":     {simple("PercentChangeInCapacity", -40, nil), nil, "0 5 20"},
		"percent, at least":      {simple("PercentChangeInCapacity", -10, aws.Int32(4)), nil, "0 3 20"},
		"at the threshold":       {stepped, f(50), "0 8 20"},
		"far above":              {stepped, f(60), "0 10 20"},
		"just below":             {stepped, f(49), "0 6 20"},
		"far below":              {stepped, f(40), "0 4 20"},
	} {
		t.Run(name, func(t *testing.T) {
			e := start(t, awsemu.Options{})
			e.group("web", 7)
			must(e.putPolicy(tc.in))(t)
			in := &autoscaling.ExecutePolicyInput{AutoScalingGroupName: aws.String("web"), PolicyName: aws.String("p"), MetricValue: tc.value}
			if tc.value != nil {
				in.BreachThreshold = f(50)
			}
			must(e.autoscaling().ExecutePolicy(ctx, in))(t)
			if got := sizes(e.read("web")); got != tc.want {
				t.Errorf("sizes %s, want %s", got, tc.want)
			}
			wantTold(t, e.told("web", 1), "a user request executed policy p changing the desired capacity from 7 to "+strings.Fields(tc.want)[1]+".")
		})
	}
	e := start(t, awsemu.Options{})
	e.group("web", 1)
	execute := func(in autoscaling.ExecutePolicyInput) error {
		in.AutoScalingGroupName, in.PolicyName = aws.String("web"), aws.String("p")
		_, err := e.autoscaling().ExecutePolicy(ctx, &in)
		return err
	}
	in := simple("ChangeInCapacity", 1, nil)
	in.Cooldown = aws.Int32(60)
	must(e.putPolicy(in))(t)
	if err := execute(autoscaling.ExecutePolicyInput{}); err != nil {
		t.Fatal(err)
	}
	e.wait(30 * time.Second)
	wantError(t, execute(autoscaling.ExecutePolicyInput{HonorCooldown: aws.Bool(true)}), "ScalingActivityInProgress", "cooldown period has not elapsed")
	wantError(t, execute(autoscaling.ExecutePolicyInput{MetricValue: f(1), BreachThreshold: f(1)}), "ValidationError", "not supported")
	e.wait(40 * time.Second)
	if err := execute(autoscaling.ExecutePolicyInput{HonorCooldown: aws.Bool(true)}); err != nil {
		t.Error(err)
	}
	must(e.putPolicy(stepped))(t)
	wantError(t, execute(autoscaling.ExecutePolicyInput{}), "ValidationError", "are required")
	must(e.putPolicy(policyInput{PolicyType: aws.String("TargetTrackingScaling"), TargetTrackingConfiguration: tracking("ASGAverageCPUUtilization")}))(t)
	wantError(t, execute(autoscaling.ExecutePolicyInput{}), "ValidationError", "cannot be executed")
	in.Enabled = aws.Bool(false)
	must(e.putPolicy(in))(t)
	wantError(t, execute(autoscaling.ExecutePolicyInput{}), "ValidationError", "disabled")
}
