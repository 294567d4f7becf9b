package forgehttp

import (
	"net/http"
	"strconv"
	"time"

	"github.com/weir-gitops/weir/render/visible"
)

// Fault says what to do about a forge's refusal.
type Fault string

// Faults.
const (
	// FaultBusy passes: unreachable, throttled, in maintenance.
	FaultBusy Fault = "busy"
	// FaultMissing may pass: forges answer so for a commit that was pushed a
	// moment ago, or where two write at once.
	FaultMissing Fault = "missing"
	// FaultDenied needs a better token. The token must be valid, permit the request, and have
	// access to the repository.
	FaultDenied Fault = "denied"
	// FaultRefused does not pass: the request itself is refused.
	FaultRefused Fault = "refused"
)

// Error is a failed request to a forge.
type Error struct {
	Forge  string
	Fault  Fault
	Status int // HTTP's, 0 without an answer
	// After is the wait that the forge requests, 0 if it does not say.
	After   time.Duration
	Message string
	Err     error
}

// Error says what failed and, where a person can mend it, how.
func (e *Error) Error() string {
	s := e.Forge + ": "
	if e.Status != 0 {
		s += strconv.Itoa(e.Status) + ": "
	}
	return s + e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// faultOf reads an HTTP status as the forges use it, and how long they ask to wait.
func faultOf(code int, h http.Header) (Fault, time.Duration) {
	after := max(RetryAfter(h), resetOf(h, time.Now()))
	switch {
	case code == http.StatusTooManyRequests,
		code == http.StatusForbidden && (after > 0 || h.Get("X-RateLimit-Remaining") == "0"),
		code == http.StatusBadGateway, code == http.StatusServiceUnavailable, code == http.StatusGatewayTimeout,
		code == http.StatusRequestTimeout:
		return FaultBusy, after
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return FaultDenied, 0
	case code == http.StatusNotFound, code == http.StatusConflict, code >= 500:
		return FaultMissing, after
	case code == 0:
		return FaultBusy, 0
	default:
		return FaultRefused, 0
	}
}

// maxRetryAfter bounds the wait that a forge may request: a wrong clock must not stop everything
// for a day.
const maxRetryAfter = time.Hour

// RetryAfter reads the header Retry-After, which is seconds or a date; 0 if it is
// not there.
func RetryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if v == "" {
		return 0
	}
	if n, err := strconv.Atoi(v); err == nil {
		return time.Duration(min(max(0, n), int(maxRetryAfter/time.Second))) * time.Second
	}
	if t, err := http.ParseTime(v); err == nil {
		return min(max(0, time.Until(t)), maxRetryAfter)
	}
	return 0
}

// quoted bounds the quotation from an answer, in characters: it may be a proxy's
// whole page.
const quoted = 200

// Quote makes what a forge says fit for an error message: one line of characters that a
// reader sees, of at most 200.
func Quote(said string) string {
	return visible.Clip(visible.Line(said[:min(len(said), 16*quoted)]), quoted)
}
