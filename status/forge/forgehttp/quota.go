package forgehttp

import (
	"net/http"
	"strconv"
	"sync"
	"time"
)

// quota observes a forge's rate limit. When it is exhausted, no request is sent until it resets.
type quota struct {
	mu    sync.Mutex
	until time.Time
}

// wait returns the time until the next request may be sent.
func (q *quota) wait(now time.Time) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return max(0, q.until.Sub(now))
}

// readHeaders reads the remaining quota from the headers of a response.
func (q *quota) readHeaders(h http.Header, now time.Time) {
	wait := resetOf(h, now)
	if wait == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.until = now.Add(wait)
}

// resetOf returns the time until an exhausted rate limit resets. It returns 0 if requests are left, or if
// the forge does not report the reset. GitHub's headers have the prefix X-, GitLab's do not. Both report
// the reset as Unix time; the later draft standard uses a number of seconds.
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
		if n < 1e9 { // too small for a Unix time since 2001
			wait = time.Duration(min(n, int64(maxRetryAfter/time.Second))) * time.Second
		}
		return min(max(wait, 0), maxRetryAfter)
	}
	return 0
}
