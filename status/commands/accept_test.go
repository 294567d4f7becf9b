package commands

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/gates"
)

// TestAccept: a program and a form ask to keep what AWS has, in the name that was proven.
func TestAccept(t *testing.T) {
	var got []AcceptRequest
	var done []Action
	said, refused := "", ""
	known := "ann"
	o := Options{
		Logger: slog.New(slog.DiscardHandler), Redact: func(text string) string { return text },
		Who: func(*http.Request) string { return known },
		Accept: func(_ context.Context, r AcceptRequest) (Accepted, error) {
			if r.Pool == "none" {
				return Accepted{}, &gates.Fault{Message: "there is no pool", Hint: "name one"}
			}
			got = append(got, r)
			return Accepted{Target: r.Target, Pool: "default/" + r.Pool, Number: 7, URL: "https://forge/7", Branch: "weir/x"}, nil
		},
		Done: func(a Action) { done = append(done, a) }, Say: func(_ http.ResponseWriter, text string) { said = text },
		Refuse: func(w http.ResponseWriter, status int, wrong *gates.Fault, _ string) {
			refused = wrong.Message
			w.WriteHeader(status)
		},
	}
	h := Handler(o, http.NotFoundHandler())
	api := func(body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, AcceptPath, strings.NewReader(body))
		r.Header.Set(Header, "1")
		r.Header.Set("Content-Type", jsonType)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	form := func(values url.Values) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, formPrefix+"accept", strings.NewReader(values.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	if w := api(`{"target":"prod","pool":"web","fields":["maxSize"],"by":"mallory"}`); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"number":7`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if len(got) != 1 || got[0].By != "ann" || len(got[0].Fields) != 1 {
		t.Errorf("%+v", got)
	}
	for body, want := range map[string]int{`{"target":"prod"}`: 400, `{"target":"prod","pool":"none"}`: 400, `{"target":"prod","pool":"web","fields":[""]}`: 400, `{"other":1}`: 400} {
		if w := api(body); w.Code != want {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	w := form(url.Values{"target": {"prod"}, "pool": {"web"}, "back": {"/targets/prod"}})
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/targets/prod" || !strings.Contains(said, "ann requested to keep AWS's values of pool default/web of prod") || !strings.Contains(said, "https://forge/7") {
		t.Errorf("%d %v %q", w.Code, w.Header(), said)
	}
	if w := form(url.Values{"target": {"prod"}, "pool": {"none"}}); w.Code != http.StatusBadRequest || refused != "there is no pool" {
		t.Errorf("%d %q", w.Code, refused)
	}
	if len(done) != 2 || done[0].Command != "accept" || done[0].By != "ann" || done[0].Request.Pool != "default/web" || len(got) != 2 {
		t.Errorf("%+v", done)
	}
	known = "" // nobody has proven who asks: a program on another machine
	if w := api(`{"target":"prod","pool":"web"}`); w.Code != http.StatusForbidden || len(got) != 2 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
