package policy

import (
	"math"
	"slices"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// maxSteps is the number of step adjustments that a policy may have.
const maxSteps = 20

// lower and upper return the bounds of a step, infinite if it has none.
func (s *StepAdjustment) lower() float64 { return bound(s.MetricIntervalLowerBound, math.Inf(-1)) }
func (s *StepAdjustment) upper() float64 { return bound(s.MetricIntervalUpperBound, math.Inf(1)) }

func bound(text string, none float64) float64 {
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return n
	}
	return none
}

// checkSteps applies the rules of step policies: on each side of the threshold with ranges, the ranges cover
// everything without gap or overlap.
func (p *Policy) checkSteps() *wire.Error {
	if len(p.Steps) > maxSteps {
		return invalid("The number of step adjustments (%d) must not exceed %d", len(p.Steps), maxSteps)
	}
	if p.Aggregation == "" {
		p.Aggregation = "Average"
	}
	if !slices.Contains([]string{"Minimum", "Maximum", "Average"}, p.Aggregation) {
		return invalid("Invalid value for parameter MetricAggregationType: %s. Valid values are: Minimum, Maximum, Average", p.Aggregation)
	}
	p.Steps = slices.Clone(p.Steps)
	slices.SortStableFunc(p.Steps, func(a, b StepAdjustment) int { return compare(a.lower(), b.lower()) })
	for i, s := range p.Steps {
		switch {
		case s.lower() == math.Inf(-1) && s.upper() == math.Inf(1):
			return invalid("At least one of MetricIntervalLowerBound and MetricIntervalUpperBound must be specified")
		case s.lower() >= s.upper():
			return invalid("The upper bound of a step adjustment must be greater than its lower bound")
		case i > 0 && p.Steps[i-1].upper() > s.lower():
			return invalid("StepAdjustment intervals can't overlap")
		case i > 0 && p.Steps[i-1].upper() < s.lower():
			return invalid("StepAdjustment intervals can't have gaps between them")
		case p.AdjustmentType == exactCapacity && s.ScalingAdjustment < 0:
			return invalid("ScalingAdjustment must not be negative for the adjustment type ExactCapacity")
		}
	}
	switch first, last := p.Steps[0].lower(), p.Steps[len(p.Steps)-1].upper(); {
	case first < 0 && !math.IsInf(first, -1):
		return invalid("There must be a step adjustment with an unspecified lower bound when one step adjustment has a negative lower bound")
	case last > 0 && !math.IsInf(last, 1):
		return invalid("There must be a step adjustment with an unspecified upper bound when one step adjustment has a positive upper bound")
	}
	return p.checkAdjustment()
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// step finds the adjustment for a distance from the threshold. Above the threshold a range includes its
// lower bound, below it its upper bound.
func (p *Policy) step(distance float64) (int64, bool) {
	for _, s := range p.Steps {
		if distance > s.lower() && distance < s.upper() || distance >= 0 && distance == s.lower() || distance < 0 && distance == s.upper() {
			return s.ScalingAdjustment, true
		}
	}
	return 0, false
}

// Execution is a request to execute a policy.
type Execution struct{ MetricValue, BreachThreshold string }

// Capacity returns the policy's new value for a capacity, regardless of the group's bounds.
func (p *Policy) Capacity(now int64, e Execution) (int64, *wire.Error) {
	measured := e.MetricValue != "" || e.BreachThreshold != ""
	switch p.Type {
	case Simple:
		if measured {
			return 0, invalid("MetricValue and BreachThreshold are not supported for policies of type SimpleScaling")
		}
		return p.adjusted(now, *p.Adjustment), nil
	case Step:
		if e.MetricValue == "" || e.BreachThreshold == "" {
			return 0, invalid("MetricValue and BreachThreshold are required for policies of type StepScaling")
		}
		n, ok := p.step(bound(e.MetricValue, 0) - bound(e.BreachThreshold, 0))
		if !ok {
			return 0, invalid("There is no step adjustment for the metric value %s and the breach threshold %s", e.MetricValue, e.BreachThreshold)
		}
		return p.adjusted(now, n), nil
	}
	return 0, invalid("Policies of type %s cannot be executed", p.Type)
}

// adjusted applies an adjustment. For percentages, a result between zero and one instance counts as one, and
// any other is rounded towards zero.
func (p *Policy) adjusted(now, n int64) int64 {
	switch p.AdjustmentType {
	case exactCapacity:
		return n
	case changeInCapacity:
		return now + n
	}
	sign := int64(1)
	if n < 0 {
		sign = -1
	}
	change := now * n * sign / 100
	if change == 0 && now*n != 0 {
		change = 1
	}
	for _, least := range []*int64{p.MinMagnitude, p.MinStep} {
		if least != nil && n != 0 {
			change = max(change, *least)
		}
	}
	return now + sign*change
}
