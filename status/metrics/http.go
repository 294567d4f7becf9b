package metrics

import (
	"net/http"
	"strconv"
	"strings"
)

// Count returns a handler that counts what next answers.
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

// routeClass puts a path into one of a few classes: clients choose the path, and must not choose a
// label.
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

// countedWriter remembers how a request was answered.
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
	_ = http.NewResponseController(w.ResponseWriter).Flush() // what cannot be flushed is sent at the end
}

// Unwrap supports http.ResponseController.
func (w *countedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// ForgeTransport returns a way to the forge of a source that counts what goes over
// it. Forge is its kind, such as "github".
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

// CloseIdleConnections closes those of the transport below.
func (t forgeTransport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// httpCode is a status as a label. All that is not a status of HTTP shares one
// label: a server may answer with any number.
func httpCode(code int) string {
	if http.StatusText(code) == "" {
		return "other"
	}
	return strconv.Itoa(code)
}

// remaining returns the number of requests that a forge still accepts. GitHub's header begins with
// X-, GitLab's does not.
func remaining(h http.Header) (int64, bool) {
	for _, name := range []string{"RateLimit-Remaining", "X-RateLimit-Remaining"} {
		if n, err := strconv.ParseInt(h.Get(name), 10, 64); err == nil && n >= 0 {
			return n, true
		}
	}
	return 0, false
}
