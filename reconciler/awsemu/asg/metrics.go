package asg

import (
	"maps"
	"slices"
	"sort"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// groupMetrics are the metrics that a group can send: EnableMetricsCollection in
// Auto Scaling's API reference.
func groupMetrics() []string {
	return []string{
		"GroupAndWarmPoolDesiredCapacity", "GroupAndWarmPoolTotalCapacity", "GroupDesiredCapacity", "GroupInServiceCapacity", "GroupInServiceInstances",
		"GroupMaxSize", "GroupMinSize", "GroupPendingCapacity", "GroupPendingInstances", "GroupStandbyCapacity", "GroupStandbyInstances",
		"GroupTerminatingCapacity", "GroupTerminatingInstances", "GroupTotalCapacity", "GroupTotalInstances", "WarmPoolDesiredCapacity",
		"WarmPoolPendingCapacity", "WarmPoolTerminatingCapacity", "WarmPoolTotalCapacity", "WarmPoolWarmedCapacity",
	}
}

type metricsInput struct {
	name    string
	metrics []string // all where none was sent
}

func parseMetrics(p *wire.Params) metricsInput {
	in := metricsInput{name: nameOf(p), metrics: p.Strings("Metrics")}
	for _, m := range in.metrics {
		if !slices.Contains(groupMetrics(), m) {
			p.Reject(wire.Fail("ValidationError", "Metric type %s is not supported", m))
		}
	}
	if len(in.metrics) == 0 {
		in.metrics = groupMetrics()
	}
	return in
}

func parseEnableMetrics(p *wire.Params) metricsInput {
	if g := p.Text("Granularity"); g != "1Minute" {
		p.Reject(wire.Fail("ValidationError", "Granularity %s is not supported. Valid values are: 1Minute", g))
	}
	return parseMetrics(p)
}

func enableMetrics(rq *request, in metricsInput) error {
	g, err := rq.Region.changeableGroup(in.name)
	if err != nil {
		return err
	}
	all := map[string]bool{}
	for _, m := range append(in.metrics, g.Metrics...) {
		all[m] = true
	}
	g.Metrics = slices.Sorted(maps.Keys(all))
	return nil
}

func disableMetrics(rq *request, in metricsInput) error {
	g, err := rq.Region.changeableGroup(in.name)
	if err != nil {
		return err
	}
	var left []string
	for _, m := range g.Metrics {
		if !slices.Contains(in.metrics, m) {
			left = append(left, m)
		}
	}
	sort.Strings(left)
	g.Metrics = left
	return nil
}
