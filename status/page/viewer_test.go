package page

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/statustest"
)

// asViewer is a page as somebody sees it.
func asViewer(b *current.State, v Viewer, path string) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	Handler(b, Options{Viewer: func(*http.Request) Viewer { return v }}).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
	return rec
}

// waiting has a target whose plan is held for something.
func waiting(hold step.Hold) *current.State {
	b := testBoard()
	b.Targets.Report(context.Background(), statustest.With(statustest.Report("prod", statustest.Pool("prod", "web")), step.Held, step.Step{Verb: step.Update, Resource: step.LaunchTemplate, Pool: "default/web", Name: "web", Held: hold}))
	return b
}

// drifting has a target with a pool of which AWS differs.
func drifting(hold step.Hold, report bool) *current.State {
	b := testBoard()
	pool := statustest.Pool("prod", "web")
	pool.Conditions = append(pool.Conditions, plan.Condition{Type: "Drifted", Status: "True"})
	r := statustest.With(statustest.Report("prod", pool), step.Held, step.Step{Verb: step.Update, Resource: step.AutoScalingGroup, Pool: "default/web", Name: "web", Held: hold})
	r.ReportOnly = report
	b.Targets.Report(context.Background(), r)
	return b
}

func TestWhatAPageOffers(t *testing.T) {
	const all = "/actions/reconcile /actions/suspend /actions/resume /actions/approve /actions/unapprove /actions/accept override"
	ann := Viewer{Name: "ann", Operate: true, LogOut: true, Form: "the-token", Holds: []Suspension{{Target: "prod", Text: "suspended by ann"}, {Target: "prod", Pool: "default/other", Text: "x"}, {Target: "dev", Text: "suspended by bob"}}}
	reader := ann
	reader.Operate, reader.Form = false, ""
	keeper := Viewer{Name: "ann", Operate: true, LogOut: true, Form: "the-token", Accepts: []string{"fleet"}}
	const web = "/targets/prod/pools/default/web"
	for name, tc := range map[string]struct {
		current *current.State
		viewer  Viewer
		path    string
		offers  string
		says    string
	}{
		"an operator's target":      {waiting(step.HeldApproval), ann, "/targets/prod", "/actions/reconcile /actions/suspend /actions/resume /actions/approve", "suspended by ann"},
		"beyond the prune limit":    {waiting(step.HeldPruneLimit), ann, "/targets/prod", "/actions/reconcile /actions/suspend /actions/resume /actions/approve", ""},
		"before a window":           {waiting(step.HeldWindow), ann, "/targets/prod", "/actions/reconcile /actions/suspend /actions/resume override", "for a window"},
		"paused":                    {waiting(step.HeldPaused), ann, "/targets/prod", "/actions/reconcile /actions/suspend /actions/resume", ""},
		"an operator's pool":        {waiting(step.HeldApproval), ann, "/targets/prod/pools/default/web", "/actions/suspend /actions/resume", "Suspend this pool"},
		"an operator's plan":        {waiting(step.HeldApproval), ann, "/targets/prod/plan", "/actions/approve", ""},
		"drift that is held":        {drifting(step.HeldSuspended, false), keeper, web, "/actions/suspend /actions/accept", "Accept into Git"},
		"drift in report mode":      {drifting("", true), keeper, web, "/actions/suspend /actions/accept", ""},
		"drift that is put right":   {drifting("", false), keeper, web, "/actions/suspend", ""},
		"drift, and no push":        {drifting(step.HeldSuspended, false), Viewer{Name: "ann", Operate: true, LogOut: true, Form: "the-token"}, web, "/actions/suspend", ""},
		"drift for a reader":        {drifting(step.HeldSuspended, false), Viewer{Accepts: []string{"fleet"}}, web, "", ""},
		"a reader's target":         {waiting(step.HeldApproval), reader, "/targets/prod", "", "weir approve "},
		"a reader sees suspensions": {waiting(step.HeldPaused), reader, "/targets/prod", "", "suspended by ann"},
		"an approved plan":          {waiting(step.HeldPaused), Viewer{Operate: true, Approvals: []Approval{{"prod", "abc", "is approved by ann"}, {"dev", "def", "x"}}}, "/targets/prod/plan", "/actions/unapprove", "is approved by ann"},
		"an approved target":        {waiting(step.HeldPaused), Viewer{Approvals: []Approval{{"prod", "abc", "is approved by ann"}}}, "/targets/prod", "", "is approved by ann"},
		"anybody's target":          {waiting(step.HeldApproval), Viewer{LogIn: true}, "/targets/prod", "", "Log in"},
		"everything is suspended":   {waiting(step.HeldPaused), Viewer{Name: "ann", Operate: true, LogOut: true, Form: "the-token", Holds: []Suspension{{Text: "suspended by ann"}}}, "/targets/prod", "/actions/reconcile /actions/suspend", "weir resume --all"},
		"the fleet":                 {waiting(step.HeldApproval), ann, "/", "", "ann"},
	} {
		rec := asViewer(tc.current, tc.viewer, tc.path)
		page := rec.Body.String()
		for what := range strings.FieldsSeq(all) {
			mark := `action="` + what + `"`
			if what == "override" {
				mark = `name="override"`
			}
			if got, want := strings.Contains(page, mark), strings.Contains(tc.offers, what); got != want && (what != "/actions/reconcile" || !strings.Contains(tc.offers, "override")) {
				t.Errorf("%s: offers %s: %t", name, what, got)
			}
		}
		if rec.Code != http.StatusOK || !strings.Contains(page, tc.says) {
			t.Errorf("%s: %d, and it does not say %q", name, rec.Code, tc.says)
		}
		if strings.Contains(page, "suspended by bob") && tc.path != "/" {
			t.Errorf("%s: it tells of another target's suspension", name)
		}
		if forms, tokens := strings.Count(page, `method="post"`), strings.Count(page, `name="form" value="the-token"`); tc.viewer.Form != "" && forms != tokens {
			t.Errorf("%s: %d forms, %d tokens", name, forms, tokens)
		}
		if reload := strings.Contains(page, `http-equiv="refresh"`); reload == tc.viewer.Operate {
			t.Errorf("%s: without scripts it reloads: %t", name, reload)
		}
	}
}

