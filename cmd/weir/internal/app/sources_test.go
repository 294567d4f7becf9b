package app

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
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

	"golang.org/x/crypto/ssh"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/follow"
	"github.com/weir-gitops/weir/render/redact"
	"github.com/weir-gitops/weir/source/signature"
	"github.com/weir-gitops/weir/source/sourcetest"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/current"
)

// TestUnsignedCommitsAreNotApplied follows a branch that must be signed.
func TestUnsignedCommitsAreNotApplied(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	alice := sourcetest.NewSSHKey(t)
	allowed := filepath.Join(w.dir, "allowed_signers")
	if err := os.WriteFile(allowed, []byte("alice@example.com "+string(ssh.MarshalAuthorizedKey(alice.PublicKey()))), 0o600); err != nil {
		t.Fatal(err)
	}
	c := w.config()
	c.Sources[0].Verify = signature.Policy{Mode: signature.Commit, SSH: signature.SSH{AllowedSignersFile: allowed}}
	w.repo.Switch("work") // Commits on main are signed when they are pushed, or never.
	commit := func(size int, sign sourcetest.Sign) string {
		w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", size)}))
		made := w.repo.Commit(fmt.Sprintf("size %d", size))
		if sign != nil {
			made = w.repo.Signed(made, sign)
		}
		w.repo.Branch("main", made)
		return made
	}
	status := func(sha, want, text string) func() string {
		return func() string {
			state, description := w.forge.last(sha, "fleet/apply")
			if state != want || !strings.Contains(description, text) {
				return fmt.Sprintf("%s: %s", state, description)
			}
			return ""
		}
	}
	a, stop := w.startConfig(c, nil)
	defer stop()

	unborn := commit(2, nil) // There is no last good one yet.
	eventually(t, "the first commit is refused", status(unborn, "failure", "not applied: commit "+unborn[:12]))
	if n := len(w.writes()); n > 0 {
		t.Fatalf("an unsigned commit wrote: %v", w.writes())
	}
	first := commit(3, w.repo.SSHSign(alice))
	converged(t, a, first, 1)
	eventually(t, "the signed one is told", status(first, "success", ""))
	wrote := len(w.writes())

	second := commit(4, nil)
	eventually(t, "the second is refused", status(second, "failure", "it is not signed"))
	mallory := commit(5, w.repo.SSHSign(sourcetest.NewSSHKey(t)))
	eventually(t, "the third is refused", status(mallory, "failure", "Weir Test <test@weir.dev>"))
	eventually(t, "passes go on with what was applied last", func() string {
		s, _ := a.current.Targets.Find("prod")
		if s.Last.Revision != first || len(s.Last.Pools) != 1 || s.Last.Err == nil || !strings.Contains(s.Last.Err.Error(), mallory[:12]) {
			return fmt.Sprintf("revision %q, %d pools, error %v", s.Last.Revision, len(s.Last.Pools), s.Last.Err)
		}
		return ""
	})
	if got := w.writes(); len(got) != wrote {
		t.Errorf("an unsigned commit wrote: %v", got[wrote:])
	}

	last := commit(6, w.repo.SSHSign(alice))
	converged(t, a, last, 1)
	eventually(t, "the signed one is told", status(last, "success", ""))
	if len(w.writes()) == wrote {
		t.Error("the signed commit was not applied")
	}
}

// TestVerifyIsAskedForWhileItRuns has a reload ask for signatures where an unsigned
// commit was rendered already, and at the same time let its target be written.
func TestVerifyIsAskedForWhileItRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	alice := sourcetest.NewSSHKey(t)
	allowed := filepath.Join(w.dir, "allowed_signers")
	if err := os.WriteFile(allowed, []byte("alice@example.com "+string(ssh.MarshalAuthorizedKey(alice.PublicKey()))), 0o600); err != nil {
		t.Fatal(err)
	}
	w.repo.Switch("work")
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	unsigned := w.repo.Commit("unsigned")
	w.repo.Branch("main", unsigned)
	first, next := w.config(), w.config()
	first.Targets[0].Suspend = true
	next.Sources[0].Verify = signature.Policy{Mode: signature.Commit, SSH: signature.SSH{AllowedSignersFile: allowed}}
	a, stop := w.startConfig(first, func() (*config.Config, error) { return next, nil })
	defer stop()
	pass := func(what string, wanted func(s current.TargetState) bool) {
		t.Helper()
		eventually(t, what, func() string {
			if s, ok := a.current.Targets.Find("prod"); !ok || s.Last == nil || !wanted(s) {
				return fmt.Sprintf("%+v", s.Last)
			}
			return ""
		})
	}
	pass("the unsigned commit is planned", func(s current.TargetState) bool { return s.Last.Revision == unsigned && s.Last.Suspended })
	a.reloadDue.send()
	pass("it is refused", func(s current.TargetState) bool {
		return !s.Last.Suspended && s.Last.Err != nil && strings.Contains(s.Last.Err.Error(), "it is not signed")
	})
	began := lastPass(a)
	pass("another pass is over", func(current.TargetState) bool { return lastPass(a).After(began) })
	if got := w.writes(); len(got) > 0 {
		t.Errorf("an unsigned commit wrote: %v", got)
	}
	signed := w.repo.Signed(unsigned, w.repo.SSHSign(alice))
	w.repo.Branch("main", signed)
	converged(t, a, signed, 1)
}

