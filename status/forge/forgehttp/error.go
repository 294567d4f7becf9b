package forgehttp

import (
	"net/http"
	"strconv"
	"time"

	"github.com/weir-gitops/weir/render/visible"
)

// Fault is a class of refusals, by their remedy.
type Fault string

// The classes of refusals.
const (
	// FaultBusy is temporary: unreachable, rate-limited, in maintenance.
	FaultBusy Fault = "busy"
	// FaultMissing may be temporary: forges report a commit as missing that was pushed a moment ago, or if
	// two writes are concurrent.
	FaultMissing Fault = "missing"
	// FaultDenied requires a better token. The token must be valid, have the permission, and have access to
	// the repository.
	FaultDenied Fault = "denied"
	// FaultRefused is permanent: the request itself is refused.
	FaultRefused Fault = "refused"
)

// Error is a failed request to a forge.
type Error struct {
	Forge  string
	Fault  Fault
	Status int // the HTTP status, 0 without a response
	// After is the wait that the forge requested, 0 if it requested none.
	After   time.Duration
	Message string
	Err     error
}

// Error describes the failure and, if a person can fix it, the remedy.
func (e *Error) Error() string {
	s := e.Forge + ": "
	if e.Status != 0 {
		s += strconv.Itoa(e.Status) + ": "
	}
	return s + e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// faultOf classifies an HTTP status as the forges use it, and returns the wait that they request.
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

// maxRetryAfter is the maximum wait that a forge can request. A wrong clock must not stop everything for a
// day.
const maxRetryAfter = time.Hour

// RetryAfter parses the Retry-After header, which is a number of seconds or a date. It returns 0 if the
// header is missing.
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

// quoted is the maximum length of a quotation from a response, in characters. The response may be a whole
// page of a proxy.
const quoted = 200

// Quote makes text of a forge suitable for an error message: one line of visible characters, at most 200.
func Quote(said string) string {
	return visible.Clip(visible.Line(said[:min(len(said), 16*quoted)]), quoted)
}
