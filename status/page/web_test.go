package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/metrics"
	"github.com/weir-gitops/weir/status/statustest"
)

func get(t *testing.T, b *current.State, path string) *httptest.ResponseRecorder {
	t.Helper()
	rec := httptest.NewRecorder()
	Handler(b, Options{}).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
	return rec
}

// words is the text of a page, blanks collapsed.
func words(page string) string {
	return strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page, " ")), " ")
}

func TestIndexShowsTheFleet(t *testing.T) {
	rec := get(t, fleet(), "/")
	text := words(rec.Body.String())
	for _, want := range []string{
		"2 targets need attention.", "Targets 1 / 6 converged", "Pools 5 / 9 converged",
		"fleet branch main 4be91a7", "https://git.example.com/platform/fleet.git changed 9 s ago",
		"batch-spot default · AWSMachinePool Running 20 of 20 ready, at least 1, at most 24 20 / 20 1–24 v4",
		"web default · AWSMachinePool ScalingUp 7 of 8 ready, at least 1, at most 12 7 / 8 1–12 Rollout of default/web: 37 % · 5 left 37 % · 5 left · InProgress v4 not yet",
		"gpu default · AWSManagedMachinePool Running 2 of 2 ready, at least 1, at most 6 2 / 2 1–6 v4 2 h ago",
		"error awsLaunchTemplate.instanceTyp: unknown field overlays/staging/pool.yaml:12:5 did you mean instanceType?",
		"Pools as of", "edge-1 waiting", "1 held", "next in 48 s",
		"autoscaling:DescribeInstanceRefreshes: AccessDenied",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(rec.Body.String(), "hunter2") {
		t.Error("the page shows the password in a source's address")
	}
	if t.Failed() {
		t.Log(text)
	}
}

func TestIndexIsOrderedFilteredAndPaged(t *testing.T) {
	b := testBoard()
	for i := range 2*targetsPerPage + 5 {
		b.Targets.Report(t.Context(), statustest.Report(fmt.Sprintf("t%03d", i), statustest.Pool("c", fmt.Sprintf("pool%03d", i))))
	}
	bad := statustest.Report("t050", statustest.Pool("c", "pool050"))
	bad.Err = errors.New("denied")
	b.Targets.Report(t.Context(), bad)
	articles := regexp.MustCompile(`aria-label="Target ([^"]*)"`)
	list := func(path string) (names []string) {
		for _, m := range articles.FindAllStringSubmatch(get(t, b, path).Body.String(), -1) {
			names = append(names, m[1])
		}
		return names
	}
	if first := list("/"); len(first) != targetsPerPage || first[0] != "t050" || first[1] != "t000" {
		t.Errorf("first page has %d targets: %v", len(first), first)
	}
	if last := list("/?page=3"); len(last) != 5 || last[4] != "t084" {
		t.Errorf("last page: %v", last)
	}
	for path, want := range map[string][]string{
		"/?state=failing":             {"t050"},
		"/?q=POOL007":                 {"t007"},
		"/?q=t05&state=failing":       {"t050"},
		"/?page=99&q=t010":            {"t010"},
		"/?page=-1&q=t010":            {"t010"},
		"/?page=x&state=nosuch&q=%3C": nil,
	} {
		if diff := cmp.Diff(want, list(path)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

func TestTargetPage(t *testing.T) {
	b := fleet()
	text := words(get(t, b, "/targets/prod-us").Body.String())
	for _, want := range []string{
		"Path overlays/prod-us", "Last applied 4be91a7", "update launch-template prod-us-web done 180 ms",
		"awsLaunchTemplate.instanceType m6i.large c7g.large overlays/prod-us/web.yaml:9:21",
		`awsLaunchTemplate.rootVolume absent {&#34;size&#34;:64,&#34;type&#34;:&#34;gp3&#34;} base/pool.yaml:31`,
		"rollout auto-scaling-group prod-us-web done replaces 8 instances",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
	text = words(get(t, b, "/targets/dev").Body.String())
	if !strings.Contains(text, "Plan Digest") || !strings.Contains(text, "update auto-scaling-group dev-web held: suspended default/web the manifests changed Field From To Set at maxSize 7 5 overlays/dev/web.yaml:14:12") {
		t.Errorf("a held step is not shown: %s", text)
	}
	if rec := get(t, b, "/targets/none"); rec.Code != http.StatusNotFound || !strings.Contains(rec.Body.String(), "Target none not found.") {
		t.Errorf("an unknown target gives %d", rec.Code)
	}
}

func TestHeadersAndMethods(t *testing.T) {
	reg := prometheus.NewRegistry()
	metrics.New(reg, "v1")
	h := Handler(fleet(), Options{Metrics: promhttp.HandlerFor(reg, promhttp.HandlerOpts{})})
	style := regexp.MustCompile(`/assets/style\.[0-9a-f]+\.css`).FindString(get(t, fleet(), "/").Body.String())
	for _, path := range []string{"/", "/targets/prod-us", "/targets/none", "/nosuch", "/pools", "/activity", "/configuration", "/pulls", "/targets/prod-us/plan", "/targets/prod-us/pools/default/web", "/api/v1/pools", "/api/v1/targets", "/api/v1/pulls", "/healthz", "/readyz", "/metrics", style} {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
		for key, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
		} {
			if got := rec.Header().Get(key); got != want {
				t.Errorf("%s: %s is %q, want %q", path, key, got, want)
			}
		}
		policy := rec.Header().Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: policy is %q", path, policy)
		}
		rec = httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, path, nil))
		if rec.Code != http.StatusMethodNotAllowed {
			t.Errorf("POST %s gives %d", path, rec.Code)
		}
	}
	page := get(t, fleet(), "/").Body.String()
	if regexp.MustCompile(`<script(?:[^>]*[^>])?>[^<]`).MatchString(page) || strings.Contains(page, "style=") || strings.Contains(page, "<style") {
		t.Error("the page has inline script or style, which its own policy forbids")
	}
}

// TestWhatIsNoAssetTellsNothing: assets are served to everybody, also to those who
// may see no page.
func TestWhatIsNoAssetTellsNothing(t *testing.T) {
	for _, path := range []string{"/assets/", "/assets/none", "/assets/%2e%2e/pools", "/assets%2Fnone"} {
		if rec := get(t, fleet(), path); rec.Code != http.StatusNotFound || rec.Body.String() != "not found\n" {
			t.Errorf("%s gives %d: %s", path, rec.Code, rec.Body)
		}
	}
}

func TestAPIPools(t *testing.T) {
	if body := get(t, testBoard(), "/api/v1/pools").Body.String(); body != "{\n  \"pools\": [],\n  \"launchConfigs\": []\n}\n" {
		t.Errorf("no pools: %s", body)
	}
	b := testBoard()
	want := []plan.PoolStatus{statustest.Pool("a", "web", statustest.Rolling(37, 5)), statustest.Pool("b", "batch"), statustest.Pool("b", "web", statustest.Managed)}
	b.Targets.Report(t.Context(), statustest.Report("b", want[2], want[1]))
	b.Targets.Report(t.Context(), statustest.Report("a", want[0]))
	rec := get(t, b, "/api/v1/pools")
	var got struct{ Pools []plan.PoolStatus }
	if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Pools); diff != "" {
		t.Errorf("pools (-want +got):\n%s", diff)
	}
	if ct := rec.Header().Get("Content-Type"); ct != "application/json" {
		t.Errorf("content type is %q", ct)
	}
}

