package app

import (
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/status/access"
)

// TestEverythingIsGuarded asks a whole daemon for all kinds of things, and has its
// configuration change while it runs.
func TestEverythingIsGuarded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m6i.large", 3)}))
	revision := w.repo.Commit("a pool")
	token := strings.Repeat("a-token-", 5)
	c := guardedConfig(w, token)
	var next atomic.Pointer[config.Config]
	next.Store(c)
	a, stop := w.startConfig(c, func() (*config.Config, error) { return next.Load(), nil })
	defer stop()
	converged(t, a, revision, 1)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true} //nolint:gosec // its own
	defer transport.CloseIdleConnections()
	ask := func(method, path, token string) (int, string, http.Header) {
		t.Helper()
		req, err := http.NewRequest(method, a.PageURL()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.ProtoMajor != 2 {
			t.Errorf("%s over %s", path, res.Proto)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body), res.Header
	}
	for _, tc := range []struct {
		method, path, token string
		code                int
	}{
		{"GET", "/", "", 401}, {"GET", "/", token, 200}, {"GET", "/pools", token, 200}, {"GET", "/targets/prod", token, 200}, {"GET", "/targets/none", token, 404},
		{"GET", "/nowhere", "", 401}, {"GET", "/nowhere", token, 404}, {"GET", "/api/v1/pools", "", 401}, {"GET", "/api/v1/targets", token, 200},
		{"GET", "/api/v1/control", "", 401}, {"GET", "/configuration", "", 401}, {"GET", "/live", "", 401}, {"GET", "/metrics", "", 401}, {"GET", "/metrics", token, 200},
		{"GET", "/healthz", "", 200}, {"GET", "/readyz", "", 200}, {"GET", "/login", "", 200}, {"POST", "/hooks/pools", "", 401}, {"POST", "/nowhere", "", 401},
		{"POST", "/api/v1/reconcile", "", 401}, {"POST", "/actions/suspend", token, 403}, {"PUT", "/api/v1/pools", token, 403},
	} {
		code, body, header := ask(tc.method, tc.path, tc.token)
		if code != tc.code {
			t.Errorf("%s %s, token %t: %d, want %d", tc.method, tc.path, tc.token != "", code, tc.code)
		}
		if policy := header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") {
			t.Errorf("%s %s: policy %q", tc.method, tc.path, policy)
		}
		if code == 401 && (strings.Contains(body, "prod") || strings.Contains(body, "web")) {
			t.Errorf("%s %s tells of the fleet: %s", tc.method, tc.path, body)
		}
	}
	if _, body, _ := ask("GET", "/readyz", ""); body != "ok\n" {
		t.Errorf("readyz tells %q", body)
	}

	// A new configuration counts from the next request on; weir refuses an unusable one as a whole.
	swap := func(change func(*config.Config)) {
		other := *c
		change(&other)
		next.Store(&other)
		a.reloadDue.send()
	}
	swap(func(c *config.Config) { c.Access = access.Access{Anonymous: access.AnonymousRead} })
	eventually(t, "everybody reads", func() string {
		if code, _, _ := ask("GET", "/api/v1/pools", ""); code != 200 {
			return http.StatusText(code)
		}
		return ""
	})
	if code, _, _ := ask("GET", "/", token); code != 401 {
		t.Errorf("a token that is gone: %d", code)
	}
	for _, change := range []func(*config.Config){
		func(c *config.Config) { c.TLS = config.TLS{}; c.Access.Tokens = nil },
		func(c *config.Config) { c.TLS.CertFile = c.TLS.KeyFile },
	} {
		before := refusedConfigs(a)
		swap(change)
		eventually(t, "a refusal", func() string {
			if refusedConfigs(a) == before {
				return "none"
			}
			return ""
		})
		if code, _, _ := ask("GET", "/api/v1/pools", ""); code != 200 {
			t.Errorf("after a refused configuration: %d", code)
		}
	}
}

// refusedConfigs counts the configurations that were refused.
func refusedConfigs(a *App) (n int) {
	for _, e := range a.current.Activity.Events() {
		if e.Kind == "configuration-refused" {
			n++
		}
	}
	return n
}
