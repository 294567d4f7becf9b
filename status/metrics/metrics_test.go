package metrics

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/statustest"
)

func TestMetrics(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := New(reg, "v1.2.3")
	m.Report(t.Context(), statustest.With(statustest.Report("prod", statustest.Pool("prod", "web", statustest.Rolling(1, 1)), statustest.Pool("prod", "batch")), step.Done, statustest.RolloutSteps()...))
	m.Report(t.Context(), statustest.Report("prod", statustest.Pool("prod", "web"), statustest.Pool("prod", "batch")))
	broken := statustest.Report("prod")
	broken.Plan, broken.Err = nil, errors.New("render: broken")
	m.Report(t.Context(), broken)
	m.AWSCall(AWSCall{Service: "EC2", Operation: "CreateLaunchTemplate", Throttled: 2, Duration: time.Second})
	m.AWSCall(AWSCall{Service: "autoscaling", Operation: "DescribeAutoScalingGroups", Kind: observed.Throttled, Throttled: 3})
	m.Fetch("fleet", 30*time.Millisecond, statustest.Noon, nil)
	m.Fetch("fleet", 5*time.Second, statustest.Noon.Add(time.Hour), errors.New("refused"))
	m.StatusWrite("github", forge.Pending, "written")

	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
	want := `
# HELP weir_aws_calls_total Calls to AWS by service, operation and kind of answer.
# TYPE weir_aws_calls_total counter
weir_aws_calls_total{kind="success",operation="CreateLaunchTemplate",service="ec2"} 1
weir_aws_calls_total{kind="throttled",operation="DescribeAutoScalingGroups",service="autoscaling"} 1
# HELP weir_passes_total Passes by target and result: converged, moving, held, failing or suspended.
# TYPE weir_passes_total counter
weir_passes_total{result="converged",target="prod"} 1
weir_passes_total{result="failing",target="prod"} 1
weir_passes_total{result="moving",target="prod"} 1
# HELP weir_pools Pools by target and Cluster API phase.
# TYPE weir_pools gauge
weir_pools{phase="Running",target="prod"} 2
weir_pools{phase="ScalingUp",target="prod"} 0
# HELP weir_source_fetches_total Fetches by source and result: success or failure.
# TYPE weir_source_fetches_total counter
weir_source_fetches_total{result="failure",source="fleet"} 1
weir_source_fetches_total{result="success",source="fleet"} 1
# HELP weir_source_last_success_timestamp_seconds When the source was last fetched, in Unix time.
# TYPE weir_source_last_success_timestamp_seconds gauge
weir_source_last_success_timestamp_seconds{source="fleet"} 1.7724528e+09
# HELP weir_status_writes_total Commit statuses by forge, state and result: written, unchanged, busy, missing, denied or refused.
# TYPE weir_status_writes_total counter
weir_status_writes_total{forge="github",result="written",state="pending"} 1
# HELP weir_steps_total Steps by resource, verb and result.
# TYPE weir_steps_total counter
weir_steps_total{resource="auto-scaling-group",status="done",verb="rollout"} 1
weir_steps_total{resource="launch-template",status="done",verb="update"} 1
# HELP weir_target_converged Whether AWS matches Git: 1 or 0.
# TYPE weir_target_converged gauge
weir_target_converged{target="prod"} 0
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "weir_aws_calls_total", "weir_passes_total", "weir_pools",
		"weir_source_fetches_total", "weir_source_last_success_timestamp_seconds", "weir_status_writes_total", "weir_steps_total", "weir_target_converged"); err != nil {
		t.Error(err)
	}

	m.RemoveTarget("prod")
	m.RemoveSource("fleet")
	left, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range left {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetValue() == "prod" || label.GetValue() == "fleet" {
					t.Errorf("%s still has a series of what is gone", family.GetName())
				}
			}
		}
	}
}

// A metric says by target how much still rolls, and 0 when it is over.
func TestMetricsOfRollouts(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := New(reg, "v1.2.3")
	moving := statustest.Rolling(4, 5)
	left := statustest.Pool("prod", "web", moving).Rollout.InstancesLeft
	want := func(active, left int) {
		t.Helper()
		text := fmt.Sprintf(`
# HELP weir_rollout_instances_left Instances that the rollouts of a target still have to replace.
# TYPE weir_rollout_instances_left gauge
weir_rollout_instances_left{target="prod"} %d
# HELP weir_rollouts_active Pools of a target with a rollout in progress.
# TYPE weir_rollouts_active gauge
weir_rollouts_active{target="prod"} %d
`, left, active)
		if err := testutil.GatherAndCompare(reg, strings.NewReader(text), "weir_rollout_instances_left", "weir_rollouts_active"); err != nil {
			t.Error(err)
		}
	}
	m.Report(t.Context(), statustest.Report("prod", statustest.Pool("prod", "web", moving), statustest.Pool("prod", "batch", moving)))
	want(2, 2*int(left))
	m.Report(t.Context(), statustest.Report("prod", statustest.Pool("prod", "web"), statustest.Pool("prod", "batch")))
	want(0, 0)
}

// Events say how rollouts began and ended; what is not a kind of weir's is "other".
func TestMetricsOfEvents(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := New(reg, "v1.2.3")
	for _, kind := range []string{
		"refresh-started", "refresh-progress", "refresh-rolling-back", "refresh-rolled-back", "nodegroup-update-started", "nodegroup-update-succeeded",
		"refresh-superseded", "nodegroup-updated", "drift-found", "made\nup",
	} {
		m.Events([]events.Event{{Kind: kind, Target: "prod"}})
	}
	want := `
# HELP weir_rollouts_ended_total Rollouts that ended, by result: succeeded, failed, cancelled, superseded, rolled-back or rollback-failed.
# TYPE weir_rollouts_ended_total counter
weir_rollouts_ended_total{result="rolled-back",target="prod"} 1
weir_rollouts_ended_total{result="succeeded",target="prod"} 1
weir_rollouts_ended_total{result="superseded",target="prod"} 1
# HELP weir_rollouts_started_total Rollouts that were started.
# TYPE weir_rollouts_started_total counter
weir_rollouts_started_total{target="prod"} 2
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "weir_rollouts_started_total", "weir_rollouts_ended_total"); err != nil {
		t.Error(err)
	}
	if n := testutil.ToFloat64(m.events.WithLabelValues("other")); n != 1 {
		t.Errorf("%v other events", n)
	}
	if n := testutil.ToFloat64(m.events.WithLabelValues("nodegroup-updated")); n != 1 {
		t.Errorf("%v updates of nodegroups", n)
	}
}

