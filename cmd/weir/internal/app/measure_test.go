package app

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-gitops/weir/status/metrics"
)

// scrape reads a daemon's metrics as Prometheus does.
func scrape(t testing.TB, a *App) string {
	t.Helper()
	res, err := http.Get("http://" + a.Addr() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v", res.Status, err)
	}
	return string(body)
}

// TestMetricsOfADaemon: what a daemon does from the fetch to the commit's status is
// to be found in what it serves, under the names that are documented.
func TestMetricsOfADaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	revision := w.repo.Commit("first")
	a, stop := w.start()
	defer stop()
	converged(t, a, revision, 1)
	eventually(t, "the commit's status", func() string {
		if got := w.forge.states(revision, "fleet/apply"); !succeeded(got) {
			return "states: " + got
		}
		return ""
	})
	_ = scrape(t, a) // so that a request is counted
	var text string
	eventually(t, "metrics", func() string {
		text = scrape(t, a)
		for _, want := range []string{
			`weir_build_info{`, `weir_pools{phase="Running",target="prod"} 1`, `weir_machines{state="ready",target="prod"} 1`, `weir_target_converged{target="prod"} 1`,
			`weir_passes_total{result="converged",target="prod"}`, `weir_pass_duration_seconds_count{result="converged"}`,
			`weir_stage_duration_seconds_count{stage="fetch"}`, `weir_stage_duration_seconds_count{stage="render"}`, `weir_stage_duration_seconds_count{stage="resolve"}`,
			`weir_stage_duration_seconds_count{stage="observe"}`, `weir_stage_duration_seconds_count{stage="fill"}`, `weir_stage_duration_seconds_count{stage="plan"}`,
			`weir_stage_duration_seconds_count{stage="apply"} 1`, `weir_stage_duration_seconds_count{stage="status"}`,
			`weir_aws_calls_total{kind="success",operation="CreateAutoScalingGroup",service="autoscaling"} 1`, `weir_aws_call_duration_seconds_count{service="ec2"}`,
			`weir_steps_total{resource="auto-scaling-group",status="done",verb="create"} 1`, `weir_events_total{kind="group-created"} 1`,
			`weir_source_fetches_total{result="success",source="pools"}`, `weir_source_staleness_seconds{source="pools"}`, `weir_target_staleness_seconds{target="prod"}`,
			`weir_status_writes_total{forge="gitea",result="written",state="success"}`, `weir_forge_requests_total{code="201",forge="gitea"}`,
			`weir_queue_length{queue="history"} 0`, `weir_queue_length{queue="statuses"} 0`, `weir_queue_length{queue="notifications"} 0`,
			`weir_http_requests_total{code="200",route="metrics"}`, `weir_config_last_reload_successful 1`, `weir_drifted_steps{target="prod"} 0`, `weir_rollouts_active{target="prod"} 0`,
		} {
			if !strings.Contains(text, want) {
				return "no " + want + " in\n" + text
			}
		}
		return ""
	})
	if strings.Contains(text, "weir_history_size_bytes 0\n") {
		t.Error("the history has no size")
	}
	checkFamilies(t, text, a.metrics.Definitions())
	if problems, err := testutil.GatherAndLint(a.registry); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
}

// checkFamilies holds what is served against what is defined.
func checkFamilies(t *testing.T, text string, defined []metrics.Definition) {
	t.Helper()
	for _, d := range defined {
		unit := map[string]string{"counter": "_total", "histogram": "_seconds"}[d.Type]
		if !strings.HasSuffix(d.Name, unit) || d.Type != "counter" && strings.HasSuffix(d.Name, "_total") {
			t.Errorf("%s %s lacks the suffix %s", d.Type, d.Name, unit)
		}
		if !strings.HasSuffix(d.Help, ".") || len(d.Help) < 10 {
			t.Errorf("%s: help %q is no sentence", d.Name, d.Help)
		}
		for _, label := range d.Labels {
			if slices.Contains([]string{"pool", "namespace", "name", "revision", "subject", "instance", "message", "error", "path"}, label) {
				t.Errorf("%s has the label %s, of which there may be any number", d.Name, label)
			}
		}
	}
	for line := range strings.Lines(text) {
		name, ok := strings.CutPrefix(line, "# TYPE ")
		name, kind, _ := strings.Cut(strings.TrimSpace(name), " ")
		if !ok || !strings.HasPrefix(name, "weir_") {
			continue
		}
		i := slices.IndexFunc(defined, func(d metrics.Definition) bool { return d.Name == name })
		if i < 0 || defined[i].Type != kind || !strings.Contains(text, "# HELP "+name+" "+defined[i].Help) {
			t.Errorf("%s, a %s, is served as nobody defined it", name, kind)
		}
	}
}

// reloadsOf is how often the configuration was reloaded with that result.
func reloadsOf(t testing.TB, a *App, result string) float64 {
	t.Helper()
	families, err := a.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "weir_config_reloads_total" && m.GetLabel()[0].GetValue() == result {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}
