package status

import (
	"errors"
	"net/http"
	"strconv"
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
	q.note(http.Header{"Ratelimit-Remaining": {"0"}, "Ratelimit-Reset": {"1800000030"}}, now)
	if err := q.ask(now.Add(29 * time.Second)); limitedFor(err) != time.Second {
		t.Errorf("asked while nothing is left: %v", err)
	}
	if err := q.ask(now.Add(30 * time.Second)); err != nil {
		t.Error(err)
	}
}

// TestForgesKeepToTheirQuota asks each forge until it says that nothing is left.
func TestForgesKeepToTheirQuota(t *testing.T) {
	reset := strconv.FormatInt(time.Now().Add(10*time.Minute).Unix(), 10)
	f, url := newForgeServer(t, "c1")
	f.answer = func(*http.Request) (int, http.Header, string) {
		return 201, http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Limit": {"60"}, "X-Ratelimit-Reset": {reset}}, `{"id":1,"state":"success"}`
	}
	s, g := newGitLabServer(t, "c1")
	s.answer = func(*http.Request) (int, http.Header, string) {
		return 201, http.Header{"Ratelimit-Remaining": {"0"}, "Ratelimit-Reset": {reset}}, `{"id":1}`
	}
	all := forges(t, url, token("t"))
	all["gitlab"] = g
	for name, forge := range all {
		t.Run(name, func(t *testing.T) {
			if err := forge.SetStatus(t.Context(), "c1", CommitStatus{Context: "x", State: Success}); err != nil {
				t.Fatal(err)
			}
			f.mu.Lock()
			before := len(f.requests) + len(s.tokens)
			f.mu.Unlock()
			err := forge.SetStatus(t.Context(), "c1", CommitStatus{Context: "y", State: Success})
			var refusal *ForgeError
			if !errors.As(err, &refusal) || refusal.Fault != FaultBusy || refusal.After < 9*time.Minute {
				t.Errorf("got %v", err)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			if len(f.requests)+len(s.tokens) != before {
				t.Error("the forge was asked though nothing was left")
			}
		})
	}
}
