package page

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/statustest"
)

func TestPagesSay(t *testing.T) {
	b := fleet()
	b.Sources.Update(current.Source{Name: "fleet", URL: "https://git.example.com/platform/fleet.git", Ref: "branch main", Forge: "gitea"})
	for path, want := range map[string][]string{
		"/pools?sort=missing":  {"9 pools", "web prod-us · default · AWSMachinePool ScalingUp", "workers prod-eu"},
		"/pools?only=problem":  {"1 pool found", "prometheus-long-term"},
		"/pools?only=held":     {"1 pool found", "web dev · default"},
		"/?only=moving&q=prod": {"1 target and 1 pool found"},
		"/targets/prod-us/pools/default/web": {
			"7 of 8 ready, at least 1, at most 12", "Instances by template version v4 current 8 in service 8", "eu-central-1a 3 in service 3",
			"v4 current", "refresh-progress", "37 %, 5 instances left",
		},
		"/targets/dev/plan":     {"Plan of dev", "1 held", "update auto-scaling-group dev-web held: suspended", "maxSize 7 5 overlays/dev/web.yaml:14:12"},
		"/targets/prod-eu/plan": {"No steps: AWS matches Git."},
		"/targets/staging/plan": {"could not make a plan", "unknown field"},
		"/targets/edge-1":       {"This target has had no pass yet."},
		"/targets/edge-1/plan":  {"This target has had no pass yet."},
		"/targets/edge-1/pools/default/web": {
			"Pool default/web not found in edge-1.", "its pools are unknown",
		},
		"/activity":             {"refresh-started", "default/web", "Details"},
		"/activity?level=error": {"target-failed", "platform-observability"},
		"/activity?show=passes": {"nothing to change"},
		"/activity?kind=nosuch": {"No event matches."},
		"/configuration":        {"The configuration is not shown here."},
		"/pulls":                {"No pull requests yet."},
		"/nowhere":              {"Page not found."},
		"/pulls/fleet/9":        {"Pull request 9 of fleet not found."},
	} {
		text := words(get(t, b, path).Body.String())
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s lacks %q:\n%s", path, w, text)
			}
		}
	}
	for path, link := range map[string]string{
		"/targets/staging":  "https://git.example.com/platform/fleet/src/commit/" + statustest.ShaNew + "/overlays/staging/pool.yaml#L12",
		"/targets/prod-us":  "https://git.example.com/platform/fleet/commit/" + statustest.ShaNew,
		"/targets/dev/plan": "https://git.example.com/platform/fleet/src/commit/" + statustest.ShaNew + "/overlays/dev/web.yaml#L14",
	} {
		if page := get(t, b, path).Body.String(); !strings.Contains(page, `href="`+link+`"`) {
			t.Errorf("%s has no link to %s", path, link)
		}
	}
}

func TestVersionsOfATemplateTellWhy(t *testing.T) {
	b := testBoard()
	b.Configure([]current.Source{{Name: "fleet", URL: "https://github.com/acme/fleet"}}, []current.Target{{Name: "prod", Source: "fleet"}})
	p := statustest.Pool("prod", "web")
	p.TemplateVersions = []plan.VersionNote{{Number: 5, Revision: "4be91a7", Subject: "bigger"}, {Number: 4, Revision: "9c1f0d2", Subject: "the first", Default: true}}
	b.Targets.Report(t.Context(), statustest.Report("prod", p))
	b.Activity.Add(events.Event{Kind: "version-created", Target: "prod", Pool: "default/web", Revision: statustest.ShaNew, Reason: "instanceType changed", Facts: map[string]string{"version": "5"},
		Changes: []events.Change{{Field: "awsLaunchTemplate.instanceType", From: "m6i.large", To: "c7g.large", At: "base/pool.yaml:9:3"}}})
	b.Activity.Add(events.Event{Kind: "version-created", Target: "other", Pool: "default/web", Reason: "of another target", Facts: map[string]string{"version": "4"}})
	b.Activity.Add(events.Event{Kind: "template-created", Target: "prod", Pool: "default/web", Revision: statustest.ShaOld, Reason: "it does not exist", Facts: map[string]string{"version": "1"}})
	page := get(t, b, "/targets/prod/pools/default/web").Body.String()
	text := words(page)
	for _, want := range []string{
		"v5 4be91a7 bigger made now instanceType changed 1 field changed Field From To Set at awsLaunchTemplate.instanceType m6i.large c7g.large base/pool.yaml:9:3",
		"v4 current default 9c1f0d2 the first 3 instances", "v1 9c1f0d2 made now the first version",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "of another target") {
		t.Error("the page tells of another target's pool")
	}
	if link := "https://github.com/acme/fleet/blob/" + statustest.ShaNew + "/base/pool.yaml#L9"; !strings.Contains(page, link) {
		t.Errorf("the page has no link to %s", link)
	}
}

