package metrics

import (
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/events/kinds"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
)

// Metrics contains weir's Prometheus metrics. The configuration and the program alone bound the number of
// series. No label contains the name of a pool, a revision, an instance ID or a message, because Git and
// AWS can contain any number of them.
type Metrics struct {
	now     func() time.Time
	defined []Definition

	pools       *prometheus.GaugeVec
	machines    *prometheus.GaugeVec
	converged   *prometheus.GaugeVec
	lastPass    *prometheus.GaugeVec
	passes      *prometheus.CounterVec
	passSeconds *prometheus.HistogramVec
	stages      *prometheus.HistogramVec
	steps       *prometheus.CounterVec
	held        *prometheus.GaugeVec
	heldTo      *prometheus.GaugeVec
	findings    *prometheus.GaugeVec
	drift       *prometheus.GaugeVec
	corrected   *prometheus.CounterVec

	rolloutsActive  *prometheus.GaugeVec
	rolloutsLeft    *prometheus.GaugeVec
	rolloutsStarted *prometheus.CounterVec
	rolloutsEnded   *prometheus.CounterVec

	awsCalls   *prometheus.CounterVec
	awsSeconds *prometheus.HistogramVec
	throttles  *prometheus.CounterVec

	fetches   *prometheus.CounterVec
	fetchTime *prometheus.HistogramVec
	fetchedAt *prometheus.GaugeVec

	writes         *prometheus.CounterVec
	comments       *prometheus.CounterVec
	pulls          *prometheus.GaugeVec
	pullSeconds    *prometheus.HistogramVec
	imagesBehind   *prometheus.GaugeVec
	imagePulls     *prometheus.GaugeVec
	forgeRequests  *prometheus.CounterVec
	forgeSeconds   *prometheus.HistogramVec
	forgeRemaining *prometheus.GaugeVec

	events        *prometheus.CounterVec
	notifications *prometheus.CounterVec
	webhooks      *prometheus.CounterVec
	reloads       *prometheus.CounterVec
	reloadOK      prometheus.Gauge
	stateLost     prometheus.Gauge
	httpRequests  *prometheus.CounterVec
	httpSeconds   *prometheus.HistogramVec
	httpStreams   prometheus.Gauge

	gauges       *askedGauges
	coordination *coordination
	eventKinds   map[string]bool

	mu sync.Mutex
	// series contains the values of a second label next to a target's, by metric and target. A value that
	// no longer occurs is set to 0, so that graphs show its end.
	series map[seriesKey]map[string]bool
	// targetSince and sourceSince contain the time at which a target or source was last read completely, or
	// the time at which it was configured if that has not happened.
	targetSince, sourceSince map[string]time.Time
}

type seriesKey struct {
	of     *prometheus.GaugeVec
	target string
}

// Definition describes a metric.
type Definition struct {
	Name   string   `json:"name"`
	Type   string   `json:"type"` // counter, gauge or histogram
	Help   string   `json:"help"`
	Labels []string `json:"labels"`
}

// Definitions returns the definitions of all metrics with the prefix weir_, sorted by name.
func (m *Metrics) Definitions() []Definition {
	out := slices.Clone(m.defined)
	slices.SortFunc(out, func(a, b Definition) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// definer creates and registers metrics, and records their descriptions.
type definer struct {
	reg     prometheus.Registerer
	defined []Definition
}

func (d *definer) define(kind, name, help string, labels []string) string {
	d.defined = append(d.defined, Definition{Name: "weir_" + name, Type: kind, Help: help, Labels: append([]string{}, labels...)})
	return "weir_" + name
}

func (d *definer) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.define("counter", name, help, labels), Help: help}, labels)
	d.reg.MustRegister(c)
	return c
}

func (d *definer) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: d.define("gauge", name, help, labels), Help: help}, labels)
	d.reg.MustRegister(g)
	return g
}

// histogram creates a histogram of seconds with buckets from 5 ms to 98 s, each three times the previous
// one.
func (d *definer) histogram(name, help string, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: d.define("histogram", name, help, labels), Help: help, Buckets: prometheus.ExponentialBuckets(0.005, 3, 10),
	}, labels)
	d.reg.MustRegister(h)
	return h
}

