package commands

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/source/upload"
)

// weir plans work trees only for programs that have proved who they are or run on this machine. It reports faults of the tree, and its own failures
// without secrets.
func TestWorkTreesThatAreSent(t *testing.T) {
	b, _ := newBook(t)
	var got Draft
	var gives error
	who := ""
	h := Handler(Options{
		Book: b, Daemon: known{}, Logger: slog.New(slog.DiscardHandler), Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "(redacted)") },
		Who: func(*http.Request) string { return who },
		Plan: func(_ context.Context, d Draft) (*Planned, error) {
			got = d
			if _, err := io.Copy(io.Discard, d.Archive); err != nil {
				return nil, err
			}
			return &Planned{Schema: "weir.dev/plans/v1", Source: "pools"}, gives
		},
	}, http.NotFoundHandler())
	for name, tc := range map[string]struct {
		who, from, kind, header string
		gives                   error
		code                    int
		has                     string
	}{
		"a reader":           {who: "ann", from: "192.0.2.7:1", code: 200, has: `"source":"pools"`},
		"on this machine":    {from: "127.0.0.1:1", code: 200, has: `"source":"pools"`},
		"somebody elsewhere": {from: "192.0.2.7:1", code: 403, has: "this machine only"},
		"no header":          {who: "ann", from: "192.0.2.7:1", header: "X-Other", code: 403, has: "from programs"},
		"what forms send":    {who: "ann", from: "192.0.2.7:1", kind: "text/plain", code: 403, has: "application/gzip"},
		"another type":       {from: "127.0.0.1:1", kind: "application/json", code: 403, has: "application/gzip"},
		"its own fault":      {who: "ann", from: "192.0.2.7:1", gives: fault("do this", "that is wrong"), code: 400, has: `{"error":"that is wrong","hint":"do this"}`},
		"others before it":   {who: "ann", from: "192.0.2.7:1", gives: ErrBusy, code: 429, has: "try again"},
		"a fault of weir's":  {who: "ann", from: "192.0.2.7:1", gives: errors.New("AWS said hunter2"), code: 500, has: "AWS said (redacted)"},
	} {
		who, gives, got = tc.who, tc.gives, Draft{}
		r := httptest.NewRequest(http.MethodPost, PlanPath+"?target=b&target=a&repository=0123", strings.NewReader("tree"))
		r.RemoteAddr, r.Host = tc.from, "127.0.0.1:8344"
		header := tc.header
		if header == "" {
			header = Header
		}
		r.Header.Set(header, "1")
		r.Header.Set("Content-Type", upload.ContentType)
		if tc.kind != "" {
			r.Header.Set("Content-Type", tc.kind)
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		if rec.Code != tc.code || !strings.Contains(rec.Body.String(), tc.has) {
			t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
		}
		if asked := got.Archive != nil; asked != (tc.code != 403) {
			t.Errorf("%s: planned %t", name, asked)
		}
		if got.Archive != nil && (!slices.Equal(got.Targets, []string{"b", "a"}) || !slices.Equal(got.Repositories, []string{"0123"}) || got.By == "") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	// One that is too large is not read to its end.
	who, gives = "ann", nil
	r := httptest.NewRequest(http.MethodPost, PlanPath, io.LimitReader(zeros{}, upload.MaxPacked+1))
	r.Header.Set(Header, "1")
	r.Header.Set("Content-Type", upload.ContentType)
	rec := httptest.NewRecorder()
	if h.ServeHTTP(rec, r); rec.Code == http.StatusOK {
		t.Error("more is read than there may be")
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
