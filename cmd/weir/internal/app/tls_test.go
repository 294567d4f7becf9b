package app

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/follow"
	"github.com/weir-gitops/weir/reconciler/awscloud"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/source/sourcetest"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/metrics"
	"github.com/weir-gitops/weir/status/notify"
)

// tellAll writes to forges, AWS and a receiver of notifications, all at one address, and
// gives what succeeded. The authority of the server is trusted.
func tellAll(t *testing.T, server *sourcetest.TLSServer) (succeeded []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cret-s3cret-s3cret-s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	note := func(what string, err error) {
		if err == nil {
			succeeded = append(succeeded, what)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the error shows the token: %v", what, err)
		}
	}
	sha := strings.Repeat("1", 40)
	of := &follow.Source{Config: config.Source{Name: "s", Settings: transport.Settings{CAFile: server.CAFile}}}
	metrics := metrics.New(prometheus.NewRegistry(), "test")
	for _, kind := range []string{"github", "gitlab", "gitea"} {
		f := config.Forge{Type: kind, URL: server.URL + "/platform/fleet", Source: "s", TokenFile: secret}
		writer, err := follow.NewForge(f, of, "main", metrics)
		if err != nil {
			t.Fatal(err)
		}
		_, err = writer.Statuses(ctx, sha)
		note(kind+" gives statuses", err)
		note(kind+" takes statuses", writer.SetStatus(ctx, sha, forge.CommitStatus{Context: "c", State: forge.Success}))
		once, cancel := context.WithTimeout(ctx, 200*time.Millisecond) // It would try again.
		_, err = writer.Pull(once, 7)
		cancel()
		note(kind+" gives pull requests", err)
		_, err = writer.CreateComment(ctx, 7, "x")
		note(kind+" takes comments", err)
	}
	t.Setenv("AWS_CA_BUNDLE", server.CAFile)
	_, err := awscloud.Open(ctx, sdk.Options{Region: "eu-west-1", EndpointURL: server.URL, Embedded: true, Attempts: 1})
	note("AWS", err)

	rt, err := transport.NewHTTP(transport.Settings{CAFile: server.CAFile})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.CloseIdleConnections()
	sent := make(chan string, 10)
	n, err := notify.New(notify.Options{
		Receivers: []notify.Receiver{{URL: server.URL, SecretFile: secret}}, Transport: rt,
		Logger: slog.New(slog.DiscardHandler), Sent: func(_, result string) { sent <- result },
	})
	if err != nil {
		t.Fatal(err)
	}
	n.Add([]events.Event{{Kind: "x", Text: "y"}})
	n.Close(ctx) // what waits gets one try
	if <-sent == "sent" {
		note("notification", nil)
	}
	return succeeded
}

// TestHostileTLS tells nothing, token least of all, to those who do not prove who
// they are.
func TestHostileTLS(t *testing.T) {
	t.Setenv("AWS_CONFIG_FILE", os.DevNull)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", os.DevNull)
	for name, server := range sourcetest.HostileTLS(t) {
		if got := tellAll(t, server); len(got) > 0 {
			t.Errorf("a server %s: %v", name, got)
		}
		if heard := server.Heard(); len(heard) > 0 {
			t.Errorf("a server %s was asked: %v", name, heard)
		}
	}
}

// TestDowngrade has a server that is what it says send its clients to one that is not.
func TestDowngrade(t *testing.T) {
	t.Setenv("AWS_CONFIG_FILE", os.DevNull)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", os.DevNull)
	var mu sync.Mutex
	var heard []string
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, r.Method+" "+r.URL.Path)
		_, _ = io.WriteString(w, "{}")
	}))
	defer plain.Close()
	for _, to := range []string{plain.URL, strings.Replace(plain.URL, "127.0.0.1", "localhost", 1)} {
		for _, code := range []int{http.StatusMovedPermanently, http.StatusTemporaryRedirect} {
			server := sourcetest.GoodTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, to+r.URL.RequestURI(), code)
			}))
			if got := tellAll(t, server); len(got) > 0 {
				t.Errorf("%d to %s: %v", code, to, got)
			}
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(heard) > 0 {
		t.Errorf("the server without TLS was asked: %v", heard)
	}
}