// New registers weir's metrics on reg. version is the version of the binary. New panics if reg already
// contains metrics with the same names, like prometheus.MustRegister.
func New(reg prometheus.Registerer, version string) *Metrics {
	d := &definer{reg: reg}
	m := &Metrics{
		now:       time.Now,
		pools:     d.gauge("pools", "Pools by target and Cluster API phase.", "target", "phase"),
		machines:  d.gauge("machines", "Machines of a target's pools by state: desired, existing (replicas), ready or unavailable.", "target", "state"),
		converged: d.gauge("target_converged", "Whether AWS matches Git: 1 or 0.", "target"),
		lastPass:  d.gauge("target_last_pass_timestamp_seconds", "When the target's last pass ended, in Unix time.", "target"),
		passes:    d.counter("passes_total", "Passes by target and result: converged, moving, held, failing or suspended.", "target", "result"),
		// Labelled only by result or stage: ten buckets for each target would be too many series for a
		// fleet of a thousand targets.
		passSeconds: d.histogram("pass_duration_seconds", "Duration of passes by result.", "result"),
		stages:      d.histogram("stage_duration_seconds", "Duration of a pass's stages: fetch, render, resolve, observe, fill, plan, apply or status (one write to a forge).", "stage"),
		steps:       d.counter("steps_total", "Steps by resource, verb and result.", "resource", "verb", "status"),
		held:        d.gauge("held_steps", "Steps of a target's plan that are held, by reason.", "target", "reason"),
		heldTo:      d.gauge("target_held", "Whether a target is held because its followed commit cannot be rendered: 1 or 0, to an earlier commit (to=\"earlier\") or only observed (to=\"nothing\").", "target", "to"),
		findings:    d.gauge("diagnostics", "Diagnostics of a target's last pass by severity.", "target", "severity"),
		drift:       d.gauge("drifted_steps", "Steps of a target's plan that correct changes made outside Git.", "target"),
		corrected:   d.counter("drift_corrections_total", "Steps that corrected changes made outside Git.", "target"),

		rolloutsActive:  d.gauge("rollouts_active", "Pools of a target with a rollout in progress.", "target"),
		rolloutsLeft:    d.gauge("rollout_instances_left", "Instances that the rollouts of a target still have to replace.", "target"),
		rolloutsStarted: d.counter("rollouts_started_total", "Rollouts that were started.", "target"),
		rolloutsEnded:   d.counter("rollouts_ended_total", "Rollouts that ended, by result: succeeded, failed, cancelled, superseded, rolled-back or rollback-failed.", "target", "result"),

		awsCalls:   d.counter("aws_calls_total", "Calls to AWS by service, operation and kind of answer.", "service", "operation", "kind"),
		awsSeconds: d.histogram("aws_call_duration_seconds", "Duration of calls to AWS by service, including retries and waits for weir's own rate limits.", "service"),
		throttles:  d.counter("aws_throttles_total", "Throttling answers of AWS, including calls that succeeded on a later attempt.", "service", "operation"),

		fetches:   d.counter("source_fetches_total", "Fetches by source and result: success or failure.", "source", "result"),
		fetchTime: d.histogram("source_fetch_duration_seconds", "Duration of fetches by source.", "source"),
		fetchedAt: d.gauge("source_last_success_timestamp_seconds", "When the source was last fetched, in Unix time.", "source"),

		writes:         d.counter("status_writes_total", "Commit statuses by forge, state and result: written, unchanged, busy, missing, denied or refused.", "forge", "state", "result"),
		comments:       d.counter("comment_writes_total", "Comments on pull requests by forge and result: written, unchanged, busy, missing, denied or refused.", "forge", "result"),
		pulls:          d.gauge("pull_requests", "Open pull requests into the followed branch by source and state: planned, unaffected, conflict, waiting or failing.", "source", "state"),
		pullSeconds:    d.histogram("pull_plan_duration_seconds", "Duration of plans of pull requests, merging and rendering included, by source.", "source"),
		imagesBehind:   d.gauge("images_behind", "Pools for which a newer image exists, by source, for sources with image updates.", "source"),
		imagePulls:     d.gauge("image_pull_requests", "Open pull requests of weir's own that pin newer images, by source.", "source"),
		forgeRequests:  d.counter("forge_requests_total", "Requests to forges by HTTP status, or error without an answer.", "forge", "code"),
		forgeSeconds:   d.histogram("forge_request_duration_seconds", "Duration of requests to forges.", "forge"),
		forgeRemaining: d.gauge("forge_rate_limit_remaining", "Requests left before the rate limit of a source's forge is reset, as last reported.", "source"),

		events:        d.counter("events_total", "Events by kind.", "kind"),
		notifications: d.counter("notifications_total", "Events for receivers by host and result: sent, repeated, dropped or failed.", "host", "result"),
		webhooks:      d.counter("webhooks_total", "Webhooks by forge and result: accepted, repeated, ignored, unsigned, invalid, too-large, limited, busy or misconfigured.", "forge", "result"),
		reloads:       d.counter("config_reloads_total", "Reloads of the configuration, by result (success or refused).", "result"),
		httpRequests:  d.counter("http_requests_total", "Requests to weir's own server by route class and HTTP status.", "route", "code"),
		httpSeconds:   d.histogram("http_request_duration_seconds", "Duration of requests to weir's own server by route class, without event streams.", "route"),

		eventKinds:  map[string]bool{},
		series:      map[seriesKey]map[string]bool{},
		targetSince: map[string]time.Time{}, sourceSince: map[string]time.Time{},
	}
	m.reloadOK = d.gauge("config_last_reload_successful", "Whether the configuration that was last read is the one in use: 1 or 0.").WithLabelValues()
	m.reloadOK.Set(1)
	m.stateLost = d.gauge("state_lost", "Whether suspensions and approvals may be lost, so that weir writes nothing until somebody accepts the loss: 1 or 0.").WithLabelValues()
	m.httpStreams = d.gauge("http_streams", "Open event streams.").WithLabelValues()
	d.gauge("build_info", "Always 1; the labels describe this weir.", "version", "goversion").WithLabelValues(version, runtime.Version()).Set(1)
	m.gauges, m.coordination = newAskedGauges(m, d), newCoordination(d)
	for _, kind := range kinds.All() {
		m.eventKinds[kind] = true
	}
	m.defined = d.defined
	return m
}

