package app

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/follow"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/metrics"
)

// TestGitLabForge names a project in groups of groups, by its whole path.
func TestGitLabForge(t *testing.T) {
	var path, ref, auth string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Ref string `json:"ref"`
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		path, ref, auth = r.URL.EscapedPath(), in.Ref, r.Header.Get("Authorization")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"id":1,"pipeline_id":2}`))
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("glpat-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	writer, err := follow.NewForge(config.Forge{Type: "gitlab", URL: server.URL + "/company/platform/deep/fleet.git", TokenFile: file},
		&follow.Source{Config: config.Source{Name: "pools", Ref: source.Ref{Branch: "main"}}}, "main", metrics.New(prometheus.NewRegistry(), "test"))
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.SetStatus(t.Context(), "0123456", forge.CommitStatus{Context: "fleet/apply", State: forge.Pending}); err != nil {
		t.Fatal(err)
	}
	if want := "/api/v4/projects/company%2Fplatform%2Fdeep%2Ffleet/statuses/0123456"; path != want || ref != "main" || auth != "Bearer glpat-1" {
		t.Errorf("asked for %s about %q as %q", path, ref, auth)
	}
}
