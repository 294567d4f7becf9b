package status

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-gitops/weir/reconciler/plan"
)

// Metrics are weir's Prometheus metrics. No label holds a revision, an instance
// id or a message: their number would have no bound.
type Metrics struct {
	pools       *prometheus.GaugeVec
	converged   *prometheus.GaugeVec
	lastPass    *prometheus.GaugeVec
	passes      *prometheus.CounterVec
	passSeconds *prometheus.HistogramVec
	steps       *prometheus.CounterVec
	awsCalls    *prometheus.CounterVec
	fetches     *prometheus.CounterVec
	fetchTime   *prometheus.HistogramVec
	fetchedAt   *prometheus.GaugeVec
	writes      *prometheus.CounterVec
	rolled      *prometheus.GaugeVec
	left        *prometheus.GaugeVec

	mu     sync.Mutex
	phases map[string]map[plan.Phase]bool // by target, those with a series
	// rolling are the pools with series of a rollout, by target.
	rolling map[string][]poolName
}

// NewMetrics registers weir's metrics on reg. Version is that of the binary. It
// panics where reg holds metrics of the same names, as prometheus.MustRegister does.
func NewMetrics(reg prometheus.Registerer, version string) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "weir", Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "weir", Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "weir", Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(0.005, 3, 10),
		}, labels)
	}
	m := &Metrics{
		pools:     gauge("pools", "Pools by target and Cluster API phase.", "target", "phase"),
		converged: gauge("target_converged", "Whether everything in AWS is what Git says: 1 or 0.", "target"),
		lastPass:  gauge("target_last_pass_timestamp_seconds", "When the target's last pass ended, in Unix time.", "target"),
		passes:    counter("passes_total", "Passes by target and result: converged, moving, failing or suspended.", "target", "result"),
		// By result only: ten buckets for each target and result would be too
		// many series for a fleet of a thousand targets.
		passSeconds: histogram("pass_duration_seconds", "Duration of passes by result.", "result"),
		steps:       counter("steps_total", "Steps by resource, verb and how they ended.", "resource", "verb", "status"),
		awsCalls:    counter("aws_calls_total", "Calls to AWS by service, operation and kind of answer.", "service", "operation", "kind"),
		fetches:     counter("source_fetches_total", "Fetches by source and result: success or failure.", "source", "result"),
		fetchTime:   histogram("source_fetch_duration_seconds", "Duration of fetches by source.", "source"),
		fetchedAt:   gauge("source_last_success_timestamp_seconds", "When the source was last fetched, in Unix time.", "source"),
		writes:      counter("status_writes_total", "Commit statuses by forge, state and result: written, unchanged, busy, missing, denied or refused.", "forge", "state", "result"),
		// While a rollout moves: there are as many series as pools that roll.
		rolled:  gauge("rollout_percent", "How far the rollout of a pool has come, while it moves: 0 to 100.", "target", "namespace", "pool"),
		left:    gauge("rollout_instances_left", "Instances that the rollout of a pool has still to replace, while it moves.", "target", "namespace", "pool"),
		phases:  map[string]map[plan.Phase]bool{},
		rolling: map[string][]poolName{},
	}
	info := gauge("build_info", "Always 1; the labels say which weir this is.", "version", "goversion")
	info.WithLabelValues(version, runtime.Version()).Set(1)
	reg.MustRegister(info, m.pools, m.converged, m.lastPass, m.passes, m.passSeconds, m.steps, m.awsCalls,
		m.fetches, m.fetchTime, m.fetchedAt, m.writes, m.rolled, m.left)
	return m
}

// Report counts a pass. It is the Sink of Metrics.
func (m *Metrics) Report(_ context.Context, r *plan.Report) {
	result := string(phaseOf(r))
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
	}
	// Without a plan nothing was observed, so the earlier counts stand.
	if r.Plan != nil || len(r.Pools) > 0 {
		m.countPools(r)
		m.countRollouts(r)
	}
}

func (m *Metrics) countPools(r *plan.Report) {
	n := map[plan.Phase]int{}
	for _, p := range r.Pools {
		n[p.Phase]++
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.phases[r.Target]
	if known == nil {
		known = map[plan.Phase]bool{}
		m.phases[r.Target] = known
	}
	for phase := range n {
		known[phase] = true
	}
	// A phase that no pool is in any more says 0, so that a graph shows it.
	for phase := range known {
		m.pools.WithLabelValues(r.Target, string(phase)).Set(float64(n[phase]))
	}
}

// poolName is a pool of a target.
type poolName struct{ namespace, name string }

func (m *Metrics) countRollouts(r *plan.Report) {
	var now []poolName
	for _, p := range r.Pools {
		if p.Rollout == nil {
			continue
		}
		now = append(now, poolName{p.Namespace, p.Name})
		m.rolled.WithLabelValues(r.Target, p.Namespace, p.Name).Set(float64(p.Rollout.Percentage))
		m.left.WithLabelValues(r.Target, p.Namespace, p.Name).Set(float64(p.Rollout.InstancesLeft))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.rolling[r.Target] {
		if !slices.Contains(now, p) {
			m.rolled.DeleteLabelValues(r.Target, p.namespace, p.name)
			m.left.DeleteLabelValues(r.Target, p.namespace, p.name)
		}
	}
	m.rolling[r.Target] = now
}

// RemoveTarget ends the series of a target that is no longer configured.
func (m *Metrics) RemoveTarget(target string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.phases, target)
	delete(m.rolling, target)
	by := prometheus.Labels{"target": target}
	m.pools.DeletePartialMatch(by)
	m.converged.DeletePartialMatch(by)
	m.lastPass.DeletePartialMatch(by)
	m.rolled.DeletePartialMatch(by)
	m.left.DeletePartialMatch(by)
	m.passes.DeletePartialMatch(by)
}

// RemoveSource ends the series of a source that is no longer configured.
func (m *Metrics) RemoveSource(source string) {
	by := prometheus.Labels{"source": source}
	m.fetches.DeletePartialMatch(by)
	m.fetchTime.DeletePartialMatch(by)
	m.fetchedAt.DeletePartialMatch(by)
}

// AWSCall counts one answered call, retries included. Kind is empty for success.
func (m *Metrics) AWSCall(service, operation string, kind plan.ErrorKind) {
	label := string(kind)
	if label == "" {
		label = "success"
	}
	m.awsCalls.WithLabelValues(strings.ToLower(service), operation, label).Inc()
}

// Fetch counts one fetch of a source that ended at at.
func (m *Metrics) Fetch(source string, took time.Duration, at time.Time, err error) {
	result := "success"
	if err != nil {
		result = "failure"
	} else {
		m.fetchedAt.WithLabelValues(source).Set(seconds(at))
	}
	m.fetches.WithLabelValues(source, result).Inc()
	m.fetchTime.WithLabelValues(source).Observe(took.Seconds())
}

// StatusWrite counts one write of a commit status; it is what CommitsOptions.Wrote wants.
func (m *Metrics) StatusWrite(forge string, state CommitState, result string) {
	m.writes.WithLabelValues(forge, string(state), result).Inc()
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