func TestAPITargets(t *testing.T) {
	rec := get(t, fleet(), "/api/v1/targets")
	var got struct {
		Targets []struct {
			Name, Phase, Revision, Error string
			Diagnostics                  []struct{ Severity, File string }
			Plan                         *struct {
				Schema string
				Steps  []struct{ Verb, Held string }
			}
			Outcomes []struct{ Verb, Status string }
			NextDue  time.Time
		}
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	by := map[string]int{}
	for i, target := range got.Targets {
		by[target.Name] = i
	}
	dev, staging, eu := got.Targets[by["dev"]], got.Targets[by["staging"]], got.Targets[by["prod-eu"]]
	if dev.Plan == nil || dev.Plan.Schema != "weir.dev/plan/v1" || dev.Plan.Steps[0].Held != "suspended" || dev.Outcomes[0].Status != "held" {
		t.Errorf("dev is %+v", dev)
	}
	if staging.Plan != nil || staging.Phase != "failing" || staging.Diagnostics[0].File != "overlays/staging/pool.yaml" {
		t.Errorf("staging is %+v", staging)
	}
	if eu.Phase != "converged" || !eu.NextDue.Equal(statustest.Noon.Add(48*time.Second)) {
		t.Errorf("prod-eu is %+v", eu)
	}
}

func TestReadiness(t *testing.T) {
	check := func(b *current.State, code int, body string) {
		t.Helper()
		if rec := get(t, b, "/readyz"); rec.Code != code || rec.Body.String() != body+"\n" {
			t.Errorf("readyz gives %d %q, want %d %q", rec.Code, rec.Body.String(), code, body)
		}
	}
	check(current.New(current.Options{}), 503, "not ready: waiting for the configuration")
	b := testBoard("prod", "dev")
	check(b, 503, "not ready: waiting for the first pass over dev, the first pass over prod")
	b.Targets.Report(t.Context(), statustest.Report("prod"))
	check(b, 503, "not ready: waiting for the first pass over dev")
	failing := statustest.Report("dev")
	failing.Err = errors.New("denied")
	b.Targets.Report(t.Context(), failing) // a pass that failed is a pass
	check(b, 200, "ready")
}

// weir says that something is slow, on the page, by the API and to a caller that waits
// for readiness.
func TestWhatIsSlowIsTold(t *testing.T) {
	b := current.New(current.Options{Now: func() time.Time { return statustest.Noon }})
	b.Configure(nil, []current.Target{{Name: "prod"}, {Name: "dev"}})
	b.Targets.SetRendering(map[string]current.Rendering{"prod": {Revision: "0123456789abcdef", Since: statustest.Noon}})
	b.Targets.SetUnanswered(map[string]time.Time{"dev": statustest.Noon.Add(time.Minute)})
	h := Handler(b, Options{})
	get := func(path string) string {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
		return rec.Body.String()
	}
	rendering, silent := "commit 0123456 has been rendering since 12:00:00 UTC", "AWS has not answered since 12:01:00 UTC"
	for path, want := range map[string][]string{
		"/": {rendering, silent}, "/readyz": {rendering, silent}, "/api/v1/targets": {`"unansweredSince"`, `"rendering"`},
	} {
		for _, text := range want {
			if got := get(path); !strings.Contains(got, text) {
				t.Errorf("%s does not say %q: %s", path, text, got)
			}
		}
	}
	b.Targets.SetRendering(nil)
	b.Targets.SetUnanswered(nil)
	if got := get("/") + get("/api/v1/targets"); strings.Contains(got, "since 12:") || strings.Contains(got, "rendering\"") {
		t.Error("it is still told")
	}
}

func TestHealth(t *testing.T) {
	now := statustest.Noon
	b := current.New(current.Options{Now: func() time.Time { return now }})
	h := Handler(b, Options{StaleAfter: time.Minute})
	code := func() int {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/healthz", nil))
		return rec.Code
	}
	for _, c := range []struct {
		do   func()
		want int
	}{
		{func() {}, 200},
		{func() { now = now.Add(2 * time.Minute) }, 503}, // never started
		{func() { b.Heartbeat.Beat(0) }, 200},
		{func() { now = now.Add(59 * time.Second) }, 200},
		{func() { now = now.Add(2 * time.Second) }, 503},
		{func() { b.Targets.Report(t.Context(), statustest.Report("prod")) }, 503},     // a pass is no sign that the loop turns
		{func() { b.Heartbeat.Beat(time.Hour); now = now.Add(59 * time.Minute) }, 200}, // as its interval says
		{func() { now = now.Add(2 * time.Minute) }, 503},
		{func() { b.Heartbeat.Beat(time.Second); now = now.Add(50 * time.Second) }, 200},
		{func() { now = now.Add(11 * time.Second) }, 503},
	} {
		c.do()
		if got := code(); got != c.want {
			t.Errorf("at %s: %d, want %d", now.Format(time.TimeOnly), got, c.want)
		}
	}
}
