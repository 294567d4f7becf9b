package metrics

import (
	"net/http"
	"strconv"
	"strings"
)

// Count returns a handler that counts the responses of next by route and code, and measures their duration,
// except for streams.
func (m *Metrics) Count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		began := m.now()
		w := &countedWriter{ResponseWriter: rw, m: m}
		defer func() {
			if w.stream {
				m.httpStreams.Dec()
			}
			code := w.code
			if code == 0 {
				code = http.StatusOK
			}
			route := routeClass(r.URL.Path, w.stream, code)
			m.httpRequests.WithLabelValues(route, strconv.Itoa(code)).Inc()
			if !w.stream {
				m.httpSeconds.WithLabelValues(route).Observe(m.now().Sub(began).Seconds())
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// routeClass maps a path to one of a few classes. Clients choose the path, so it must not be a label.
func routeClass(path string, stream bool, code int) string {
	under := func(prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") }
	switch {
	case stream:
		return "stream"
	case code == http.StatusNotFound || code == http.StatusMethodNotAllowed:
		return "other"
	case path == "/metrics":
		return "metrics"
	case path == "/healthz" || path == "/readyz":
		return "health"
	case under("/api"):
		return "api"
	case under("/hooks"):
		return "webhook"
	case under("/assets"):
		return "asset"
	default:
		return "page"
	}
}

// countedWriter records the status and size of a response.
type countedWriter struct {
	http.ResponseWriter
	m      *Metrics
	code   int
	stream bool
}

// WriteHeader implements http.ResponseWriter.
func (w *countedWriter) WriteHeader(code int) {
	if w.code == 0 && code >= 200 {
		w.code = code
		if strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
			w.stream = true
			w.m.httpStreams.Inc()
		}
	}
	w.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (w *countedWriter) Write(b []byte) (int, error) {
	if w.code == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}

// Flush implements http.Flusher, for streams.
func (w *countedWriter) Flush() {
	if w.code == 0 {
		w.WriteHeader(http.StatusOK)
	}
	_ = http.NewResponseController(w.ResponseWriter).Flush() // without support for flushing, data is sent at the end
}

// Unwrap supports http.ResponseController.
func (w *countedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// ForgeTransport returns a transport to the forge of a source that counts requests. forge is the kind of
// forge, such as "github".
func (m *Metrics) ForgeTransport(forge, source string, next http.RoundTripper) http.RoundTripper {
	return forgeTransport{m, forge, source, next}
}

type forgeTransport struct {
	m             *Metrics
	forge, source string
	next          http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t forgeTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	began := t.m.now()
	res, err := t.next.RoundTrip(r)
	took, code := t.m.now().Sub(began), "error"
	if err == nil {
		code = httpCode(res.StatusCode)
		if n, ok := remaining(res.Header); ok {
			t.m.forgeRemaining.WithLabelValues(t.source).Set(float64(n))
		}
	}
	t.m.forgeRequests.WithLabelValues(t.forge, code).Inc()
	t.m.forgeSeconds.WithLabelValues(t.forge).Observe(took.Seconds())
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		t.m.Stage("status", took)
	}
	return res, err
}

// CloseIdleConnections closes idle connections of the underlying transport.
func (t forgeTransport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// httpCode returns a status code as a label. Invalid codes share one label, because a server can send any
// number.
func httpCode(code int) string {
	if http.StatusText(code) == "" {
		return "other"
	}
	return strconv.Itoa(code)
}

// remaining returns the number of requests that a forge still accepts. GitHub's header has the prefix X-,
// GitLab's does not.
func remaining(h http.Header) (int64, bool) {
	for _, name := range []string{"RateLimit-Remaining", "X-RateLimit-Remaining"} {
		if n, err := strconv.ParseInt(h.Get(name), 10, 64); err == nil && n >= 0 {
			return n, true
		}
	}
	return 0, false
}