func TestPullPages(t *testing.T) {
	b := fleet()
	for i, p := range []report.Pull{statustest.Planned(), statustest.Pulls()["conflict"], statustest.Pulls()["differs"], statustest.Pulls()["foreseen"], statustest.Pulls()["unforeseen"]} {
		p.Number = int64(12 + i)
		b.Pulls.Update(p)
	}
	text := words(get(t, b, "/pulls/fleet/12").Body.String())
	for _, want := range []string{
		"#12 web: c7g instances planned", "Merging this changes 3 of", "held until the plan is approved", "Removed targets edge-2", "rolls 6 instances, one at a time", "prod-eu",
		"awsLaunchTemplate.instanceType m6i.large c7g.large overlays/prod-eu/web.yaml:9:7",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	page := get(t, b, "/pulls/fleet/15").Body.String()
	for _, want := range []string{`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 300"`, "done after 1h15m: 2 pools changed, 16 machines started", "45m  prod-eu default/batch: begins", "nobody else calls AWS"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if text := words(get(t, b, "/pulls/fleet/16").Body.String()); !strings.Contains(text, "Run weir simulate --config weir.yaml --pull-request fleet#12") {
		t.Errorf("the page lacks the command:\n%s", text)
	}
	list := words(get(t, b, "/pulls").Body.String())
	if !strings.Contains(list, "#13") || strings.Index(list, "#12") > strings.Index(list, "Merged and closed") {
		t.Errorf("the list is %s", list)
	}
	var got struct {
		Pulls []struct {
			Number int64
			State  string
			Plans  []struct{ Schema, Target string }
			// Forecast is that of the schema for simulations.
			Forecast *struct {
				Command  string
				Timeline *struct {
					Schema string
					End    float64
				}
			}
		}
	}
	if err := json.Unmarshal(get(t, b, "/api/v1/pulls").Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Pulls) != 5 || got.Pulls[3].Number != 12 || got.Pulls[3].State != "planned" || len(got.Pulls[3].Plans) != 3 || got.Pulls[3].Plans[0].Schema != "weir.dev/plan/v1" {
		t.Errorf("the API says %+v", got)
	}
	for _, p := range got.Pulls {
		f := p.Forecast
		if p.Number == 15 && (f == nil || f.Command != "" || f.Timeline == nil || f.Timeline.Schema != "weir.dev/simulation/v1" || f.Timeline.End != 4500) ||
			p.Number == 16 && (f == nil || f.Command == "" || f.Timeline != nil) || p.Number < 15 && f != nil {
			t.Errorf("the API foresees of %d: %+v", p.Number, f)
		}
	}
	b.Configure(nil, nil)
	if left := b.Pulls.All(); len(left) != 0 {
		t.Errorf("%d pull requests of a source that is gone are kept", len(left))
	}
}

func TestNoSecretIsOnAPage(t *testing.T) {
	const secret = "hunter2-hunter2"
	b := current.New(current.Options{Now: func() time.Time { return statustest.Noon }, Redact: func(s string) string { return strings.ReplaceAll(s, secret, "(redacted)") }})
	seen, _ := hostile(t, secret).Targets.Find(secret)
	r := seen.Last
	// Names stand in Git in the open, and redaction leaves them.
	plain := *r
	plain.Target = "prod"
	plain.Pools[0].Name, plain.Pools[0].Namespace, plain.Pools[0].Target, plain.Pools[0].Cluster, plain.Pools[0].Kind = "web", "default", "prod", "", ""
	plain.Pools[0].Phase, plain.Pools[0].FailureReason, plain.Pools[0].ReadyFrom, plain.Pools[0].LaunchTemplateID, plain.Pools[0].LaunchTemplateVersion = "", "", "", "", ""
	plain.Pools[0].ProviderIDList, plain.Pools[0].NodeRefs, plain.Pools[0].Instances, plain.Pools[0].Nodegroup = nil, nil, nil, nil
	plain.Pools[0].Conditions = []plan.Condition{{Message: secret}}
	plain.Pools[0].TemplateVersions = []plan.VersionNote{{Number: 1, Subject: secret}}
	plain.Pools[0].Rollout = &plan.RolloutStatus{Message: secret}
	plain.Pools[0].Draining = []plan.Draining{{Instance: "i-1", Why: secret}}
	plain.Pools[0].LastRollout = nil
	plain.Account, plain.Region, plain.Ref, plain.Revision, plain.LaunchConfigs = "", "", "", statustest.ShaNew, nil
	plain.Diagnostics = diag.List{{Summary: secret, Detail: secret, Related: []diag.Related{{Message: secret}}}}
	plain.Plan = &plan.Plan{Target: "prod", Steps: []step.Step{{Verb: step.Update, Pool: "default/web", Reason: secret, HeldReason: secret, Drift: &step.Drift{Cause: secret}, Changes: []step.Change{{Field: "f", From: secret, To: []any{secret}}}}}}
	plain.Outcomes = []step.Outcome{{Step: plain.Plan.Steps[0], Status: step.Failed, Err: &observed.Error{Message: secret}}}
	plain.Subject, plain.Err = secret, errors.New(secret)
	b.Configure([]current.Source{{Name: "fleet"}}, nil)
	b.Targets.Report(t.Context(), &plain)
	b.Sources.Update(current.Source{Name: "fleet", Error: secret, Subject: secret, Revision: statustest.ShaNew})
	b.Pulls.Update(report.Pull{Source: "fleet", Number: 1, Title: secret, Author: secret, Reason: secret, Stale: secret, Approved: secret, Differs: []string{secret}, Uncompared: []string{secret}, State: report.PullPlanned, Reports: []*plan.Report{&plain}})
	b.Daemon.ShowConfiguration("vars: " + secret)
	b.Daemon.RefuseConfiguration(secret)
	for _, path := range []string{"/", "/pools", "/targets/prod", "/targets/prod/plan", "/targets/prod/pools/default/web", "/pulls", "/pulls/fleet/1", "/activity", "/activity?show=passes",
		"/configuration", "/api/v1/pools", "/api/v1/targets", "/api/v1/pulls", "/api/v1/events", "/api/v1/history"} {
		rec := get(t, b, path)
		if rec.Code != http.StatusOK || strings.Contains(rec.Body.String(), secret) {
			t.Errorf("%s gives %d and shows the secret: %t", path, rec.Code, strings.Contains(rec.Body.String(), secret))
		}
		if path != "/activity?show=passes" && path != "/api/v1/history" && path != "/pools" && !strings.Contains(rec.Body.String(), "(redacted)") {
			t.Errorf("%s proves nothing: there is nothing redacted on it", path)
		}
	}
}

func TestActivityIsPaged(t *testing.T) {
	b := testBoard()
	for i := range 2*activityPage + 30 {
		b.Activity.Add(events.Event{Kind: "weir-started", Text: fmt.Sprintf("event-%03d.", i), Time: statustest.Noon.Add(time.Duration(i) * time.Millisecond)})
	}
	b.Now = func() time.Time { return statustest.Noon.Add(time.Hour) }
	path, seen := "/activity", map[string]bool{}
	for range 3 {
		page := get(t, b, path).Body.String()
		for _, m := range regexp.MustCompile(`event-\d+\.`).FindAllString(page, -1) {
			if seen[m] {
				t.Errorf("%s shows %s again", path, m)
			}
			seen[m] = true
		}
		b.Activity.Add(events.Event{Kind: "weir-started", Text: "later", Time: statustest.Noon.Add(2 * time.Hour)}) // moves nothing
		next := regexp.MustCompile(`href="([^"]+)" rel="next"`).FindStringSubmatch(page)
		if next == nil {
			path = ""
			break
		}
		path = html.UnescapeString(next[1])
	}
	if len(seen) != 2*activityPage+30 || path != "" {
		t.Errorf("%d events were seen, and there is more at %q", len(seen), path)
	}
}

func TestAnswersAreCompressedAndKnownAgain(t *testing.T) {
	h := Handler(fleet(), Options{})
	ask := func(path string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		return rec
	}
	for _, path := range []string{"/", "/api/v1/targets"} {
		plain, zipped := ask(path), ask(path, "Accept-Encoding", "br, gzip")
		z, err := gzip.NewReader(zipped.Body)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(z)
		if err != nil || string(body) != plain.Body.String() || zipped.Header().Get("Content-Encoding") != "gzip" || plain.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s: compressed is not what is plain (%v)", path, err)
		}
		if refused := ask(path, "Accept-Encoding", "gzip;q=0"); refused.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s is compressed for a reader that refuses it", path)
		}
	}
	first := ask("/api/v1/targets")
	tag := first.Header().Get("ETag")
	if again := ask("/api/v1/targets", "If-None-Match", tag); tag == "" || again.Code != http.StatusNotModified || again.Body.Len() != 0 {
		t.Errorf("asked again with %s: %d, %d bytes", tag, again.Code, again.Body.Len())
	}
	if again := ask("/api/v1/pools", "If-None-Match", tag); again.Code != http.StatusOK {
		t.Errorf("another list has the same tag: %d", again.Code)
	}
}

// The page of a target says which pools run which version of what they share.
func TestATargetsPageSaysWhoRunsWhichVersion(t *testing.T) {
	b := testBoard()
	r := statustest.Report("shared", statustest.Pool("shared", "web"), statustest.Pool("shared", "api"))
	r.LaunchConfigs = []plan.LaunchConfigStatus{{Name: "demo-workers-group", Namespace: "default", Target: "shared", Ready: true, LatestVersion: 3, Pools: []string{"default/api", "default/web"},
		Versions: []plan.SharedVersion{{Version: 2, Pools: []string{"default/api", "default/web"}, WantedBy: []string{"default/api"}}, {Version: 3, WantedBy: []string{"default/web"}}}}}
	b.Configure(nil, []current.Target{{Name: "shared"}})
	b.Targets.Report(t.Context(), r)
	text := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(get(t, b, "/targets/shared").Body.String(), "")
	if !strings.Contains(text, "default/api v2, default/web v2 waits for v3") {
		t.Errorf("%s", text)
	}
}
