package forge

import (
	"errors"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

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
			var refusal *forgehttp.Error
			if !errors.As(err, &refusal) || refusal.Fault != forgehttp.FaultBusy || refusal.After < 9*time.Minute {
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
