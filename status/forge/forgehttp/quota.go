package forgehttp

import (
	"net/http"
	"strconv"
	"sync"
	"time"
)

// quota observes a forge's rate limit: once it is used up, no request is sent until it resets.
type quota struct {
	mu    sync.Mutex
	until time.Time
}

// wait returns the time during which no request should be sent.
func (q *quota) wait(now time.Time) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return max(0, q.until.Sub(now))
}

// note reads how much of the quota an answer says is left.
func (q *quota) note(h http.Header, now time.Time) {
	wait := resetOf(h, now)
	if wait == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.until = now.Add(wait)
}

// resetOf returns the time until an exhausted rate limit resets, or 0 if requests are left or the
// forge does not say. GitHub's headers begin with X-, GitLab's do not. The reset is a Unix time
// with both, and a number of seconds in the later draft standard.
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
			wait = time.Duration(min(n, int64(maxRetryAfter/time.Second))) * time.Second
		}
		return min(max(wait, 0), maxRetryAfter)
	}
	return 0
}
