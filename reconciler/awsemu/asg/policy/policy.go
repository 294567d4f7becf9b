// Package policy implements the scaling policies of Auto Scaling groups: the rules of a request,
// and the effect of a policy on a capacity.
//
// A simple policy has one adjustment. A step policy has one for each range of a metric's distance from its
// threshold. Target tracking and predictive policies only keep their configuration, because no metrics exist
// that could trigger them. Target tracking reports the names and ARNs of alarms, because AWS makes these
// itself. Alarms of other policies are made in CloudWatch, and trigger nothing here.
package policy

import (
	"cmp"
	"slices"

	"github.com/weir-gitops/weir/reconciler/awsemu/model"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// MaxPolicies is the maximum number of policies of a group.
const MaxPolicies = 50

// The types of policies.
const (
	Simple         = "SimpleScaling"
	Step           = "StepScaling"
	TargetTracking = "TargetTrackingScaling"
	Predictive     = "PredictiveScaling"
)

// Types returns the types of policies.
func Types() []string { return []string{Predictive, Simple, Step, TargetTracking} }

// AdjustmentTypes returns the types of an adjustment.
func AdjustmentTypes() []string {
	return []string{changeInCapacity, exactCapacity, percentChange}
}

const (
	changeInCapacity = "ChangeInCapacity"
	exactCapacity    = "ExactCapacity"
	percentChange    = "PercentChangeInCapacity"
)

// Policy is a scaling policy.
type Policy struct {
	Name, ARN, Type string
	AdjustmentType  string
	Aggregation     string
	MinStep         *int64
	MinMagnitude    *int64
	Adjustment      *int64
	Cooldown        *int64 // seconds
	Warmup          *int64 // seconds
	Steps           []StepAdjustment
	Tracking        wire.Data
	Forecast        wire.Data
	Enabled         bool
	Alarms          []Alarm
}

// StepAdjustment is the adjustment for a range of distances from the threshold. An empty bound means no
// bound.
type StepAdjustment struct {
	MetricIntervalLowerBound, MetricIntervalUpperBound string
	ScalingAdjustment                                  int64
}

// Alarm is a CloudWatch alarm.
type Alarm struct{ Name, ARN string }

// Input is a policy in a request.
type Input struct {
	PolicyName, PolicyType, AdjustmentType, MetricAggregationType string
	MinAdjustmentStep, MinAdjustmentMagnitude, ScalingAdjustment  *int64
	Cooldown, EstimatedInstanceWarmup                             *int64
	StepAdjustments                                               []StepAdjustment
	TargetTrackingConfiguration, PredictiveScalingConfiguration   wire.Data
	Enabled                                                       *bool
}

func invalid(format string, args ...any) *wire.Error {
	return wire.Fail("ValidationError", format, args...)
}

// Policy returns the policy in the request, without its ARN and alarms.
func (in *Input) Policy() (*Policy, *wire.Error) {
	p := &Policy{
		Name: in.PolicyName, Type: cmp.Or(in.PolicyType, Simple), AdjustmentType: in.AdjustmentType, Aggregation: in.MetricAggregationType,
		MinStep: in.MinAdjustmentStep, MinMagnitude: in.MinAdjustmentMagnitude, Adjustment: in.ScalingAdjustment, Cooldown: in.Cooldown, Warmup: in.EstimatedInstanceWarmup,
		Steps: in.StepAdjustments, Tracking: in.TargetTrackingConfiguration, Forecast: in.PredictiveScalingConfiguration, Enabled: in.Enabled == nil || *in.Enabled,
	}
	if !slices.Contains(Types(), p.Type) {
		return nil, invalid("Invalid value for parameter PolicyType: %s. Valid values are: SimpleScaling, StepScaling, TargetTrackingScaling, PredictiveScaling", p.Type)
	}
	for _, member := range p.members() {
		switch {
		case member.sent && !slices.Contains(member.types, p.Type):
			return nil, invalid("%s is not supported for policies of type %s", member.name, p.Type)
		case !member.sent && member.required && slices.Contains(member.types, p.Type):
			return nil, invalid("%s is required for policies of type %s", member.name, p.Type)
		}
	}
	checks := map[string]func() *wire.Error{Simple: p.checkAdjustment, Step: p.checkSteps, TargetTracking: p.checkTracking, Predictive: p.checkForecast}
	return p, checks[p.Type]()
}

// member is a member of the request that only some types of policies have.
type member struct {
	name     string
	sent     bool
	required bool
	types    []string
}

func (p *Policy) members() []member {
	adjusting := []string{Simple, Step}
	return []member{
		{"AdjustmentType", p.AdjustmentType != "", true, adjusting},
		{"MinAdjustmentStep", p.MinStep != nil, false, adjusting},
		{"MinAdjustmentMagnitude", p.MinMagnitude != nil, false, adjusting},
		{"ScalingAdjustment", p.Adjustment != nil, true, []string{Simple}},
		{"Cooldown", p.Cooldown != nil, false, []string{Simple}},
		{"StepAdjustments", len(p.Steps) > 0, true, []string{Step}},
		{"MetricAggregationType", p.Aggregation != "", false, []string{Step}},
		{"EstimatedInstanceWarmup", p.Warmup != nil, false, []string{Step, TargetTracking}},
		{"TargetTrackingConfiguration", p.Tracking != nil, true, []string{TargetTracking}},
		{"PredictiveScalingConfiguration", p.Forecast != nil, true, []string{Predictive}},
	}
}

// checkAdjustment applies the rules for adjustments.
func (p *Policy) checkAdjustment() *wire.Error {
	switch {
	case !slices.Contains(AdjustmentTypes(), p.AdjustmentType):
		return invalid("Invalid value for parameter AdjustmentType: %s. Valid values are: ChangeInCapacity, ExactCapacity, PercentChangeInCapacity", p.AdjustmentType)
	case p.MinMagnitude != nil && p.MinStep != nil:
		return invalid("MinAdjustmentMagnitude and MinAdjustmentStep cannot both be specified")
	case (p.MinMagnitude != nil || p.MinStep != nil) && p.AdjustmentType != percentChange:
		return invalid("MinAdjustmentMagnitude is not supported by the adjustment type %s", p.AdjustmentType)
	case p.Cooldown != nil && *p.Cooldown < 0:
		return invalid("Cooldown must not be negative")
	case p.AdjustmentType == exactCapacity && p.Adjustment != nil && *p.Adjustment < 0:
		return invalid("ScalingAdjustment must not be negative for the adjustment type ExactCapacity")
	}
	return nil
}

// checkTracking applies the rules of target tracking, and fills in its default.
func (p *Policy) checkTracking() *wire.Error {
	predefined := p.Tracking.Sub("PredefinedMetricSpecification")
	switch {
	case p.Tracking.Has("PredefinedMetricSpecification") == p.Tracking.Has("CustomizedMetricSpecification"):
		return invalid("TargetTrackingConfiguration must specify exactly one of PredefinedMetricSpecification and CustomizedMetricSpecification")
	case predefined.Text("PredefinedMetricType") == "ALBRequestCountPerTarget" && !predefined.Has("ResourceLabel"):
		return invalid("ResourceLabel must be specified for the metric type ALBRequestCountPerTarget")
	case predefined.Has("ResourceLabel") && predefined.Text("PredefinedMetricType") != "ALBRequestCountPerTarget":
		return invalid("ResourceLabel is not supported for the metric type %s", predefined.Text("PredefinedMetricType"))
	}
	p.Tracking = wire.Data{"DisableScaleIn": "false"}.MergedWith(p.Tracking)
	return nil
}

// checkForecast applies the rules of predictive scaling, and fills in its defaults.
func (p *Policy) checkForecast() *wire.Error {
	increases := p.Forecast.Text("MaxCapacityBreachBehavior") == "IncreaseMaxCapacity"
	switch {
	case len(p.Forecast.List("MetricSpecifications")) != 1:
		return invalid("PredictiveScalingConfiguration must specify exactly one metric specification")
	case increases != p.Forecast.Has("MaxCapacityBuffer"):
		return invalid("MaxCapacityBuffer is required, and supported, where MaxCapacityBreachBehavior is IncreaseMaxCapacity")
	case p.Forecast.Integer("SchedulingBufferTime") > 3600:
		return invalid("SchedulingBufferTime must not be greater than 3600 seconds")
	}
	p.Forecast = wire.Data{"Mode": "ForecastOnly", "MaxCapacityBreachBehavior": "HonorMaxCapacity"}.MergedWith(p.Forecast)
	return nil
}

// AlarmNames returns the middle parts of the names of the policy's own alarms.
func (p *Policy) AlarmNames() []string {
	switch {
	case p.Type != TargetTracking:
		return nil
	case p.Tracking.Text("DisableScaleIn") == "true":
		return []string{"AlarmHigh"}
	}
	return []string{"AlarmHigh", "AlarmLow"}
}

// Write writes the policy for a Describe call.
func (p *Policy) Write(w *wire.XML, group string) {
	w.Text("AutoScalingGroupName", group)
	w.Text("PolicyName", p.Name)
	w.Text("PolicyARN", p.ARN)
	w.Text("PolicyType", p.Type)
	w.Optional("AdjustmentType", p.AdjustmentType)
	w.OptionalInt("MinAdjustmentStep", p.MinStep)
	w.OptionalInt("MinAdjustmentMagnitude", p.MinMagnitude)
	w.OptionalInt("ScalingAdjustment", p.Adjustment)
	w.OptionalInt("Cooldown", p.Cooldown)
	wire.List(w, "StepAdjustments", "member", p.Steps, func(s StepAdjustment) {
		w.Optional("MetricIntervalLowerBound", s.MetricIntervalLowerBound)
		w.Optional("MetricIntervalUpperBound", s.MetricIntervalUpperBound)
		w.Integer("ScalingAdjustment", s.ScalingAdjustment)
	})
	w.Optional("MetricAggregationType", p.Aggregation)
	w.OptionalInt("EstimatedInstanceWarmup", p.Warmup)
	p.WriteAlarms(w)
	for name, d := range map[string]wire.Data{"TargetTrackingConfiguration": p.Tracking, "PredictiveScalingConfiguration": p.Forecast} {
		if d != nil {
			w.Open(name)
			w.WriteShape(d, model.Services()["autoscaling"].Shapes[name])
			w.Close(name)
		}
	}
	w.Boolean("Enabled", p.Enabled)
}

// WriteAlarms writes the policy's alarms.
func (p *Policy) WriteAlarms(w *wire.XML) {
	wire.List(w, "Alarms", "member", p.Alarms, func(a Alarm) {
		w.Text("AlarmName", a.Name)
		w.Text("AlarmARN", a.ARN)
	})
}