// gitHub is a GitHub Enterprise Server with one repository and one App.
type gitHub struct {
	repo *sourcetest.Repo

	mu       sync.Mutex
	issued   int
	git      map[string]int // by the credentials that were taken
	statuses map[string]int
	states   map[string]string // by commit, of the aggregate
	refused  int
}

func (g *gitHub) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	token := fmt.Sprintf("ghs_canary<%d>", g.issued)
	switch p := r.URL.Path; {
	case strings.HasPrefix(p, "/acme/fleet.git/"):
		if _, secret, _ := r.BasicAuth(); secret != token {
			g.refused++
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		g.git[token]++
		to := r.Clone(r.Context())
		to.URL.Path = strings.TrimPrefix(p, "/acme")
		to.Header.Del("Authorization")
		g.repo.ServeHTTP(rw, to)
	case p == "/api/v3/repos/acme/fleet/installation":
		fmt.Fprint(rw, `{"id":77}`)
	case p == "/api/v3/app/installations/77/access_tokens":
		g.issued++
		rw.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(rw).Encode(map[string]any{"token": fmt.Sprintf("ghs_canary<%d>", g.issued), "expires_at": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)})
	case r.Header.Get("Authorization") != "Bearer "+token:
		g.refused++
		rw.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(rw, `{"message":"Bad credentials"}`)
	case strings.HasPrefix(p, "/api/v3/repos/acme/fleet/statuses/"):
		var in struct{ State, Context string }
		_ = json.NewDecoder(r.Body).Decode(&in)
		g.statuses[token]++
		if in.Context == "fleet/apply" {
			g.states[filepath.Base(p)] = in.State
		}
		rw.WriteHeader(http.StatusCreated)
		fmt.Fprint(rw, `{"id":1}`)
	default:
		fmt.Fprint(rw, `[]`)
	}
}

// TestGitHubAppServesGitAndStatuses has one token for both, until it is revoked.
func TestGitHubAppServesGitAndStatuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	g := &gitHub{repo: w.repo, git: map[string]int{}, statuses: map[string]int{}, states: map[string]string{}}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(w.dir, "app.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), 0o600); err != nil {
		t.Fatal(err)
	}
	c := w.config()
	c.Sources[0].URL = server.URL + "/acme/fleet.git"
	c.Sources[0].Auth.GitHubApp = transport.GitHubApp{AppID: "4711", PrivateKeyFile: file}
	c.Forges[0] = config.Forge{Type: "github", URL: server.URL + "/acme/fleet", Source: "pools"}
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := w.repo.Commit("first")
	a, stop := w.startConfig(c, nil)
	defer stop()
	success := func(sha string) func() string {
		return func() string {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.states[sha] != "success" {
				return fmt.Sprintf("%q; %d tokens, %d refused", g.states[sha], g.issued, g.refused)
			}
			return ""
		}
	}
	converged(t, a, first, 1)
	eventually(t, "the first status", success(first))
	g.mu.Lock()
	if g.issued != 1 || g.refused != 0 || g.git["ghs_canary<1>"] == 0 || g.statuses["ghs_canary<1>"] == 0 {
		t.Errorf("%d tokens, %d refused, used %v by Git and %v by statuses", g.issued, g.refused, g.git, g.statuses)
	}
	g.issued++ // The token of before is revoked.
	g.mu.Unlock()
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 4)}))
	second := w.repo.Commit("second")
	converged(t, a, second, 1)
	eventually(t, "the second status", success(second))

	// Tokens are kept out of what is shown, also where nothing else hides them.
	if got := a.o.Secrets.Redact("token ghs_canary<3> and ghs_canary<1>"); strings.Contains(got, "canary<3>") {
		t.Errorf("a token is shown: %s", got)
	}
}

// TestCredentialsOfSourcesAreHidden writes each kind of secret to the log.
func TestCredentialsOfSourcesAreHidden(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	w.repo.Commit("first")
	c := w.config()
	write := func(name, text string) string {
		file := filepath.Join(w.dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	keyFile := filepath.Join(w.dir, "ssh-key")
	sourcetest.WriteSSHKey(t, keyFile, "")
	key, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	s := &c.Sources[0]
	s.Auth.BearerTokenFile = write("bearer", "canary1Bearer\n")
	s.Auth.PassphraseFile, s.Auth.SSHKeyFile = write("passphrase", "canary2Passphrase\n"), keyFile
	s.Proxy, s.ProxyAuth = "http://127.0.0.1:1", transport.ProxyAuth{Username: "u", PasswordFile: write("proxy", "canary3Proxy")}
	s.ClientCert.KeyFile = write("client", "-----BEGIN PRIVATE KEY-----\ncanary4ClientKeyLine\n-----END PRIVATE KEY-----\n")
	s.Auth.GitHubApp.PrivateKeyFile = write("app", "-----BEGIN RSA PRIVATE KEY-----\ncanary5AppKeyLine000\n-----END RSA PRIVATE KEY-----\n")
	var logged bytes.Buffer
	secrets := &redact.Registry{}
	follow.HideCredentials(secrets, c)
	log := slog.New(secrets.Handler(slog.NewTextHandler(&logged, nil)))
	lines := strings.Split(string(key), "\n")
	log.LogAttrs(context.Background(), slog.LevelInfo, "all", slog.String("text", "canary1Bearer canary2Passphrase canary3Proxy canary4ClientKeyLine canary5AppKeyLine000 "+lines[2]))
	if text := logged.String(); strings.Contains(text, "canary") || strings.Contains(text, lines[2]) {
		t.Errorf("a secret is shown: %s", text)
	}
}