// Holds, findings and drift are counted by target, and gone when they are over.
func TestMetricsOfAPlan(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := New(reg, "v1.2.3")
	r := statustest.Report("prod", statustest.Pool("prod", "web"))
	r.Plan.Steps = []step.Step{{Held: step.HeldWindow}, {Held: step.HeldWindow, Drift: &step.Drift{}}, {Drift: &step.Drift{}}}
	r.Outcomes = []step.Outcome{{Step: r.Plan.Steps[1], Status: step.Held}, {Step: r.Plan.Steps[2], Status: step.Done}}
	r.Diagnostics = diag.List{{Severity: diag.Warning}, {Severity: diag.Warning}}
	m.Report(t.Context(), r)
	m.Report(t.Context(), statustest.Report("prod", statustest.Pool("prod", "web")))
	want := `
# HELP weir_diagnostics Diagnostics of a target's last pass by severity.
# TYPE weir_diagnostics gauge
weir_diagnostics{severity="warning",target="prod"} 0
# HELP weir_drift_corrections_total Steps that corrected changes made outside Git.
# TYPE weir_drift_corrections_total counter
weir_drift_corrections_total{target="prod"} 1
# HELP weir_drifted_steps Steps of a target's plan that correct changes made outside Git.
# TYPE weir_drifted_steps gauge
weir_drifted_steps{target="prod"} 0
# HELP weir_held_steps Steps of a target's plan that are held, by reason.
# TYPE weir_held_steps gauge
weir_held_steps{reason="window",target="prod"} 0
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "weir_diagnostics", "weir_drift_corrections_total", "weir_drifted_steps", "weir_held_steps"); err != nil {
		t.Error(err)
	}
	m.Report(t.Context(), r)
	if n := testutil.ToFloat64(m.held.WithLabelValues("prod", "window")); n != 2 {
		t.Errorf("%v steps held for a window", n)
	}
	if n := testutil.ToFloat64(m.drift.WithLabelValues("prod")); n != 2 {
		t.Errorf("%v steps drifted", n)
	}
}

// A target or source that nothing is heard of grows stale, from when it is known on.
func TestStaleness(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := New(reg, "v1.2.3")
	now := statustest.Noon
	m.now = func() time.Time { return now }
	m.Know([]string{"fleet", "silent"}, []string{"prod", "silent"})
	now = now.Add(time.Hour)
	m.Know([]string{"fleet", "silent"}, []string{"prod", "silent"})
	m.Fetch("fleet", time.Second, now, nil)
	r := statustest.Report("prod", statustest.Pool("prod", "web"))
	r.StartedAt, r.Duration = now, 0
	m.Report(t.Context(), r)
	now = now.Add(time.Minute)
	m.Fetch("fleet", time.Second, now, errors.New("refused"))
	broken := statustest.Report("prod")
	broken.Plan, broken.Err, broken.StartedAt = nil, errors.New("render: broken"), now
	m.Report(t.Context(), broken)
	m.Queue("statuses", func() int { return 7 })
	m.HistorySize(func() int64 { return 4096 })
	want := `
# HELP weir_history_size_bytes Size of the file that holds the history.
# TYPE weir_history_size_bytes gauge
weir_history_size_bytes 4096
# HELP weir_queue_length Waiting entries by queue: statuses, notifications, history, renders (targets with a slow render) or passes (targets whose pass waits for AWS).
# TYPE weir_queue_length gauge
weir_queue_length{queue="statuses"} 7
# HELP weir_source_staleness_seconds Seconds since the last successful read of a source, or since weir learned of the source.
# TYPE weir_source_staleness_seconds gauge
weir_source_staleness_seconds{source="fleet"} 60
weir_source_staleness_seconds{source="silent"} 3660
# HELP weir_target_staleness_seconds Seconds since the last complete observation and plan of a target, or since weir learned of the target.
# TYPE weir_target_staleness_seconds gauge
weir_target_staleness_seconds{target="prod"} 60
weir_target_staleness_seconds{target="silent"} 3660
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "weir_history_size_bytes", "weir_queue_length", "weir_source_staleness_seconds", "weir_target_staleness_seconds"); err != nil {
		t.Error(err)
	}
}

