package awsemu

import "sort"

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

func parseMetrics(p *params) metricsInput {
	in := metricsInput{name: nameOf(p), metrics: p.strings("Metrics")}
	for _, m := range in.metrics {
		if !contains(groupMetrics(), m) {
			p.reject(fail("ValidationError", "Metric type %s is not supported", m))
		}
	}
	if len(in.metrics) == 0 {
		in.metrics = groupMetrics()
	}
	return in
}

func parseEnableMetrics(p *params) metricsInput {
	if g := p.text("Granularity"); g != "1Minute" {
		p.reject(fail("ValidationError", "Granularity %s is not supported. Valid values are: 1Minute", g))
	}
	return parseMetrics(p)
}

func enableMetrics(rq *request, in metricsInput) error {
	g, err := rq.region.changeableGroup(in.name)
	if err != nil {
		return err
	}
	all := map[string]bool{}
	for _, m := range append(in.metrics, g.Metrics...) {
		all[m] = true
	}
	g.Metrics = sortedKeys(all)
	return nil
}

func disableMetrics(rq *request, in metricsInput) error {
	g, err := rq.region.changeableGroup(in.name)
	if err != nil {
		return err
	}
	var left []string
	for _, m := range g.Metrics {
		if !contains(in.metrics, m) {
			left = append(left, m)
		}
	}
	sort.Strings(left)
	g.Metrics = left
	return nil
}
