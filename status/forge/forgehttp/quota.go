package forgehttp

import (
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// quota keeps to what a forge says of its rate limit: once nothing is left, no
// request is sent until it begins anew.
type quota struct {
	mu    sync.Mutex
	until time.Time
}

// limitedError says that a request was not sent, as the forge would refuse it.
type limitedError struct{ after time.Duration }

// Error says so.
func (e *limitedError) Error() string { return "the forge's rate limit is reached" }

// LimitedFor is how long a request that was not sent should wait, else 0.
func LimitedFor(err error) time.Duration {
	var limited *limitedError
	if errors.As(err, &limited) {
		return limited.after
	}
	return 0
}

// ask returns an error where a request should not be sent now.
func (q *quota) ask(now time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if wait := q.until.Sub(now); wait > 0 {
		return &limitedError{after: wait}
	}
	return nil
}

// note reads what an answer says of what is left.
func (q *quota) note(h http.Header, now time.Time) {
	wait := resetOf(h, now)
	if wait == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.until = now.Add(wait)
}

// resetOf is how long nothing is left to ask for, 0 where something is or the forge
// does not say. GitHub's headers begin with X-, GitLab's do not; the reset is a
// Unix time with both, and a number of seconds in the later draft standard.
// https://docs.gitlab.com/administration/settings/user_and_ip_rate_limits/#response-headers
func resetOf(h http.Header, now time.Time) time.Duration {
	for _, prefix := range []string{"RateLimit-", "X-RateLimit-"} {
		if h.Get(prefix+"Remaining") != "0" {
			continue
		}
		n, err := strconv.ParseInt(h.Get(prefix+"Reset"), 10, 64)
		if err != nil || n < 0 {
			continue
		}
		wait := time.Unix(n, 0).Sub(now)
		if n < 1e9 { // no time since 2001
			wait = time.Duration(min(n, int64(MaxRetryAfter/time.Second))) * time.Second
		}
		return min(max(wait, 0), MaxRetryAfter)
	}
	return 0
}