// Names that Git, AWS and strangers choose make no series, however many there are.
func TestMetricsAreBounded(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := New(reg, "v1.2.3")
	server := httptest.NewServer(m.Count(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/x") {
			rw.WriteHeader(http.StatusNotFound)
		}
	})))
	defer server.Close()
	series := func() int {
		n, err := testutil.GatherAndCount(reg)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	hostile := func(i int) {
		name := fmt.Sprintf("%d\"}\n\x01weir_pools 7 ünï", i)
		p := statustest.Pool("prod", name, statustest.Rolling(2, 3))
		p.Namespace, p.Cluster, p.FailureReason = name, name, name
		r := statustest.With(statustest.Report("prod", p), step.Done, statustest.RolloutSteps()...)
		r.Revision, r.Subject, r.Ref = name, name, name
		r.Diagnostics = diag.List{{Severity: diag.Error, Code: name, Summary: name}}
		for j := range r.Outcomes {
			r.Outcomes[j].Step.Name, r.Outcomes[j].Step.Pool, r.Outcomes[j].Step.HeldReason = name, name, name
		}
		m.Report(t.Context(), r)
		m.Events([]events.Event{{Kind: name, Target: "prod", Pool: name, Text: name}, {Kind: "refresh-started", Target: "prod", Pool: name}})
		for _, path := range []string{"/targets/", "/api/v1/", "/x", "/hooks/"} {
			res, err := http.Get(server.URL + path + url.PathEscape(name))
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
		}
	}
	hostile(0)
	before := series()
	for i := range 1000 {
		hostile(i)
	}
	if after := series(); after != before || before > 150 {
		t.Errorf("%d series after one hostile name, %d after 1,000", before, after)
	}
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
}

// Requests to a forge are counted, with what the forge says of its rate limit.
func TestForgeTransport(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := New(reg, "v1.2.3")
	forge := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/odd":
			rw.WriteHeader(799)
		case "/left":
			rw.Header().Set("X-RateLimit-Remaining", "41")
		}
	}))
	client := &http.Client{Transport: m.ForgeTransport("github", "fleet", http.DefaultTransport)}
	for _, path := range []string{"/left", "/odd", "/other"} {
		res, err := client.Post(forge.URL+path, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
	}
	forge.Close()
	if res, err := client.Get(forge.URL); err == nil {
		_ = res.Body.Close()
		t.Fatal("a closed server answers")
	}
	want := `
# HELP weir_forge_rate_limit_remaining Requests left before the rate limit of a source's forge is reset, as last reported.
# TYPE weir_forge_rate_limit_remaining gauge
weir_forge_rate_limit_remaining{source="fleet"} 41
# HELP weir_forge_requests_total Requests to forges by HTTP status, or error without an answer.
# TYPE weir_forge_requests_total counter
weir_forge_requests_total{code="200",forge="github"} 2
weir_forge_requests_total{code="error",forge="github"} 1
weir_forge_requests_total{code="other",forge="github"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "weir_forge_requests_total", "weir_forge_rate_limit_remaining"); err != nil {
		t.Error(err)
	}
}

// A stream of events reaches its reader while it is open, and is counted as one.
func TestCountedStream(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := New(reg, "v1.2.3")
	release, ended := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		defer close(ended)
		m.Count(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "text/event-stream")
			_, _ = rw.Write([]byte("data: hello\n\n"))
			rw.(http.Flusher).Flush()
			<-release
		})).ServeHTTP(rw, r)
	}))
	defer server.Close()
	res, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	first := make([]byte, len("data: hello"))
	if _, err := io.ReadFull(res.Body, first); err != nil || string(first) != "data: hello" {
		t.Fatalf("read %q, %v", first, err)
	}
	if n := testutil.ToFloat64(m.httpStreams); n != 1 {
		t.Errorf("%v streams are open", n)
	}
	close(release)
	<-ended
	if n := testutil.ToFloat64(m.httpStreams); n != 0 {
		t.Errorf("%v streams are open at the end", n)
	}
	if n := testutil.ToFloat64(m.httpRequests.WithLabelValues("stream", "200")); n != 1 {
		t.Errorf("%v streams were counted", n)
	}
}
