package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/status/access"
	"github.com/weir-gitops/weir/status/page"
)

// TestNoTokenForWhoeverListens has another user of the machine listen where the
// daemon is expected, and answer in every way: none of them is given the token, or
// what the state directory's key is good for.
func TestNoTokenForWhoeverListens(t *testing.T) {
	dir := t.TempDir()
	token := strings.Repeat("0123456789abcdef", 4)
	tokenFile := filepath.Join(dir, "token")
	if err := os.WriteFile(tokenFile, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := access.Key(filepath.Join(dir, "state"))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var heard bytes.Buffer
	var answer http.HandlerFunc
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, _ := httputil.DumpRequest(r, true)
		mu.Lock()
		heard.Write(sent)
		mu.Unlock()
		answer(w, r)
	}))
	defer listener.Close()
	cfg := filepath.Join(dir, "weir.yaml")
	text := fmt.Sprintf("apiVersion: weir.dev/v1alpha1\nkind: Config\ninstance: fleet\nstateDir: state\nlisten: %s\n"+
		"access: {tokens: [{name: ops, role: operate, file: token}]}\nsources: [{name: pools, url: https://git.example.com/fleet}]\n"+
		"targets: [{name: prod, path: overlays/prod, region: eu-west-1}]\n", strings.TrimPrefix(listener.URL, "http://"))
	if err := os.WriteFile(cfg, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	commands := [][]string{
		{"status"}, {"history"}, {"suspend", "prod", "--reason", "why", "--for", "1h"}, {"resume", "prod"}, {"approve", strings.Repeat("a", 64)}, {"reconcile"},
	}
	for name, how := range map[string]http.HandlerFunc{
		"everything": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"session":"s","proof":"cA","pools":[],"targets":[],"events":[]}`)
		},
		"its own words": func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprintf(w, `{"session":"s","proof":%q}`, strings.TrimPrefix(r.Header.Get("Authorization"), "Weir "))
		},
		"another key":  welcomeOf(t, strings.Repeat("x", 64)),
		"nothing":      func(http.ResponseWriter, *http.Request) {},
		"not found":    http.NotFound,
		"unauthorized": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"elsewhere":    func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusSeeOther) },
	} {
		answer = how
		for _, args := range commands {
			for _, way := range [][]string{{"--config", cfg}, {"--server", listener.URL, "--token-file", tokenFile}} {
				heard.Reset()
				var out bytes.Buffer
				code := run(t.Context(), append(append([]string{}, args...), way...), surroundings{stdin: strings.NewReader(""), stdout: &out, stderr: &out, getenv: func(string) string { return "" }})
				if code == 0 || heard.Len() == 0 {
					t.Fatalf("%s, %v %v: exit %d, %d bytes heard: %s", name, args, way[0], code, heard.Len(), out.String())
				}
				for what, secret := range map[string]string{
					"token": token, "key": string(key), "key in base64": base64.StdEncoding.EncodeToString(key), "what is asked": "/api/v1/" + args[0], "what is read": "/api/v1/pools",
				} {
					if strings.Contains(heard.String(), secret) {
						t.Errorf("%s, %v %v: the listener got the %s:\n%s", name, args, way[0], what, heard.String())
					}
				}
			}
		}
	}
}

// welcomeOf answers hellos as a daemon with another token does.
func welcomeOf(t *testing.T, token string) http.HandlerFunc {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &config.Config{Access: access.Access{Tokens: []access.Token{{Name: "x", Role: access.RoleOperate, File: file}}}}
	return access.New(access.NewPolicy(c.Access, c.Secure(), access.OnLoopback(c.Listen)), access.Options{Key: []byte(token), Notices: page.NewNotices(), Logger: slog.New(slog.DiscardHandler)}).Handler(http.NotFoundHandler()).ServeHTTP
}

// TestRelayChangesNothing has somebody between a command and its daemon pass on what
// both say, as anybody may who listens on another port: what was asked for arrives
// once and as it was, and nothing else can be asked with what was heard.
func TestRelayChangesNothing(t *testing.T) {
	dir := t.TempDir()
	token := strings.Repeat("0123456789abcdef", 4)
	file := filepath.Join(dir, "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &config.Config{Access: access.Access{Tokens: []access.Token{{Name: "ops", Role: access.RoleOperate, File: file}}}}
	var done []string
	daemon := httptest.NewServer(access.New(access.NewPolicy(c.Access, c.Secure(), access.OnLoopback(c.Listen)), access.Options{Key: []byte("k"), Notices: page.NewNotices(), Logger: slog.New(slog.DiscardHandler)}).Handler(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			done = append(done, access.CallerOf(r.Context()).Name+" "+string(body))
			_, _ = io.WriteString(w, `{"suspension":{"target":"prod"}}`)
		})))
	defer daemon.Close()
	to, err := url.Parse(daemon.URL)
	if err != nil {
		t.Fatal(err)
	}
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	var kept []*http.Request
	relay := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		again := r.Clone(t.Context())
		again.Body, again.ContentLength = io.NopCloser(strings.NewReader(strings.ReplaceAll(string(body), "1h0m0s", "9h0m0s"))), int64(len(body))
		kept = append(kept, again)
		r.Body = io.NopCloser(bytes.NewReader(body))
		pass.ServeHTTP(w, r)
	}))
	defer relay.Close()
	var out bytes.Buffer
	code := run(t.Context(), []string{"suspend", "prod", "--reason", "why", "--for", "1h", "--server", relay.URL, "--token-file", file},
		surroundings{stdin: strings.NewReader(""), stdout: &out, stderr: &out, getenv: func(string) string { return "" }})
	if code != 0 || len(done) != 1 || !strings.HasPrefix(done[0], "ops ") || !strings.Contains(done[0], `"for":"1h0m0s"`) {
		t.Fatalf("exit %d, done: %q; %s", code, done, out.String())
	}
	for _, r := range kept {
		pass.ServeHTTP(httptest.NewRecorder(), r)
		if r.URL.Path == access.ProofPath {
			continue
		}
		r.Body = io.NopCloser(strings.NewReader(`{"for":"9h"}`))
		pass.ServeHTTP(httptest.NewRecorder(), r)
	}
	if len(done) != 1 {
		t.Errorf("more was done with what was heard: %q", done)
	}
}
