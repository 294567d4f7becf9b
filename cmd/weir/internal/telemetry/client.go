package telemetry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// settings contains the environment's settings for the connection to the collector. The exporter itself
// reads headers and compression.
type settings struct {
	url     *url.URL
	timeout time.Duration
	roots   *x509.CertPool
}

const defaultTimeout = 10 * time.Second

// readEnvironment returns nil if no traces are configured. It rejects settings that the exporter would only
// report on standard error, in a line that may contain a key.
func readEnvironment() (*settings, error) {
	// A variable for traces only has precedence over the one for all signals.
	either := func(name string) string {
		if v := os.Getenv("OTEL_EXPORTER_OTLP_TRACES_" + name); v != "" {
			return v
		}
		return os.Getenv("OTEL_EXPORTER_OTLP_" + name)
	}
	address := tracesEndpoint()
	if address == "" {
		return nil, nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("open tracing: OTEL_EXPORTER_OTLP_ENDPOINT is not an http(s) URL, such as http://localhost:4318")
	}
	s := &settings{url: u, timeout: defaultTimeout}
	if p := either("PROTOCOL"); p != "" && p != "http/protobuf" {
		return nil, fmt.Errorf("open tracing: OTEL_EXPORTER_OTLP_PROTOCOL %q is not supported; use http/protobuf, usually on port 4318", p)
	}
	if err := checkHeaders(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS") + "," + os.Getenv("OTEL_EXPORTER_OTLP_HEADERS")); err != nil {
		return nil, err
	}
	if ms := either("TIMEOUT"); ms != "" {
		n, err := strconv.Atoi(ms)
		if err != nil || n <= 0 {
			return nil, fmt.Errorf("open tracing: OTEL_EXPORTER_OTLP_TIMEOUT %q is not a number of milliseconds", ms)
		}
		s.timeout = time.Duration(n) * time.Millisecond
	}
	if file := either("CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("open tracing: OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		if s.roots = x509.NewCertPool(); !s.roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("open tracing: OTEL_EXPORTER_OTLP_CERTIFICATE: no certificate in %s", file)
		}
	}
	return s, nil
}

// tracesEndpoint returns the address for traces, empty if none is configured.
func tracesEndpoint() string {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return ""
	}
	address := os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	if base := os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"); address == "" && base != "" {
		address = strings.TrimRight(base, "/") + "/v1/traces"
	}
	return address
}

func checkHeaders(list string) error {
	for _, pair := range strings.Split(list, ",") {
		_, value, ok := strings.Cut(pair, "=")
		if _, err := url.PathUnescape(value); err != nil || !ok && strings.TrimSpace(pair) != "" {
			return errors.New("open tracing: OTEL_EXPORTER_OTLP_HEADERS is not a list like name=value,name=value with values written as in a URL, where %25 is a percent sign")
		}
	}
	return nil
}

// shown returns the address without user and query.
func (s settings) shown() string {
	return (&url.URL{Scheme: s.url.Scheme, Host: s.url.Host, Path: s.url.Path}).String()
}

// client is the exporter's own client, with two differences: it sends no secrets, and it drops spans
// instead of delaying anything.
type client struct {
	otlptrace.Client
	way    *http.Client
	shown  string
	redact func(string) string
	log    *slog.Logger

	mu      sync.Mutex
	failing bool
}

// A busy collector gets retries for a short time.
var again = otlptracehttp.RetryConfig{Enabled: true, InitialInterval: time.Second, MaxInterval: 5 * time.Second, MaxElapsedTime: 10 * time.Second}

func newClient(s settings, o Options) *client {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true}
	if s.roots != nil {
		transport.TLSClientConfig = &tls.Config{RootCAs: s.roots, MinVersion: tls.VersionTLS12}
	}
	redact := o.Redact
	if redact == nil {
		redact = func(text string) string { return text }
	}
	toItAlone := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the headers may contain a key
	way := &http.Client{Transport: toAddress{transport, s.url}, Timeout: s.timeout, CheckRedirect: toItAlone}
	sender := otlptracehttp.NewClient(otlptracehttp.WithHTTPClient(way), otlptracehttp.WithRetry(again), otlptracehttp.WithMaxResponseSize(1<<20))
	return &client{Client: sender, way: way, shown: s.shown(), redact: redact, log: o.Logger}
}

// toAddress sends requests to the complete address, because the exporter omits user and query. Errors do
// not contain these, because they name the original request.
type toAddress struct {
	*http.Transport
	url *url.URL
}

// RoundTrip implements http.RoundTripper.
func (t toAddress) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL, r.Host = t.url, ""
	if password, ok := t.url.User.Password(); ok && r.Header.Get("Authorization") == "" {
		r.SetBasicAuth(t.url.User.Username(), password)
	}
	return t.Transport.RoundTrip(r)
}

// Stop implements otlptrace.Client.
func (c *client) Stop(ctx context.Context) error {
	c.way.CloseIdleConnections()
	return c.Client.Stop(ctx)
}

// UploadTraces implements otlptrace.Client. It logs only the first failure until spans can be sent again,
// and returns no error.
func (c *client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	c.clean(spans)
	err := c.Client.UploadTraces(ctx, spans)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil && !c.failing:
		const most = 300 // it contains the collector's response
		text := err.Error()
		c.log.Warn("spans cannot be sent and are dropped", "endpoint", c.shown, "error", strings.ToValidUTF8(text[:min(most, len(text))], ""))
	case err == nil && c.failing:
		c.log.Info("spans are sent again", "endpoint", c.shown)
	}
	c.failing = err != nil
	return nil
}

// clean redacts every text of the spans.
func (c *client) clean(spans []*tracepb.ResourceSpans) {
	for _, r := range spans {
		for _, scope := range r.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				s.Name = c.redact(s.GetName())
				c.cleanAttributes(s.GetAttributes())
				if s.GetStatus() != nil {
					s.Status.Message = c.redact(s.Status.GetMessage())
				}
				for _, e := range s.GetEvents() {
					e.Name = c.redact(e.GetName())
					c.cleanAttributes(e.GetAttributes())
				}
			}
		}
	}
}

func (c *client) cleanAttributes(list []*commonpb.KeyValue) {
	for _, kv := range list {
		c.cleanValue(kv.GetValue())
	}
}

func (c *client) cleanValue(v *commonpb.AnyValue) {
	switch is := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		is.StringValue = c.redact(is.StringValue)
	case *commonpb.AnyValue_ArrayValue:
		for _, one := range is.ArrayValue.GetValues() {
			c.cleanValue(one)
		}
	case *commonpb.AnyValue_KvlistValue:
		c.cleanAttributes(is.KvlistValue.GetValues())
	}
}
