package commands

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/gates"
)

// asked is what a handler told of.
type asked struct {
	actions []Action
	said    []string
	refused []string
}

// handlerFor answers somebody who has shown to be by.
func handlerFor(b *gates.Recorder, by string, rollouts Rollouts) (http.Handler, *asked) {
	a := &asked{}
	return Handler(Options{
		Book: b, Daemon: known{"prod", "dev"}, Rollouts: rollouts, Logger: slog.New(slog.DiscardHandler), Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") },
		Who:  func(*http.Request) string { return by },
		Done: func(d Action) { a.actions = append(a.actions, d) },
		Say:  func(_ http.ResponseWriter, text string) { a.said = append(a.said, text) },
		Refuse: func(w http.ResponseWriter, code int, wrong *gates.Fault, back string) {
			a.refused = append(a.refused, wrong.Message+" → "+back)
			w.WriteHeader(code)
		},
	}, http.NotFoundHandler()), a
}

func TestFormsOfThePage(t *testing.T) {
	for name, tc := range map[string]struct {
		by, path string
		form     url.Values
		code     int
		to       string
		says     string // in what was said, or refused
		targets  string
	}{
		"suspend":            {"ann", "suspend", url.Values{"target": {"prod"}, "reason": {"hunter2 again"}, "for": {"1h"}, "back": {"/targets/prod"}}, 303, "/targets/prod", "ann suspended prod until 2 Mar 2026 11:00 UTC: *** again.", "prod"},
		"suspend a pool":     {"ann", "suspend", url.Values{"target": {"prod"}, "pool": {"batch/web"}, "reason": {"x"}, "for": {"1h"}, "back": {"/"}}, 303, "/", "ann suspended pool batch/web of prod until", "prod"},
		"resume":             {"ann", "resume", url.Values{"target": {"prod"}, "back": {"/"}}, 303, "/", "ann resumed prod, which was not suspended.", "prod"},
		"approve":            {"ann", "approve", url.Values{"digest": {strings.Repeat("a1", 32)}, "back": {"/"}}, 303, "/", "ann approved the plan a1a1a1a1a1a1.", ""},
		"reconcile":          {"ann", "reconcile", url.Values{"target": {"dev"}, "retry": {"true"}}, 303, "/", "ann requested a pass over dev, with retries of failed steps.", "dev"},
		"reconcile all":      {"ann", "reconcile", url.Values{}, 303, "/", "ann requested a pass.", ""},
		"without windows":    {"ann", "reconcile", url.Values{"target": {"dev"}, "override": {"true"}}, 303, "/", "overriding windows", "dev"},
		"who says otherwise": {"ann", "resume", url.Values{"target": {"prod"}, "by": {"root"}}, 303, "/", "ann resumed", "prod"},
		"led elsewhere":      {"ann", "resume", url.Values{"target": {"prod"}, "back": {"//evil.example.com"}}, 303, "/", "ann", "prod"},
		"led to a script":    {"ann", "resume", url.Values{"target": {"prod"}, "back": {"javascript:alert(1)"}}, 303, "/", "ann", "prod"},
		"no reason":          {"ann", "suspend", url.Values{"target": {"prod"}, "for": {"1h"}, "back": {"/targets/prod"}}, 400, "", "a reason is required, because others will read it → /targets/prod", ""},
		"no target":          {"ann", "suspend", url.Values{"target": {"<b>"}, "reason": {"x"}, "for": {"1h"}}, 400, "", `there is no target "<b>" → /`, ""},
		"no action":          {"ann", "adopt", url.Values{}, 404, "", "unknown action", ""},
		"no rollouts":        {"ann", "rollout", url.Values{"do": {"abort"}}, 404, "", "unknown action", ""},
		"nobody":             {"", "resume", url.Values{"target": {"prod"}}, 403, "", "the caller is unknown", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := newBook(t)
			h, a := handlerFor(b, tc.by, nil)
			r := httptest.NewRequest(http.MethodPost, formPrefix+tc.path, strings.NewReader(tc.form.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			if rec.Code != tc.code || rec.Header().Get("Location") != tc.to {
				t.Errorf("%d to %q, want %d to %q", rec.Code, rec.Header().Get("Location"), tc.code, tc.to)
			}
			if got := strings.Join(append(a.said, a.refused...), "\n"); !strings.Contains(got, tc.says) {
				t.Errorf("it says %q, want %q", got, tc.says)
			}
			switch {
			case tc.code != http.StatusSeeOther:
				if len(a.actions) != 0 {
					t.Errorf("it was done: %+v", a.actions)
				}
			case len(a.actions) != 1 || a.actions[0].By != "ann" || a.actions[0].Command != tc.path || strings.Join(a.actions[0].Targets, ",") != tc.targets:
				t.Errorf("actions: %+v", a.actions)
			}
		})
	}
}

// TestWhoAsksIsWhoHasShownIt has a program say that it is somebody else.
func TestWhoAsksIsWhoHasShownIt(t *testing.T) {
	b, _ := newBook(t)
	h, a := handlerFor(b, "ci", nil)
	post := func(fields ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, SuspendPath, strings.NewReader(`{"by":"root","target":"prod","reason":"x","for":"1h"}`))
		r.RemoteAddr, r.Host = "192.0.2.7:4000", "weir.example.com"
		for _, f := range fields {
			key, value, _ := strings.Cut(f, ": ")
			r.Header.Set(key, value)
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		return rec
	}
	if rec := post("Content-Type: application/json"); rec.Code != http.StatusForbidden {
		t.Errorf("without the header: %d", rec.Code)
	}
	if rec := post("Content-Type: text/plain", Header+": 1"); rec.Code != http.StatusForbidden {
		t.Errorf("as a form could send it: %d", rec.Code)
	}
	rec := post("Content-Type: application/json; charset=utf-8", Header+": 1")
	text, _ := io.ReadAll(rec.Body)
	if rec.Code != http.StatusOK || !strings.Contains(string(text), `"by":"ci"`) {
		t.Errorf("%d %s", rec.Code, text)
	}
	if s := read(t, b).Suspensions; len(s) != 1 || s[0].By != "ci" || len(a.actions) != 1 || a.actions[0].By != "ci" {
		t.Errorf("%+v, %+v", s, a.actions)
	}
}
