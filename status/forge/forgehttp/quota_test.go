package forgehttp

import (
	"net/http"
	"testing"
	"time"
)

// TestQuotaIsKept sends nothing while a forge says that nothing is left.
func TestQuotaIsKept(t *testing.T) {
	var q quota
	now := time.Unix(1_800_000_000, 0)
	for name, tt := range map[string]struct {
		h    http.Header
		want time.Duration
	}{
		"gitlab":        {http.Header{"Ratelimit-Remaining": {"0"}, "Ratelimit-Reset": {"1800000030"}}, 30 * time.Second},
		"github":        {http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1800000600"}}, 10 * time.Minute},
		"as seconds":    {http.Header{"Ratelimit-Remaining": {"0"}, "Ratelimit-Reset": {"5"}}, 5 * time.Second},
		"a wrong clock": {http.Header{"Ratelimit-Remaining": {"0"}, "Ratelimit-Reset": {"9800000000"}}, maxRetryAfter},
		"a huge number": {http.Header{"Ratelimit-Remaining": {"0"}, "Ratelimit-Reset": {"999999999"}}, maxRetryAfter},
		"past":          {http.Header{"Ratelimit-Remaining": {"0"}, "Ratelimit-Reset": {"1700000000"}}, 0},
		"some left":     {http.Header{"Ratelimit-Remaining": {"1"}, "Ratelimit-Reset": {"1800000030"}}, 0},
		"no number":     {http.Header{"Ratelimit-Remaining": {"0"}, "Ratelimit-Reset": {"soon"}}, 0},
		"nothing":       {http.Header{}, 0},
	} {
		if got := resetOf(tt.h, now); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	q.readHeaders(http.Header{"Ratelimit-Remaining": {"0"}, "Ratelimit-Reset": {"1800000030"}}, now)
	if wait := q.wait(now.Add(29 * time.Second)); wait != time.Second {
		t.Errorf("asked while nothing is left: %s", wait)
	}
	if wait := q.wait(now.Add(30 * time.Second)); wait != 0 {
		t.Error(wait)
	}
}
