package metrics

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-gitops/weir/status/members"
)

// coordination contains the metrics of a daemon that shares its work with other members.
type coordination struct {
	left, members, owned, unowned, unownedFor, lag, refused, apart, differ *prometheus.Desc
	view                                                                   func() members.View
	lease                                                                  func() time.Duration

	moves   *prometheus.CounterVec
	calls   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

// newCoordination defines and registers the metrics of a daemon that is one of several members.
func newCoordination(d *definer) *coordination {
	gauge := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(d.define("gauge", "coordination_"+name, help, labels), help, labels, nil)
	}
	c := &coordination{
		left:       gauge("lease_left_seconds", "Seconds left of this member's lease, 0 without a lease."),
		members:    gauge("members", "Number of live members, as this member sees them."),
		owned:      gauge("owned", "Number of scopes and sources that this member owns, by kind (scope or source).", "kind"),
		unowned:    gauge("unowned", "Number of scopes and sources without an owner, by kind (scope or source).", "kind"),
		unownedFor: gauge("unowned_seconds", "The longest time in seconds for which a scope or source has had no owner, 0 if each has one."),
		lag:        gauge("lag_seconds", "Seconds since this member last read the records."),
		refused:    gauge("writes_refused_seconds", "Seconds for which the engine has answered reads and rejected this member's writes, 0 while it accepts them."),
		apart:      gauge("clock_difference_seconds", "The largest difference in seconds between this member's clock and the clock of another member."),
		differ:     gauge("configurations_different", "Number of members whose configuration differs from this member's in a part that must be the same for all."),
		moves:      d.counter("coordination_moves_total", "Scopes and sources that this member took, handed over or lost, by kind (scope or source) and event: taken-new, taken-released, taken-over (its owner was gone), handed-over, stuck, released or lost.", "kind", "event"),
		calls:      d.counter("coordination_engine_calls_total", "Calls to the engine by operation and result: success, refused (by the rules of leases and records) or error.", "operation", "result"),
		seconds:    d.histogram("coordination_engine_call_duration_seconds", "Duration of calls to the engine by operation.", "operation"),
	}
	d.reg.MustRegister(c)
	return c
}

// Coordination registers functions that return the owners and the remaining time of the lease at each
// scrape. A member of several must call it before the first scrape.
func (m *Metrics) Coordination(view func() members.View, lease func() time.Duration) {
	m.coordination.view, m.coordination.lease = view, lease
	for _, kind := range []string{members.Scope, members.Source} {
		for _, event := range []string{members.TakenNew, members.TakenReleased, members.TakenOver, members.HandedOver, members.Stuck, members.Released, members.Lost} {
			m.coordination.moves.WithLabelValues(kind, event)
		}
	}
}

// Move counts a scope or source that was taken, handed over or lost.
func (m *Metrics) Move(kind, event string) { m.coordination.moves.WithLabelValues(kind, event).Inc() }

// EngineCall counts a call to the engine.
func (m *Metrics) EngineCall(operation, result string, took time.Duration) {
	m.coordination.calls.WithLabelValues(operation, result).Inc()
	m.coordination.seconds.WithLabelValues(operation).Observe(took.Seconds())
}

// Describe implements prometheus.Collector.
func (c *coordination) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.left, c.members, c.owned, c.unowned, c.unownedFor, c.lag, c.refused, c.apart, c.differ} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *coordination) Collect(out chan<- prometheus.Metric) {
	if c.view == nil {
		return
	}
	v := c.view()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	gauge(c.left, c.lease().Seconds())
	gauge(c.members, float64(len(v.Members)))
	gauge(c.lag, v.Engine.Lag)
	refused := 0.0
	if v.Engine.Refused != "" {
		refused = max(0, time.Since(v.Engine.RefusedSince).Seconds())
	}
	gauge(c.refused, refused)
	apart := 0.0
	owned := map[string]int{members.Scope: 0, members.Source: 0}
	for _, m := range v.Members {
		if m.Answers {
			owned[members.Scope], owned[members.Source] = m.Scopes, m.Sources
		}
		if m.Clock != nil {
			apart = max(apart, math.Abs(*m.Clock))
		}
	}
	gauge(c.apart, apart)
	gauge(c.differ, float64(len(v.Different())))
	unowned := map[string]int{}
	for _, o := range v.Unowned() {
		unowned[o.Kind]++
	}
	for _, kind := range []string{members.Scope, members.Source} {
		gauge(c.owned, float64(owned[kind]), kind)
		gauge(c.unowned, float64(unowned[kind]), kind)
	}
	gauge(c.unownedFor, v.Longest(time.Now()).Seconds())
}
