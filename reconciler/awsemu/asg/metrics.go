package asg

import (
	"maps"
	"slices"
	"sort"
)

// groupMetrics returns the metrics that a group can send, according to EnableMetricsCollection in Auto
// Scaling's API reference.
func groupMetrics() []string {
	return []string{
		"GroupAndWarmPoolDesiredCapacity", "GroupAndWarmPoolTotalCapacity", "GroupDesiredCapacity", "GroupInServiceCapacity", "GroupInServiceInstances",
		"GroupMaxSize", "GroupMinSize", "GroupPendingCapacity", "GroupPendingInstances", "GroupStandbyCapacity", "GroupStandbyInstances",
		"GroupTerminatingCapacity", "GroupTerminatingInstances", "GroupTotalCapacity", "GroupTotalInstances", "WarmPoolDesiredCapacity",
		"WarmPoolPendingCapacity", "WarmPoolTerminatingCapacity", "WarmPoolTotalCapacity", "WarmPoolWarmedCapacity",
	}
}

func describeMetricTypes(rq *request, _ struct{}) error {
	writeEach(&rq.XML, "Metrics", "Metric", groupMetrics())
	writeEach(&rq.XML, "Granularities", "Granularity", []string{metricGranularity})
	return nil
}

// metricGranularity is the only granularity.
const metricGranularity = "1Minute"

// metricsInput names metrics. An empty list means all.
type metricsInput struct {
	groupName
	Metrics []string
}

func (in *metricsInput) Check() error {
	for _, m := range in.Metrics {
		if !slices.Contains(groupMetrics(), m) {
			return invalid("Metric type %s is not supported", m)
		}
	}
	if len(in.Metrics) == 0 {
		in.Metrics = groupMetrics()
	}
	return nil
}

type enableMetricsInput struct {
	metricsInput
	Granularity string
}

func (in *enableMetricsInput) Check() error {
	if in.Granularity != metricGranularity {
		return invalid("Granularity %s is not supported. Valid values are: 1Minute", in.Granularity)
	}
	return in.metricsInput.Check()
}

func enableMetrics(rq *request, in enableMetricsInput) error {
	g, err := rq.Region.changeableGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	all := map[string]bool{}
	for _, m := range append(in.Metrics, g.Metrics...) {
		all[m] = true
	}
	g.Metrics = slices.Sorted(maps.Keys(all))
	return nil
}

func disableMetrics(rq *request, in metricsInput) error {
	g, err := rq.Region.changeableGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	var left []string
	for _, m := range g.Metrics {
		if !slices.Contains(in.Metrics, m) {
			left = append(left, m)
		}
	}
	sort.Strings(left)
	g.Metrics = left
	return nil
}
