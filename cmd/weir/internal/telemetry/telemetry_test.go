package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/weir-gitops/weir/reconciler/span"
	"github.com/weir-gitops/weir/status/commits"
	"github.com/weir-gitops/weir/status/forge"
)

// collector is an OTLP/HTTP receiver.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	spans   []*tracepb.Span
	all     strings.Builder
	headers []http.Header
	// refuse are the answers to the next requests.
	refuse []int
}

func newCollector(t *testing.T) *collector {
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if r.URL.Path != "/v1/traces" || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("got %s %s, %s", r.Method, r.URL.Path, r.Header.Get("Content-Type"))
		}
		c.headers = append(c.headers, r.Header)
		if len(c.refuse) > 0 {
			rw.WriteHeader(c.refuse[0])
			c.refuse = c.refuse[1:]
			return
		}
		body, err := io.ReadAll(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			var z *gzip.Reader
			if z, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
				body, err = io.ReadAll(z)
			}
		}
		var data tracepb.TracesData
		if err = errors.Join(err, proto.Unmarshal(body, &data)); err != nil {
			t.Error(err)
		}
		c.all.WriteString(prototext.Format(&data))
		for _, r := range data.GetResourceSpans() {
			for _, s := range r.GetScopeSpans() {
				c.spans = append(c.spans, s.GetSpans()...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// environment sets variables until the test ends.
func environment(t *testing.T, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		t.Setenv(pairs[i], pairs[i+1])
	}
}

func valueOf(s *tracepb.Span, key string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == key {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}

type quietForge struct{ commits.Forge }

func (quietForge) Profile() forge.Profile { return forge.ProfileOf(forge.Gitea) }

func (quietForge) SetStatus(context.Context, string, forge.CommitStatus) error {
	return errors.New("refused with hunter2")
}

func TestSpansReachACollector(t *testing.T) {
	c := newCollector(t)
	environment(t, "OTEL_EXPORTER_OTLP_ENDPOINT", c.URL+"/", "OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b,other=1,", "OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	tracing, err := Open(t.Context(), Options{
		Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }, Instance: "fleet", Version: "v1", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, pass := tracing.Tracer().Start(t.Context(), "pass")
	_, step := span.Start(ctx, "apply CreateGroup", "target", "prod", "name", "hunter2", "revision", "")
	span.End(step, errors.New("no hunter2"))
	span.End(pass, nil)
	tracing.Past(ctx, "fetch", time.Minute, nil, "source", "pools")
	if err := tracing.Forge(quietForge{}).SetStatus(t.Context(), "abc", forge.CommitStatus{Context: "fleet/apply"}); err == nil {
		t.Error("the forge's error is lost")
	}
	if err := tracing.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	by := map[string]*tracepb.Span{}
	for _, s := range c.spans {
		by[s.GetName()] = s
	}
	if len(by) != 4 {
		t.Fatalf("got %v", c.all.String())
	}
	child, parent := by["apply CreateGroup"], by["pass"]
	if !bytes.Equal(child.GetParentSpanId(), parent.GetSpanId()) || len(parent.GetParentSpanId()) > 0 || len(by["fetch"].GetParentSpanId()) > 0 {
		t.Error("the spans do not hang together")
	}
	if valueOf(child, "weir.target") != "prod" || valueOf(child, "weir.name") != "***" || child.GetStatus().GetMessage() != "no ***" ||
		child.GetStatus().GetCode() != tracepb.Status_STATUS_CODE_ERROR || len(child.GetAttributes()) != 2 {
		t.Errorf("the step's span is %v", child)
	}
	if took := by["fetch"].GetEndTimeUnixNano() - by["fetch"].GetStartTimeUnixNano(); took < uint64(time.Minute) {
		t.Errorf("the fetch took %d ns", took)
	}
	// The text form's spaces differ between builds on purpose.
	if strings.Contains(c.all.String(), "hunter2") || !regexp.MustCompile(`string_value: *"fleet"`).MatchString(c.all.String()) {
		t.Errorf("what was sent is %s", c.all.String())
	}
	if h := c.headers[0]; h.Get("x-key") != "a b" || h.Get("other") != "1" {
		t.Errorf("headers %v", h)
	}
}

func TestNothingIsSentUnasked(t *testing.T) {
	for name, env := range map[string][]string{
		"nothing set":  nil,
		"switched off": {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", "OTEL_SDK_DISABLED", "true"},
		"no exporter":  {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			environment(t, env...)
			tracing, err := Open(t.Context(), Options{Logger: slog.New(slog.DiscardHandler)})
			if err != nil || tracing.provider != nil {
				t.Errorf("%v, %v", tracing, err)
				return
			}
			forge := quietForge{}
			if tracing.Forge(forge) != commits.Forge(forge) {
				t.Error("the forge is wrapped")
			}
			ctx, s := tracing.Tracer().Start(t.Context(), "pass")
			if allocated := testing.AllocsPerRun(10, func() {
				_, s := span.Start(ctx, "x", "target", "prod")
				span.End(s, nil)
			}); allocated > 0 || s.IsRecording() {
				t.Errorf("a span costs %v allocations", allocated)
			}
			tracing.Past(ctx, "x", 0, nil)
			if err := tracing.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		env       []string
		url, fail string
	}{
		"of the traces alone": {env: []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://c/x", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://d"}, url: "https://c/x"},
		"no URL":              {env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318"}, fail: "not an http(s) URL"},
		"gRPC":                {env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}, fail: "use http/protobuf"},
		"bad timeout":         {env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c", "OTEL_EXPORTER_OTLP_TIMEOUT", "10s"}, fail: "not a number of milliseconds"},
		"bare header":         {env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c", "OTEL_EXPORTER_OTLP_HEADERS", "x-key hunter2"}, fail: "name=value"},
		"bad escape":          {env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c", "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "x-key=%zhunter2"}, fail: "%25"},
		"no certificate":      {env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c", "OTEL_EXPORTER_OTLP_CERTIFICATE", "/none"}, fail: "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			environment(t, tc.env...)
			s, err := readEnvironment()
			switch {
			case tc.fail != "" && (err == nil || !strings.Contains(err.Error(), tc.fail) || strings.Contains(err.Error(), "hunter2")):
				t.Errorf("%v, want %s", err, tc.fail)
			case tc.fail == "" && (err != nil || s.url.String() != tc.url):
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
	if shown := (settings{url: parsed(t, "https://user:hunter2@c/x?key=hunter2")}).shown(); shown != "https://c/x" {
		t.Errorf("shown as %s", shown)
	}
}

func parsed(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestCollectorInTrouble: a busy one is asked again, what it refuses is dropped,
// and it is said once.
func TestCollectorInTrouble(t *testing.T) {
	c := newCollector(t)
	var log bytes.Buffer
	cl := newClient(settings{url: parsed(t, c.URL+"/v1/traces"), timeout: time.Minute}, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	send := func(refuse ...int) {
		c.refuse = refuse
		spans := []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{Name: "x", Attributes: []*commonpb.KeyValue{{Key: "k"}}}}}}}}
		if err := cl.UploadTraces(t.Context(), spans); err != nil {
			t.Error(err)
		}
	}
	send(http.StatusServiceUnavailable)
	if len(c.spans) != 1 || log.Len() > 0 {
		t.Errorf("%d spans, log %s", len(c.spans), log.String())
	}
	send(http.StatusBadRequest)
	send(http.StatusForbidden)
	if len(c.headers) != 4 || strings.Count(log.String(), "cannot be sent") != 1 {
		t.Errorf("%d requests, log %s", len(c.headers), log.String())
	}
	send()
	if len(c.spans) != 2 || strings.Count(log.String(), "sent again") != 1 {
		t.Errorf("%d spans, log %s", len(c.spans), log.String())
	}
}

// TestHeadersGoToTheCollectorAlone has a collector point to another server.
func TestHeadersGoToTheCollectorAlone(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server is sent spans, with the key %q", r.Header.Get("X-Key"))
	}))
	defer elsewhere.Close()
	c := httptest.NewServer(http.RedirectHandler(elsewhere.URL+"/v1/traces", http.StatusTemporaryRedirect))
	defer c.Close()
	var log bytes.Buffer
	environment(t, "OTEL_EXPORTER_OTLP_ENDPOINT", c.URL, "OTEL_EXPORTER_OTLP_HEADERS", "x-key=hunter2")
	tracing, err := Open(t.Context(), Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	tracing.Past(t.Context(), "fetch", time.Second, nil)
	if err := tracing.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "307") {
		t.Errorf("nothing says that it points elsewhere: %s", log.String())
	}
}

// TestTheWholeAddress: user and query of the endpoint reach the collector, and no log.
func TestTheWholeAddress(t *testing.T) {
	var asked *http.Request
	c := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		asked = r
		rw.WriteHeader(http.StatusBadRequest)
	}))
	defer c.Close()
	host := strings.TrimPrefix(c.URL, "http://")
	environment(t, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://me:hunter2@"+host+"/spans?key=hunter2", "OTEL_EXPORTER_OTLP_INSECURE", "false")
	var log bytes.Buffer
	tracing, err := Open(t.Context(), Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		tracing.Past(t.Context(), "fetch", time.Second, nil)
		if err := tracing.provider.ForceFlush(t.Context()); err != nil {
			t.Error(err)
		}
		c.Close() // the second batch finds nobody
	}
	if err := tracing.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if asked == nil {
		t.Fatal("nothing was sent")
	}
	if user, password, _ := asked.BasicAuth(); user != "me" || password != "hunter2" || asked.URL.String() != "/spans?key=hunter2" || asked.Host != host {
		t.Errorf("asked %s of %s as %s", asked.URL, asked.Host, user)
	}
	if strings.Contains(log.String(), "hunter2") || !strings.Contains(log.String(), "400") {
		t.Errorf("the log is %s", log.String())
	}
}
