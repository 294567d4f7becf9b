package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// askedGauges contains the gauges that are computed at each scrape: ages and queue lengths.
type askedGauges struct {
	m                       *Metrics
	target, source, waiting *prometheus.Desc
	history                 *prometheus.Desc
	queues                  map[string]func() int
	historySize             func() int64
}

// newAskedGauges defines and registers the gauges.
func newAskedGauges(m *Metrics, d *definer) *askedGauges {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(d.define("gauge", name, help, labels), help, labels, nil)
	}
	g := &askedGauges{
		m:       m,
		target:  desc("target_staleness_seconds", "Seconds since the last complete observation and plan of a target, or since weir learned of the target.", "target"),
		source:  desc("source_staleness_seconds", "Seconds since the last successful read of a source, or since weir learned of the source.", "source"),
		waiting: desc("queue_length", "Waiting entries by queue: statuses, notifications, history, renders (targets with a slow render) or passes (targets whose pass waits for AWS).", "queue"),
		history: desc("history_size_bytes", "Size of the file that holds the history."),
		queues:  map[string]func() int{},
	}
	d.reg.MustRegister(g)
	return g
}

// Describe implements prometheus.Collector.
func (g *askedGauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.target, g.source, g.waiting, g.history} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (g *askedGauges) Collect(out chan<- prometheus.Metric) {
	g.m.mu.Lock()
	now := g.m.now()
	for name, since := range g.m.targetSince {
		out <- prometheus.MustNewConstMetric(g.target, prometheus.GaugeValue, max(0, now.Sub(since).Seconds()), name)
	}
	for name, since := range g.m.sourceSince {
		out <- prometheus.MustNewConstMetric(g.source, prometheus.GaugeValue, max(0, now.Sub(since).Seconds()), name)
	}
	queues, size := g.queues, g.historySize
	g.m.mu.Unlock()
	// queues was filled before the first scrape, and does not change afterwards.
	for name, length := range queues {
		out <- prometheus.MustNewConstMetric(g.waiting, prometheus.GaugeValue, float64(length()), name)
	}
	if size != nil {
		out <- prometheus.MustNewConstMetric(g.history, prometheus.GaugeValue, float64(size()))
	}
}

// Know sets the sources and targets. The ages of new sources and targets start now.
func (m *Metrics) Know(sources, targets []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	know := func(since map[string]time.Time, names []string) {
		for _, name := range names {
			if _, ok := since[name]; !ok {
				since[name] = m.now()
			}
		}
	}
	know(m.sourceSince, sources)
	know(m.targetSince, targets)
	// A counter that first appears with its first event hides that event from increase().
	for _, target := range targets {
		m.rolloutsStarted.WithLabelValues(target)
		m.corrected.WithLabelValues(target)
		for _, result := range []string{"succeeded", "failed", "rolled-back", "rollback-failed"} {
			m.rolloutsEnded.WithLabelValues(target, result)
		}
	}
}

// Queue registers a function that returns the length of a queue at each scrape. It is called before
// the first scrape.
func (m *Metrics) Queue(name string, length func() int) { m.gauges.queues[name] = length }

// HistorySize registers a function that returns the size of the history's file in bytes at each
// scrape. It is called before the first scrape.
func (m *Metrics) HistorySize(bytes func() int64) { m.gauges.historySize = bytes }
