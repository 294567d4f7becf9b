package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/report"
)

// Report counts a pass of a target, and sets the target's gauges. Without a plan and pools, gauges of the
// last observation stay.
func (m *Metrics) Report(_ context.Context, r *plan.Report) {
	result := string(report.PhaseOf(r))
	m.passes.WithLabelValues(r.Target, result).Inc()
	m.passSeconds.WithLabelValues(result).Observe(r.Duration.Seconds())
	m.lastPass.WithLabelValues(r.Target).Set(seconds(r.StartedAt.Add(r.Duration)))
	converged := 0.0
	if r.Converged() {
		converged = 1
	}
	m.converged.WithLabelValues(r.Target).Set(converged)
	for _, o := range r.Outcomes {
		m.steps.WithLabelValues(string(o.Step.Resource), string(o.Step.Verb), string(o.Status)).Inc()
		if o.Step.Drift != nil && o.Status == step.Done {
			m.corrected.WithLabelValues(r.Target).Inc()
		}
	}
	m.count(m.heldTo, r.Target, heldTo(r))
	severities := map[string]int{}
	for _, d := range r.Diagnostics {
		severities[d.Severity.String()]++
	}
	m.count(m.findings, r.Target, severities)
	// Without a plan nothing was observed, so the earlier values stay.
	if r.Plan != nil || len(r.Pools) > 0 {
		m.countPools(r)
	}
	if r.Plan != nil {
		m.countPlan(r)
	}
}

// heldTo returns the hold of a target, as one of the possible label values.
func heldTo(r *plan.Report) map[string]int {
	out := map[string]int{"earlier": 0, "nothing": 0}
	switch {
	case r.Fallback == nil:
	case r.Fallback.To() == "":
		out["nothing"] = 1
	default:
		out["earlier"] = 1
	}
	return out
}

// countPools sets the gauges of a target's pools, machines and rollouts.
func (m *Metrics) countPools(r *plan.Report) {
	phases, machines := map[string]int{}, map[string]int{"desired": 0, "there": 0, "ready": 0, "unavailable": 0}
	rolling, left := 0, 0
	for _, p := range r.Pools {
		phases[string(p.Phase)]++
		machines["desired"] += int(p.DesiredReplicas)
		machines["there"] += int(p.Replicas)
		machines["ready"] += int(p.ReadyReplicas)
		machines["unavailable"] += int(p.UnavailableReplicas)
		if p.Rollout != nil {
			rolling++
			left += int(p.Rollout.InstancesLeft)
		}
	}
	m.count(m.pools, r.Target, phases)
	m.count(m.machines, r.Target, machines)
	m.rolloutsActive.WithLabelValues(r.Target).Set(float64(rolling))
	m.rolloutsLeft.WithLabelValues(r.Target).Set(float64(left))
}

// countPlan sets the gauges of a target's held steps and drift. A pass without an error also restarts its
// staleness.
func (m *Metrics) countPlan(r *plan.Report) {
	held, drifted := map[string]int{}, 0
	for _, s := range r.Plan.Steps {
		if s.Held != "" {
			held[string(s.Held)]++
		}
		if s.Drift != nil {
			drifted++
		}
	}
	m.count(m.held, r.Target, held)
	m.drift.WithLabelValues(r.Target).Set(float64(drifted))
	if r.Err == nil {
		m.mu.Lock()
		m.targetSince[r.Target] = r.StartedAt.Add(r.Duration)
		m.mu.Unlock()
	}
}

// count sets the series of a target, one for each value of the second label.
func (m *Metrics) count(of *prometheus.GaugeVec, target string, now map[string]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := seriesKey{of, target}
	known := m.series[key]
	if known == nil {
		known = map[string]bool{}
		m.series[key] = known
	}
	for value := range now {
		known[value] = true
	}
	for value := range known {
		of.WithLabelValues(target, value).Set(float64(now[value]))
	}
}

// RemoveTarget removes the series of a target that is no longer configured.
func (m *Metrics) RemoveTarget(target string) {
	m.Elsewhere(target)
	by := prometheus.Labels{"target": target}
	for _, v := range []*prometheus.CounterVec{m.passes, m.corrected, m.rolloutsStarted, m.rolloutsEnded} {
		v.DeletePartialMatch(by)
	}
}

// Elsewhere removes the metrics of a target's state, because another member now runs its passes and reports
// it. The counters of this member stay.
func (m *Metrics) Elsewhere(target string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.series {
		if key.target == target {
			delete(m.series, key)
		}
	}
	delete(m.targetSince, target)
	by := prometheus.Labels{"target": target}
	for _, v := range []*prometheus.GaugeVec{m.pools, m.machines, m.converged, m.lastPass, m.held, m.heldTo, m.findings, m.drift, m.rolloutsActive, m.rolloutsLeft} {
		v.DeletePartialMatch(by)
	}
}

// RemoveSource removes the series of a source that is no longer configured.
func (m *Metrics) RemoveSource(source string) {
	m.mu.Lock()
	delete(m.sourceSince, source)
	m.mu.Unlock()
	by := prometheus.Labels{"source": source}
	for _, v := range []interface{ DeletePartialMatch(prometheus.Labels) int }{m.fetches, m.fetchTime, m.fetchedAt, m.forgeRemaining, m.pulls, m.pullSeconds, m.imagesBehind, m.imagePulls} {
		v.DeletePartialMatch(by)
	}
}
