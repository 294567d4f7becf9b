package forge

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// TestGiteaCommitNotThere reads the statuses of a commit that Gitea does not show
// yet, in a repository that the token may see and in one that it may not.
func TestGiteaCommitNotThere(t *testing.T) {
	for name, tc := range map[string]struct {
		repository int
		fault      forgehttp.Fault
		text       string
	}{
		"seen":   {http.StatusOK, forgehttp.FaultMissing, "the commit is not there yet"},
		"hidden": {http.StatusNotFound, forgehttp.FaultDenied, "must have access"},
	} {
		t.Run(name, func(t *testing.T) {
			server, url := newForgeServer(t, shaNew)
			server.answer = func(r *http.Request) (int, http.Header, string) {
				if !strings.Contains(r.URL.Path, "/statuses") && tc.repository == http.StatusOK {
					return http.StatusOK, nil, `{"id":1,"name":"r"}`
				}
				return http.StatusNotFound, nil, `{"errors":["object does not exist"],"message":"not found"}`
			}
			_, err := forges(t, url, token("s3cret"))["gitea"].Statuses(t.Context(), shaNew)
			var got *forgehttp.Error
			if !errors.As(err, &got) || got.Fault != tc.fault || got.Status != http.StatusNotFound || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("%v, want %s, %q", err, tc.fault, tc.text)
			}
		})
	}
}