// StateLost records whether all writes are held because state was lost.
func (m *Metrics) StateLost(is bool) {
	m.stateLost.Set(map[bool]float64{true: 1}[is])
}

// AWSCall is one completed call to AWS, including its retries.
type AWSCall struct {
	Service, Operation string
	Kind               observed.ErrorKind // empty for success
	Throttled          int                // throttling responses of AWS
	Duration           time.Duration
}

// AWSCall counts a call.
func (m *Metrics) AWSCall(c AWSCall) {
	kind, service := string(c.Kind), strings.ToLower(c.Service)
	if kind == "" {
		kind = "success"
	}
	m.awsCalls.WithLabelValues(service, c.Operation, kind).Inc()
	m.awsSeconds.WithLabelValues(service).Observe(c.Duration.Seconds())
	if c.Throttled > 0 {
		m.throttles.WithLabelValues(service, c.Operation).Add(float64(c.Throttled))
	}
}

// stageNames are the names of work that counts as a stage.
var stageNames = []string{"fetch", "render", "resolve", "observe", "fill", "plan", "apply", "status"}

// Stage records the duration of completed work. It ignores names that are not a stage.
func (m *Metrics) Stage(name string, took time.Duration) {
	if slices.Contains(stageNames, name) {
		m.stages.WithLabelValues(name).Observe(took.Seconds())
	}
}

// Fetch records one fetch of a source that ended at at.
func (m *Metrics) Fetch(source string, took time.Duration, at time.Time, err error) {
	result := "success"
	if err != nil {
		result = "failure"
	} else {
		m.fetchedAt.WithLabelValues(source).Set(seconds(at))
		m.mu.Lock()
		m.sourceSince[source] = at
		m.mu.Unlock()
	}
	m.fetches.WithLabelValues(source, result).Inc()
	m.fetchTime.WithLabelValues(source).Observe(took.Seconds())
	m.Stage("fetch", took)
}

// StatusWrite counts one write of a commit status. It can be used as commits.Options.Wrote.
func (m *Metrics) StatusWrite(forge string, state forge.CommitState, result string) {
	m.writes.WithLabelValues(forge, string(state), result).Inc()
}

// CommentWrite counts one write of a comment on a pull request. result is as in StatusWrite.
func (m *Metrics) CommentWrite(forge, result string) { m.comments.WithLabelValues(forge, result).Inc() }

// Pulls sets the numbers of open pull requests of a source, by state.
func (m *Metrics) Pulls(source string, open map[report.PullState]int) {
	for _, state := range []report.PullState{report.PullPlanned, report.PullUnaffected, report.PullConflict, report.PullWaiting, report.PullFailing} {
		m.pulls.WithLabelValues(source, string(state)).Set(float64(open[state]))
	}
}

// Images sets the number of pools of a source that could have a newer image, and the number of open pull
// requests that pin newer images.
func (m *Metrics) Images(source string, pools, open int) {
	m.imagesBehind.WithLabelValues(source).Set(float64(pools))
	m.imagePulls.WithLabelValues(source).Set(float64(open))
}

// PullPlan counts one plan of a pull request.
func (m *Metrics) PullPlan(source string, took time.Duration) {
	m.pullSeconds.WithLabelValues(source).Observe(took.Seconds())
}

// Notification counts the result of an event for a receiver. It can be used as notify.Options.Sent. host
// comes from the configuration.
func (m *Metrics) Notification(host, result string) {
	m.notifications.WithLabelValues(host, result).Inc()
}

// Webhook counts a webhook. forge is empty if the kind of forge is unknown.
func (m *Metrics) Webhook(forge, result string) {
	if forge == "" {
		forge = "unknown"
	}
	m.webhooks.WithLabelValues(forge, result).Inc()
}

// Reload counts a reload of the configuration.
func (m *Metrics) Reload(accepted bool) {
	result, ok := "refused", 0.0
	if accepted {
		result, ok = "success", 1
	}
	m.reloads.WithLabelValues(result).Inc()
	m.reloadOK.Set(ok)
}

// Events counts events, and the starts and results of rollouts.
func (m *Metrics) Events(events []events.Event) {
	for _, e := range events {
		kind := e.Kind
		if !m.eventKinds[kind] {
			kind = "other"
		}
		m.events.WithLabelValues(kind).Inc()
		_, how, ok := strings.Cut(strings.TrimPrefix(kind, "nodegroup-"), "-")
		switch {
		case !ok || e.Target == "" || !strings.HasPrefix(kind, "refresh-") && !strings.HasPrefix(kind, "nodegroup-update-"):
		case how == "started":
			m.rolloutsStarted.WithLabelValues(e.Target).Inc()
		case how != "progress" && how != "rolling-back":
			m.rolloutsEnded.WithLabelValues(e.Target, how).Inc()
		}
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
