package source_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/sourcetest"
	"github.com/weir-gitops/weir/source/transport"
)

func TestCredentials(t *testing.T) {
	t.Parallel()
	repo, one := oneCommit(t)
	repo.RequireAuth("bot", "s3cret-value")
	file := filepath.Join(t.TempDir(), "password")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wantUnavailable(t, open(t, source.Config{URL: repo.URL()}, source.Options{}), fault.AuthFailed)

	var logged bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	g := open(t, source.Config{URL: repo.URL(), Settings: transport.Settings{Auth: transport.Auth{Username: "bot", PasswordFile: file}}}, source.Options{Logger: logger})
	wantUnavailable(t, g, fault.AuthFailed) // No file yet.
	write("wrong-value")
	if ue := wantUnavailable(t, g, fault.AuthFailed); strings.Contains(ue.Error(), "wrong-value") {
		t.Errorf("the error shows the password: %v", ue)
	}
	write("s3cret-value\n") // Rotated, with the newline that editors add.
	wantRevision(t, g, one)
	if text := logged.String(); !strings.Contains(text, one) || strings.Contains(text, "-value") {
		t.Errorf("the log lacks the revision or shows a password: %s", text)
	}

	repo.RequireAuth("x-access-token", "tok")
	write("tok")
	wantRevision(t, open(t, source.Config{URL: repo.URL(), Settings: transport.Settings{Auth: transport.Auth{TokenFile: file}}}, source.Options{}), one)
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	repo.Write(map[string]string{"f": "1"})
	repo.Commit("one")
	var mu sync.Mutex
	var leaked []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		leaked = append(leaked, r.Method+" "+r.Header.Get("Authorization"))
	}))
	defer other.Close()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("tok"), 0o600); err != nil {
		t.Fatal(err)
	}
	g := open(t, source.Config{URL: repo.URL(), Settings: transport.Settings{Auth: transport.Auth{TokenFile: token}}}, source.Options{})
	repo.Redirect(other.URL)
	wantUnavailable(t, g, fault.RefusedURL)
	mu.Lock()
	defer mu.Unlock()
	if len(leaked) > 0 {
		t.Errorf("the other host was asked: %v", leaked)
	}
	for _, r := range repo.Requests() {
		if r.Authorization == "" {
			t.Errorf("%s %s came without credentials", r.Method, r.Path)
		}
	}
}

func TestRemoteFailures(t *testing.T) {
	t.Parallel()
	repo, one := oneCommit(t)
	g := open(t, source.Config{URL: repo.URL()}, source.Options{})
	wantRevision(t, g, one)
	repo.Write(map[string]string{"f": "2"})
	two := repo.Commit("two")

	repo.Down(true)
	wantUnavailable(t, g, fault.Unreachable)
	repo.Down(false)
	for status, reason := range map[int]fault.Reason{
		http.StatusUnauthorized: fault.AuthFailed, http.StatusForbidden: fault.AuthFailed, http.StatusNotFound: fault.NotFound,
		http.StatusTooManyRequests: fault.Unreachable, http.StatusBadGateway: fault.Unreachable,
	} {
		repo.Answer(status)
		wantUnavailable(t, g, reason)
	}
	repo.Answer(0)
	repo.Stall(true)
	hasty := open(t, source.Config{URL: repo.URL()}, source.Options{Timeout: 400 * time.Millisecond})
	wantUnavailable(t, hasty, fault.Timeout)
	repo.Stall(false)
	wantRevision(t, g, two)

	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>hello</html>") }))
	defer web.Close()
	wantUnavailable(t, open(t, source.Config{URL: web.URL + "/x.git"}, source.Options{}), fault.Unsupported)
	wantUnavailable(t, open(t, source.Config{URL: strings.Replace(repo.URL(), "fleet", "nope", 1)}, source.Options{}), fault.NotFound)
}

func TestContextEnds(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	repo.Write(map[string]string{"f": "1"})
	repo.Commit("one")
	repo.Stall(true)
	g := open(t, source.Config{URL: repo.URL()}, source.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err := g.Latest(ctx)
	var ue *fault.UnavailableError
	if !errors.Is(err, context.Canceled) || errors.As(err, &ue) {
		t.Errorf("Latest gave %v, want the context's error alone", err)
	}
}

func TestSHA256IsRefused(t *testing.T) {
	t.Parallel()
	repo := sourcetest.NewSHA256(t)
	repo.Write(map[string]string{"f": "1"})
	repo.Commit("one")
	for _, url := range []string{repo.URL(), repo.Dir()} {
		if ue := wantUnavailable(t, open(t, source.Config{URL: url}, source.Options{}), fault.Unsupported); !strings.Contains(ue.Error(), "sha256") {
			t.Errorf("%s: the error does not say sha256: %v", url, ue)
		}
	}
}

func TestPushesDuringFetch(t *testing.T) {
	t.Parallel()
	repo, one := oneCommit(t)
	g := open(t, source.Config{URL: repo.URL()}, source.Options{})
	wantRevision(t, g, one)

	// Between the list of refs and the pack, the branch is rewritten and the
	// commit that was listed is gone from the server.
	repo.Write(map[string]string{"f": "2"})
	repo.Commit("two")
	var once sync.Once
	var three string
	repo.Before(func(r *http.Request) {
		if r.Method == http.MethodPost {
			once.Do(func() {
				repo.Branch("main", one)
				repo.Write(map[string]string{"f": "3"})
				three = repo.Commit("three")
				repo.Git("reflog", "expire", "--expire=now", "--all")
				repo.Git("prune", "--expire=now")
			})
		}
	})
	s := latest(t, g)
	if s.Revision != three || s.Parent != one {
		t.Errorf("revision %s, want %s", s.Revision, three)
	}
	files(t, s.Tree)
}
