package commands

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/state"
)

// hand moves a clock.
type hand struct{ at time.Time }

func (c *hand) now() time.Time { return c.at }

func newBook(t *testing.T) (*gates.Recorder, *hand) {
	t.Helper()
	db, err := state.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	c := &hand{time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)}
	return gates.NewRecorder(db, clock.At(c.now)), c
}

func read(t *testing.T, b *gates.Recorder) gates.Records {
	t.Helper()
	r := b.Read()
	if r.Lost != nil {
		t.Fatal(r.Lost.Why)
	}
	return r
}

// known is a daemon with the targets that it names.
type known []string

func (k known) Knows(target string) bool                       { return slices.Contains(k, target) }
func (k known) Targets() []string                              { return k }
func (known) Pools(string) []string                            { return nil }
func (known) Planned(string) ([]gates.Grant, []string, error)  { return nil, nil, nil }
func (known) Pass([]string)                                    {}
func (k known) Reconcile(t []string, _ bool) ([]string, error) { return t, nil }

func TestCommandsComeFromThisMachineOnly(t *testing.T) {
	b, _ := newBook(t)
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	h := Handler(Options{
		Book: b, Daemon: known{"prod"}, Logger: slog.New(slog.DiscardHandler), Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") },
	}, next)
	const good = `{"target":"prod","reason":"my hunter2","for":"1h","by":"ann"}`
	for name, tc := range map[string]struct {
		change func(*http.Request) *http.Request
		body   string
		want   int
	}{
		"good":      {want: http.StatusOK},
		"over IPv6": {change: func(r *http.Request) *http.Request { r.RemoteAddr = "[::1]:1234"; return r }, want: http.StatusOK},
		"over a socket": {change: func(r *http.Request) *http.Request {
			r.RemoteAddr = "@"
			return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.UnixAddr{Net: "unix"})))
		}, want: http.StatusOK},
		"to localhost":         {change: func(r *http.Request) *http.Request { r.Host = "localhost:8344"; return r }, want: http.StatusOK},
		"from elsewhere":       {change: func(r *http.Request) *http.Request { r.RemoteAddr = "10.0.0.7:1234"; return r }, want: http.StatusForbidden},
		"from nowhere":         {change: func(r *http.Request) *http.Request { r.RemoteAddr = ""; return r }, want: http.StatusForbidden},
		"through a proxy":      {change: func(r *http.Request) *http.Request { r.Header.Set("X-Forwarded-For", "10.0.0.7"); return r }, want: http.StatusForbidden},
		"without the header":   {change: func(r *http.Request) *http.Request { r.Header.Del(Header); return r }, want: http.StatusForbidden},
		"from a page":          {change: func(r *http.Request) *http.Request { r.Header.Set("Origin", "http://127.0.0.1:8344"); return r }, want: http.StatusForbidden},
		"from a browser":       {change: func(r *http.Request) *http.Request { r.Header.Set("Sec-Fetch-Site", "none"); return r }, want: http.StatusForbidden},
		"as a form":            {change: func(r *http.Request) *http.Request { r.Header.Set("Content-Type", "text/plain"); return r }, want: http.StatusForbidden},
		"under a rebound name": {change: func(r *http.Request) *http.Request { r.Host = "evil.example:8344"; return r }, want: http.StatusForbidden},
		"not JSON":             {body: "target=prod", want: http.StatusBadRequest},
		"an unknown key":       {body: `{"target":"prod","sudo":true}`, want: http.StatusBadRequest},
		"two requests":         {body: good + good, want: http.StatusBadRequest},
		"too much":             {body: `{"reason":"` + strings.Repeat("x", maxRequest) + `"}`, want: http.StatusBadRequest},
		"what makes no sense":  {body: `{"target":"dev"}`, want: http.StatusBadRequest},
	} {
		body := tc.body
		if body == "" {
			body = good
		}
		r := httptest.NewRequest(http.MethodPost, SuspendPath, strings.NewReader(body))
		r.RemoteAddr, r.Host = "127.0.0.1:1234", "127.0.0.1:8344"
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(Header, "1")
		if tc.change != nil {
			r = tc.change(r)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tc.want {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		var wrong gates.Fault
		if err := json.Unmarshal(w.Body.Bytes(), &wrong); err != nil || (w.Code != http.StatusOK) != (wrong.Message != "") {
			t.Errorf("%s: %s", name, w.Body)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, RecordsPath, nil))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"reason":"my ***"`) {
		t.Errorf("records: %d %s", w.Code, w.Body)
	}
	w = httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, SuspendPath, nil))
	if w.Code != http.StatusTeapot {
		t.Errorf("a GET is answered with %d", w.Code)
	}
}
