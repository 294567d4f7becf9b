package app

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/render/redact"
	"github.com/weir-gitops/weir/status/statustest"
)

// shownBy is all that the page and the API show, and what is kept on the disk.
func (w *world) shownBy(a *App) map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for _, path := range []string{"/", "/pools", "/activity", "/activity?show=passes", "/configuration", "/pulls", "/targets/prod", "/targets/prod/plan", "/api/v1/pulls", "/api/v1/pools", "/api/v1/events?limit=2000", "/api/v1/history", "/api/v1/control", "/metrics"} {
		req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://"+a.Addr()+path, nil)
		if err != nil {
			w.t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			w.t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			w.t.Fatal(err)
		}
		out[path] = string(text)
	}
	return out
}

// TestSecretsThatARenderFinds has a secret come in with a commit whose subject, and
// the name of one of whose pools, hold it: when the commit is fetched, nobody knows
// that it is one.
func TestSecretsThatARenderFinds(t *testing.T) {
	t.Parallel()
	const canary = "canary0secret0value"
	w := newWorld(t, quickAWS())
	values := filepath.Join(w.dir, "values.yaml")
	if err := os.WriteFile(values, []byte("NAME: "+canary+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.extra = "  varsFrom: [{file: values.yaml, secret: true}]\n"
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3), "leak": pool("${NAME}", "m5.large", 3)}))
	w.repo.Commit("first " + canary)
	a, stop := w.start()
	eventually(t, "the fault is told", func() string {
		if target, ok := a.current.Targets.Find("prod"); !ok || target.Last == nil || !target.Last.Diagnostics.HasErrors() {
			return "the target has no fault"
		}
		return ""
	})
	for path, text := range w.shownBy(a) {
		if i := strings.Index(text, canary); i >= 0 {
			t.Errorf("%s shows it: …%s…", path, text[max(0, i-200):min(len(text), i+60)])
		}
	}
	stop()
	kept, err := os.ReadFile(filepath.Join(w.dir, "state", "weir.db"))
	if err != nil {
		t.Fatal(err)
	}
	if i := bytes.Index(kept, []byte(canary)); i >= 0 {
		t.Errorf("weir.db holds it: …%s…", kept[max(0, i-200):min(len(kept), i+60)])
	}
	w.forge.mu.Lock()
	defer w.forge.mu.Unlock()
	for sha, list := range w.forge.statuses {
		for _, s := range list {
			for key, v := range s {
				if text, _ := v.(string); strings.Contains(text, canary) {
					t.Errorf("status of %s: %s shows it: %s", sha, key, text)
				}
			}
		}
	}
}

// TestASubjectIsShownOnceItWasRendered looks at the page before and after.
func TestASubjectIsShownOnceItWasRendered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	w.repo.Commit("larger machines for the web")
	a, stop := w.start()
	defer stop()
	eventually(t, "the subject is shown", func() string {
		if text := w.shownBy(a)["/"]; !strings.Contains(text, "larger machines for the web") {
			return text
		}
		return ""
	})
}

// TestARotatedTokenIsHiddenAtOnce has a server that repeats the password which it is
// sent in what becomes an error: no pass has read the new one by then.
func TestARotatedTokenIsHiddenAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	echo := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		conn, _, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 you-sent-%s\r\n\r\n", password)
		_ = conn.Close()
	}))
	defer echo.Close()
	token := filepath.Join(w.dir, "source-token")
	write := func(value string) {
		if err := os.WriteFile(token, []byte(value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("canary1first")
	c := w.config()
	c.Interval, c.Sources[0].Interval = time.Hour, 20*time.Millisecond
	c.Sources[0].URL, c.Sources[0].Auth.TokenFile = echo.URL+"/fleet.git", token
	secrets, log := &redact.Registry{}, &statustest.Log{}
	a, err := New(t.Context(), Options{
		Config: c, Secrets: secrets, Logger: slog.New(secrets.Handler(slog.NewTextHandler(log, nil))), Getenv: func(string) string { return "" },
	})
	if err != nil {
		t.Fatal(err)
	}
	a.Start(t.Context())
	defer func() {
		if err := a.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	failures := func() int { return strings.Count(log.String(), "source cannot be read") }
	eventually(t, "the first token is refused", func() string {
		if failures() == 0 {
			return log.String()
		}
		return ""
	})
	for i := range 3 {
		before := failures()
		write(fmt.Sprintf("canary2second%d", i))
		eventually(t, "the new token is refused", func() string {
			if failures() == before {
				return log.String()
			}
			return ""
		})
	}
	shown := w.shownBy(a)
	shown["the log"] = log.String()
	for where, text := range shown {
		if i := strings.Index(text, "canary"); i >= 0 {
			t.Errorf("%s shows a token: …%s…", where, text[max(0, i-200):min(len(text), i+60)])
		}
	}
}

// TestTheStateDirectoryIsPrivate has a directory that was made for everybody to read.
func TestTheStateDirectoryIsPrivate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	revision := w.repo.Commit("first")
	dir := filepath.Join(w.dir, "state")
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // as people make it
		t.Fatal(err)
	}
	a, stop := w.start()
	converged(t, a, revision, 1)
	stop()
	seen := 0
	err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(name)
		if err != nil {
			return err
		}
		seen++
		if name != dir && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", name, info.Mode())
		}
		return nil
	})
	if err != nil || seen < 5 {
		t.Errorf("%d files: %v", seen, err)
	}
}
