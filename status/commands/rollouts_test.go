package commands

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/status/waves"
)

// ledger has one FleetRollout.
type ledger struct {
	err  error
	seen []RolloutRequest
}

func (l *ledger) List() (waves.List, error) {
	return waves.List{Rollouts: []waves.Rollout{{Name: "default/nodes", Source: "pools", Phase: waves.Running}}}, l.err
}

func (l *ledger) Do(r RolloutRequest) (waves.Rollout, error) {
	l.seen = append(l.seen, r)
	return waves.Rollout{Name: "default/nodes", Source: "pools", Phase: waves.Paused}, l.err
}

func TestRolloutsAreCommanded(t *testing.T) {
	var l ledger
	var done []Action
	who := ""
	ask := func(method, path, body string, change func(*http.Request)) (int, string) {
		h := Handler(Options{
			Rollouts: &l, Logger: slog.New(slog.DiscardHandler), Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") },
			Who: func(*http.Request) string { return who }, Done: func(a Action) { done = append(done, a) },
		}, http.NotFoundHandler())
		r := httptest.NewRequest(method, "http://127.0.0.1"+path, strings.NewReader(body))
		r.RemoteAddr = "127.0.0.1:1"
		r.Header.Set(Header, "1")
		r.Header.Set("Content-Type", jsonType)
		if change != nil {
			change(r)
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		return rec.Code, rec.Body.String()
	}

	for do, word := range map[string]string{"pause": "paused", "resume": "resumed", "abort": "aborted"} {
		done = nil
		code, body := ask(http.MethodPost, RolloutPath, `{"do":"`+do+`","name":"nodes","by":"ann","reason":"hunter2 leaked"}`, nil)
		var out waves.Rollout
		if err := json.Unmarshal([]byte(body), &out); err != nil || code != http.StatusOK || out.Name != "default/nodes" {
			t.Errorf("%s: %d %s", do, code, body)
		}
		if want := "ann " + word + " the rollout default/nodes: *** leaked"; len(done) != 1 || done[0].Text != want || done[0].Command != "rollout "+do {
			t.Errorf("%s: %+v, want %q", do, done, want)
		}
		if got := l.seen[len(l.seen)-1]; got.Do != do || got.Name != "nodes" || got.Reason != "*** leaked" {
			t.Errorf("%s: the request is %+v", do, got)
		}
	}

	// Who has proved a name has that, whatever the request says.
	who = "bob"
	if ask(http.MethodPost, RolloutPath, `{"do":"pause","name":"nodes","by":"ann"}`, nil); l.seen[len(l.seen)-1].By != "bob" {
		t.Errorf("by %+v", l.seen[len(l.seen)-1])
	}
	who = ""

	// Nobody else's page, machine or program may.
	before := len(l.seen)
	for name, change := range map[string]func(*http.Request){
		"from another machine":   func(r *http.Request) { r.RemoteAddr = "192.0.2.7:1" },
		"without the header":     func(r *http.Request) { r.Header.Del(Header) },
		"by another host's name": func(r *http.Request) { r.Host = "attacker.example.com" },
		"from another origin":    func(r *http.Request) { r.Header.Set("Origin", "https://attacker.example.com") },
		"through a proxy":        func(r *http.Request) { r.Header.Set("X-Forwarded-For", "192.0.2.7") },
	} {
		if code, body := ask(http.MethodPost, RolloutPath, `{"do":"abort","name":"nodes"}`, change); code != http.StatusForbidden {
			t.Errorf("%s: %d %s", name, code, body)
		}
	}
	for _, body := range []string{``, `{`, `[]`, `{"do":"abort","name":"nodes","more":1}`, `{"do":"abort"}{}`} {
		if code, out := ask(http.MethodPost, RolloutPath, body, nil); code != http.StatusBadRequest {
			t.Errorf("%q: %d %s", body, code, out)
		}
	}
	if len(l.seen) != before {
		t.Errorf("something was done: %+v", l.seen[before:])
	}
	if code, _ := ask(http.MethodGet, RolloutPath, "", nil); code == http.StatusOK {
		t.Error("a question changes something")
	}

	// What is wrong is said, and what failed inside is not.
	l.err = &gates.Fault{Message: "there is no rollout", Hint: "did you mean nodes?"}
	if code, body := ask(http.MethodPost, RolloutPath, `{"do":"abort","name":"node"}`, nil); code != http.StatusBadRequest || !strings.Contains(body, "did you mean nodes?") {
		t.Errorf("%d %s", code, body)
	}
	l.err = errors.New("engine: secret detail")
	for _, path := range []string{RolloutPath, RolloutsPath} {
		method := map[string]string{RolloutPath: http.MethodPost, RolloutsPath: http.MethodGet}[path]
		if code, body := ask(method, path, `{"do":"abort","name":"nodes"}`, nil); code != http.StatusInternalServerError || strings.Contains(body, "secret detail") {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	l.err = nil
	if code, body := ask(http.MethodGet, RolloutsPath, "", nil); code != http.StatusOK || !strings.Contains(body, `"phase":"Running"`) {
		t.Errorf("%d %s", code, body)
	}
}

// TestFormsOfRollouts has somebody decide by a form of the page.
func TestFormsOfRollouts(t *testing.T) {
	for name, tc := range map[string]struct {
		by, do string
		err    error
		code   int
		says   string
	}{
		"pause":  {"ann", "pause", nil, 303, "ann paused the rollout default/nodes: *** leaked."},
		"resume": {"ann", "resume", nil, 303, "ann resumed the rollout default/nodes: *** leaked."},
		"abort":  {"ann", "abort", nil, 303, "ann aborted the rollout default/nodes: *** leaked."},
		"wrong":  {"ann", "abort", &gates.Fault{Message: "default/nodes has no rollout in progress"}, 400, "default/nodes has no rollout in progress → /rollouts/pools/default/nodes"},
		"broken": {"ann", "abort", errors.New("disk: hunter2"), 500, "the command failed → /rollouts/pools/default/nodes"},
		"nobody": {"", "abort", nil, 403, "the caller is unknown"},
	} {
		l := ledger{err: tc.err}
		b, _ := newBook(t)
		h, a := handlerFor(b, tc.by, &l)
		form := url.Values{"do": {tc.do}, "name": {"default/nodes"}, "source": {"pools"}, "revision": {"abc"}, "reason": {"hunter2 leaked"}, "by": {"root"}, "back": {"/rollouts/pools/default/nodes"}}
		r := httptest.NewRequest(http.MethodPost, formPrefix+"rollout", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		if got := strings.Join(append(a.said, a.refused...), "\n"); rec.Code != tc.code || !strings.Contains(got, tc.says) {
			t.Errorf("%s: %d, %q", name, rec.Code, got)
		}
		want := RolloutRequest{By: "ann", Do: tc.do, Name: "default/nodes", Source: "pools", Reason: "*** leaked", Revision: "abc"}
		if tc.by == "" {
			if len(l.seen) != 0 {
				t.Errorf("%s: it was asked for %+v", name, l.seen)
			}
			continue
		}
		if len(l.seen) != 1 || l.seen[0] != want {
			t.Errorf("%s: it was asked for %+v", name, l.seen)
		}
		if done := len(a.actions) == 1; done != (tc.err == nil) {
			t.Errorf("%s: actions %+v", name, a.actions)
		}
	}
}
