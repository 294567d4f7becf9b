package forge

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// TestGiteaWithoutPulls has the answer to a list of pull requests that Gitea gives
// where there can be none.
func TestGiteaWithoutPulls(t *testing.T) {
	for name, tt := range map[string]struct {
		repository string // of the repository itself, empty for 404
		want       string
	}{
		"empty":      {`{"empty":true,"has_pull_requests":true}`, ""},
		"turned off": {`{"empty":false,"has_pull_requests":false}`, "turned off in the settings of platform/fleet"},
		"hidden":     {``, "the repository platform/fleet is not found"},
		"too early":  {`{"empty":false,"has_pull_requests":true}`, "are not there yet"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/api/v1/repos/platform/fleet" && tt.repository != "" {
					_, _ = w.Write([]byte(tt.repository))
					return
				}
				w.WriteHeader(http.StatusNotFound)
				_, _ = w.Write([]byte(`{"message":"not found"}`))
			}))
			defer server.Close()
			c, err := New(ClientOptions{Kind: Gitea, URL: server.URL, Repository: "platform/fleet"})
			if err != nil {
				t.Fatal(err)
			}
			list, cursor, unchanged, err := c.Pulls(t.Context(), "")
			if len(list) > 0 || unchanged {
				t.Errorf("%v, %t", list, unchanged)
			}
			var refusal *forgehttp.Error
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (!errors.As(err, &refusal) || (refusal.Fault == forgehttp.FaultMissing) != (name == "too early") || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%v, want %q", err, tt.want)
			}
			if tt.want == "" {
				if _, _, unchanged, err := c.Pulls(t.Context(), cursor); !unchanged || err != nil {
					t.Errorf("empty as before: %t, %v", unchanged, err)
				}
			}
		})
	}
}
