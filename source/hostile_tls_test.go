package source_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/sourcetest"
	"github.com/weir-gitops/weir/source/transport"
)

func TestHostileTLS(t *testing.T) {
	t.Parallel()
	token := filepath.Join(t.TempDir(), "token")
	overwrite(t, token, "s3cret")
	for name, server := range sourcetest.HostileTLS(t) {
		cfg := source.Config{Settings: transport.Settings{CAFile: server.CAFile, Auth: transport.Auth{TokenFile: token}}}
		err := attack(t, server.URL+"/x.git", cfg, time.Minute)
		if text := err.Error(); !strings.Contains(text, "unreachable") || strings.Contains(text, "s3cret") || len(text) > 500 {
			t.Errorf("a server %s: %v", name, err)
		}
		if heard := server.Heard(); len(heard) > 0 {
			t.Errorf("a server %s was asked: %v", name, heard)
		}
	}
}

// TestDowngrade lets a good server send its clients to one without TLS, or to where
// the list of refs was fine and the pack is elsewhere.
func TestDowngrade(t *testing.T) {
	t.Parallel()
	repo, one := oneCommit(t)
	token := filepath.Join(t.TempDir(), "token")
	overwrite(t, token, "s3cret")
	var leaked atomic.Int32
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { leaked.Add(1) }))
	defer plain.Close()
	var to string
	var when string
	server := sourcetest.GoodTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == when {
			http.Redirect(w, r, to+r.URL.RequestURI(), http.StatusTemporaryRedirect)
			return
		}
		repo.ServeHTTP(w, r)
	}))
	cfg := source.Config{Settings: transport.Settings{CAFile: server.CAFile, Auth: transport.Auth{TokenFile: token}}}
	url := server.URL + "/" + filepath.Base(repo.Dir())
	for _, where := range []string{plain.URL, strings.Replace(plain.URL, "127.0.0.1", "localhost", 1), strings.Replace(server.URL, "127.0.0.1", "localhost", 1), "file://", "ftp://127.0.0.1"} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			to, when = where, method
			if err := attack(t, url, cfg, time.Minute); !strings.Contains(err.Error(), "redirect") {
				t.Errorf("%s to %s: %v", method, where, err)
			}
		}
	}
	if n := leaked.Load(); n > 0 {
		t.Errorf("the server without TLS was asked %d times", n)
	}
	when = "none"
	cfg.URL = url
	wantRevision(t, open(t, cfg, source.Options{}), one)
}

func TestCAFileOfGarbage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"empty": "", "words": "hello", "bytes": "\x00\xff\x30\x82", "a key": "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n",
		"a broken certificate": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", "huge": strings.Repeat("x", 5<<20),
	} {
		file := filepath.Join(dir, name)
		overwrite(t, file, text)
		_, err := source.New(source.Config{Name: "f", URL: "https://127.0.0.1/x.git", Dir: dir, Settings: transport.Settings{CAFile: file}}, source.Options{})
		if err == nil || !strings.Contains(err.Error(), "caFile") || len(err.Error()) > 300 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := source.New(source.Config{Name: "f", URL: "https://127.0.0.1/x.git", Dir: dir, Settings: transport.Settings{CAFile: os.DevNull + "/x"}}, source.Options{}); err == nil {
		t.Error("a file that is not there is taken")
	}
}
