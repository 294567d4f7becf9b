package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// The exporter's own HTTP client links gRPC, which is 10 MB of a binary that may
// have 50: this one sends the same request with the standard library.

// settings are what the environment says, by the specification of the OTLP
// exporter.
type settings struct {
	url     string
	headers map[string]string
	timeout time.Duration
	gzip    bool
	roots   *x509.CertPool
}

const defaultTimeout = 10 * time.Second

// readEnvironment returns nil where nothing is to be sent.
func readEnvironment(getenv func(string) string) (*settings, error) {
	// A variable of the traces alone goes before the one for all signals.
	either := func(name string) string {
		if v := getenv("OTEL_EXPORTER_OTLP_TRACES_" + name); v != "" {
			return v
		}
		return getenv("OTEL_EXPORTER_OTLP_" + name)
	}
	s := &settings{url: getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), timeout: defaultTimeout}
	if base := getenv("OTEL_EXPORTER_OTLP_ENDPOINT"); s.url == "" && base != "" {
		s.url = strings.TrimRight(base, "/") + "/v1/traces"
	}
	if s.url == "" || strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || getenv("OTEL_TRACES_EXPORTER") == "none" {
		return nil, nil
	}
	if u, err := url.Parse(s.url); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("open tracing: OTEL_EXPORTER_OTLP_ENDPOINT is no http(s) URL, such as http://localhost:4318")
	}
	if p := either("PROTOCOL"); p != "" && p != "http/protobuf" {
		return nil, fmt.Errorf("open tracing: OTEL_EXPORTER_OTLP_PROTOCOL %q is not spoken; use http/protobuf, on port 4318 as a rule", p)
	}
	s.headers = split(either("HEADERS"))
	for name, value := range s.headers {
		// Values are written as in a URL.
		if plain, err := url.PathUnescape(value); err == nil {
			s.headers[name] = plain
		}
	}
	s.gzip = either("COMPRESSION") == "gzip"
	if ms := either("TIMEOUT"); ms != "" {
		n, err := strconv.Atoi(ms)
		if err != nil || n <= 0 {
			return nil, fmt.Errorf("open tracing: OTEL_EXPORTER_OTLP_TIMEOUT %q is no number of milliseconds", ms)
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

// shown is the address without user and query.
func (s settings) shown() string {
	u, err := url.Parse(s.url)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery = nil, ""
	return u.String()
}

// client is an otlptrace.Client. It loses spans rather than hold anything up.
type client struct {
	settings
	http   *http.Client
	redact func(string) string
	log    *slog.Logger

	mu      sync.Mutex
	failing bool
}

func newClient(s settings, o Options) *client {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true}
	if s.roots != nil {
		transport.TLSClientConfig = &tls.Config{RootCAs: s.roots, MinVersion: tls.VersionTLS12}
	}
	redact := o.Redact
	if redact == nil {
		redact = func(text string) string { return text }
	}
	toItAlone := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the headers may hold a key
	return &client{settings: s, http: &http.Client{Transport: transport, Timeout: s.timeout, CheckRedirect: toItAlone}, redact: redact, log: o.Logger}
}

// Start implements otlptrace.Client.
func (c *client) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (c *client) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// tries is how often a batch is sent to a collector that is busy.
const tries = 3

// UploadTraces implements otlptrace.Client. That spans could not be sent is
// logged, once until they can be again, and is no error.
func (c *client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	c.clean(spans)
	// On the wire it is the same as the collector service's ExportTraceServiceRequest.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return fmt.Errorf("send spans: %w", err)
	}
	err = c.send(ctx, body)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil && !c.failing:
		c.log.Warn("spans cannot be sent and are dropped", "endpoint", c.shown(), "error", err)
	case err == nil && c.failing:
		c.log.Info("spans are sent again", "endpoint", c.shown())
	}
	c.failing = err != nil
	return nil
}

// send posts a batch, again after a while where the collector asks for it.
func (c *client) send(ctx context.Context, body []byte) error {
	if c.gzip {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, err := w.Write(body)
		if err = errors.Join(err, w.Close()); err != nil {
			return err
		}
		body = b.Bytes()
	}
	for try := 1; ; try++ {
		wait, err := c.post(ctx, body)
		if err == nil || wait == 0 || try == tries {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// maxWait bounds what a collector's Retry-After is taken for.
const maxWait = 5 * time.Second

// post sends a batch once; wait is 0 where it must not be sent again.
func (c *client) post(ctx context.Context, body []byte) (wait time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return 0, errors.New("the endpoint is no URL")
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("User-Agent", "weir")
	if c.gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	for name, value := range c.headers {
		req.Header.Set(name, value)
	}
	res, err := c.http.Do(req)
	if err != nil {
		var failed *url.Error // it repeats the address, which may hold credentials
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return 0, err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20))
	if err = errors.Join(err, res.Body.Close()); err != nil {
		return 0, err
	}
	if res.StatusCode/100 == 2 {
		return 0, nil
	}
	switch res.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		wait = time.Second
		if n, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && n > 0 {
			wait = min(maxWait, time.Duration(n)*time.Second)
		}
	}
	return wait, fmt.Errorf("the collector answers %s", res.Status)
}

// clean takes secrets out of every text of the spans.
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
