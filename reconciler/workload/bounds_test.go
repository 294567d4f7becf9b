package workload_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/workload"
)

// kubeconfig is one for a server without TLS on this machine.
func kubeconfig(t *testing.T, server, user string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("kind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: '%s'}}]\nusers: [{name: u, user: {%s}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n", server, user)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestListsAreBounded asks a server whose lists do not end, and one whose page has
// more objects in its bytes than a machine has memory for.
func TestListsAreBounded(t *testing.T) {
	page := `{"kind":"NodeList","metadata":{"continue":"x"},"items":[` + strings.TrimSuffix(strings.Repeat("{},", 100), ",") + `]}`
	for name, body := range map[string]string{
		"many pages":   page,
		"empty pages":  `{"kind":"NodeList","metadata":{"continue":"x"},"items":[]}`,
		"many inside":  `{"kind":"NodeList","items":[{"status":{"conditions":[` + strings.TrimSuffix(strings.Repeat("{},", 10<<20), ",") + `]}}]}`,
		"many objects": `{"kind":"NodeList","items":[` + strings.TrimSuffix(strings.Repeat("{},", 10<<20), ",") + `]}`,
	} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if asked++; asked > 1000 {
				w.WriteHeader(http.StatusTeapot)
				return
			}
			_, _ = w.Write([]byte(body))
		}))
		c := open(t, kubeconfig(t, server.URL, "token: x"))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := c.Nodes(t.Context())
		runtime.ReadMemStats(&after)
		if workload.KindOf(err) != workload.Invalid || !strings.Contains(err.Error(), "50000 objects") {
			t.Errorf("%s: %v", name, err)
		}
		if grown := (after.TotalAlloc - before.TotalAlloc) >> 20; grown > 512 {
			t.Errorf("%s: %d MiB were allocated", name, grown)
		}
		server.Close()
	}
}

// TestATokenFileIsBounded names a file that has no end.
func TestATokenFileIsBounded(t *testing.T) {
	const endless = "/dev/zero"
	if _, err := os.Stat(endless); err != nil {
		t.Skip("this machine has no", endless)
	}
	c := open(t, kubeconfig(t, "http://127.0.0.1:1", "tokenFile: "+endless))
	if _, err := c.Nodes(t.Context()); workload.KindOf(err) != workload.Unauthorized || !strings.Contains(err.Error(), "regular file") {
		t.Errorf("got %v", err)
	}
}

// TestNothingIsSentTwice: client-go would send again what a busy server refuses, and
// what a broken connection ends.
func TestNothingIsSentTwice(t *testing.T) {
	for _, status := range []int{0, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusTemporaryRedirect} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if asked++; status == 0 {
				panic(http.ErrAbortHandler)
			}
			w.Header().Set("Retry-After", "0")
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
		}))
		server.Config.ErrorLog = nil
		c := open(t, kubeconfig(t, server.URL, "token: x"))
		for _, err := range []error{second(c.Nodes(t.Context())), second(c.CreateSecret(t.Context(), secret("a"))), c.DeleteSecret(t.Context(), "ns", "a", "u")} {
			if err == nil {
				t.Errorf("%d is no error", status)
			}
		}
		if asked != 3 {
			t.Errorf("%d: asked %d times, want 3", status, asked)
		}
		server.Close()
	}
}

func second[T any](_ T, err error) error { return err }

// TestServerBelowAPath: clusters behind a proxy have an address with a path.
func TestServerBelowAPath(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		_, _ = w.Write([]byte(`{"gitVersion":"v1.34.2"}`))
	}))
	defer server.Close()
	c := open(t, kubeconfig(t, server.URL+"/k8s/a/", "token: x"))
	_, nodes := c.Nodes(t.Context())
	version, err := c.Version(t.Context())
	if nodes != nil || err != nil || version != "v1.34.2" || strings.Join(asked, " ") != "/k8s/a/api/v1/nodes /k8s/a/version" {
		t.Errorf("asked %q, version %q, %v, %v", asked, version, nodes, err)
	}
}
