package app

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
)

// TestSpansOfACommit: everything that a commit sets off is to be seen, each below
// what it belongs to.
func TestSpansOfACommit(t *testing.T) {
	var mu sync.Mutex
	var spans []*tracepb.Span
	var all strings.Builder
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var data tracepb.TracesData
		if err == nil {
			err = proto.Unmarshal(body, &data)
		}
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			t.Error(err)
		}
		all.WriteString(prototext.Format(&data))
		for _, r := range data.GetResourceSpans() {
			for _, s := range r.GetScopeSpans() {
				spans = append(spans, s.GetSpans()...)
			}
		}
	}))
	defer collector.Close()
	w := newWorld(t, quickAWS())
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	revision := w.repo.Commit("first")
	a, stop := w.start()
	converged(t, a, revision, 1)
	eventually(t, "the commit's status", func() string {
		if got := w.forge.states(revision, "fleet/apply"); !succeeded(got) {
			return "states: " + got
		}
		return ""
	})
	stop()
	mu.Lock()
	defer mu.Unlock()
	byID := map[string]*tracepb.Span{}
	for _, s := range spans {
		byID[string(s.GetSpanId())] = s
	}
	paths := map[string]bool{}
	for _, s := range spans {
		path := s.GetName()
		for up := byID[string(s.GetParentSpanId())]; up != nil; up = byID[string(up.GetParentSpanId())] {
			path = up.GetName() + "/" + path
		}
		paths[path] = true
	}
	for _, want := range []string{
		"fetch", "compose/render", "pass", "pass/scope/resolve", "pass/scope/observe", "pass/scope/plan", "pass/scope/fill",
		"pass/scope/apply/apply CreateLaunchTemplate", "pass/scope/apply/apply CreateGroup", "status write",
	} {
		if !paths[want] {
			t.Errorf("no span %s; there are %v", want, paths)
		}
	}
	if strings.Contains(all.String(), "s3cret-token") || !strings.Contains(all.String(), revision) {
		t.Error("the spans hold a token, or nothing")
	}
}