// TestNobodyWritesOnAPage shows hostile names wherever a page tells of who reads it
// and of what they did.
func TestNobodyWritesOnAPage(t *testing.T) {
	for _, evil := range []string{
		`<script>alert(1)</script>"'><img src=x onerror=alert(2)>`, `"><svg onload=alert(1)>`, `javascript:alert(1)`, `</title><base href=//evil.example>`, "' onmouseover='alert(1)",
	} {
		v := Viewer{Name: evil, Operate: true, LogIn: true, LogOut: true, Form: evil, Said: evil, Holds: []Suspension{{Target: "prod", Text: evil}, {Target: "prod", Pool: "default/web", Text: evil}}, Approvals: []Approval{{"prod", evil, evil}}}
		pages := map[string]string{}
		for _, path := range []string{"/", "/targets/prod", "/targets/prod/plan", "/targets/prod/pools/default/web", "/activity"} {
			pages[path] = asViewer(waiting(step.HeldApproval), v, path).Body.String()
		}
		n := NewNotices()
		for name, write := range map[string]func(http.ResponseWriter){
			"login": func(w http.ResponseWriter) {
				n.SignIn(w, 200, SignIn{Back: evil, Form: evil, Problem: evil, Name: evil})
			},
			"notice": func(w http.ResponseWriter) { n.Notice(w, 403, Notice{Headline: evil, Text: evil, Back: evil}) },
		} {
			rec := httptest.NewRecorder()
			write(rec)
			pages[name] = rec.Body.String()
		}
		for name, page := range pages {
			if tags := foreignMarkup([]byte(page)); tags != nil {
				t.Errorf("%s lets %q through: %v", name, evil, tags)
			}
			if strings.Contains(page, `href="javascript:`) || strings.Contains(page, "<svg onload") || strings.Contains(page, "<base") || strings.Contains(page, "style=") {
				t.Errorf("%s lets %q through", name, evil)
			}
		}
	}
}

// TestNoticesShareTheStyle finds what the bare pages are made of at the page's own
// addresses.
func TestNoticesShareTheStyle(t *testing.T) {
	rec := httptest.NewRecorder()
	NewNotices().SignIn(rec, 200, SignIn{Back: "/"})
	page := rec.Body.String()
	found := assetPath.FindAllString(page, -1)
	if len(found) < 2 || strings.Contains(page, "<script") {
		t.Fatalf("assets %v, or a script", found)
	}
	for _, path := range found {
		if got := get(t, testBoard(), path); got.Code != http.StatusOK {
			t.Errorf("%s gives %d", path, got.Code)
		}
	}
}

var assetPath = regexp.MustCompile(`/assets/[a-z0-9.]+`)
