package githubapp_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-gitops/weir/source/githubapp"
)

// gitHub answers as GitHub documents for Apps.
type gitHub struct {
	*httptest.Server
	mu       sync.Mutex
	key      *rsa.PublicKey
	now      time.Time
	appID    string
	calls    []string
	issued   int
	life     time.Duration
	fail     func(w http.ResponseWriter, path string) bool
	echo     bool
	notFound bool
}

func newGitHub(t *testing.T, key *rsa.PublicKey, now time.Time) *gitHub {
	g := &gitHub{key: key, now: now, appID: "4711", life: time.Hour}
	g.Server = httptest.NewServer(g)
	t.Cleanup(g.Close)
	return g
}

func (g *gitHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls = append(g.calls, r.Method+" "+r.URL.Path)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if g.fail != nil && g.fail(w, r.URL.Path) {
		return
	}
	if g.echo {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"message":%q}`, "bad "+r.Header.Get("Authorization"))
		return
	}
	if why := g.checkStatement(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")); why != "" {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"message":%q,"documentation_url":"https://docs.github.com/rest"}`, why)
		return
	}
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/api/v3/repos/acme/fleet/installation" && !g.notFound:
		fmt.Fprint(w, `{"id":1234567,"account":{"login":"acme"},"repository_selection":"selected","permissions":{"contents":"read","statuses":"write"}}`)
	case r.Method == http.MethodPost && r.URL.Path == "/api/v3/app/installations/1234567/access_tokens":
		var body struct{ Repositories []string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Repositories) != 1 || body.Repositories[0] != "fleet" {
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"message":"There is at least one repository that does not exist or is not accessible to the parent installation."}`)
			return
		}
		g.issued++
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"token":"ghs_secret%d","expires_at":%q,"permissions":{"contents":"read"},"repository_selection":"selected"}`, g.issued, g.now.Add(g.life).UTC().Format(time.RFC3339))
	default:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"message":"Not Found","documentation_url":"https://docs.github.com/rest","status":"404"}`)
	}
}

func (g *gitHub) checkStatement(jwt string) string {
	parts := strings.Split(jwt, ".")
	if len(parts) != 3 {
		return "A JSON web token could not be decoded"
	}
	sig, _ := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if rsa.VerifyPKCS1v15(g.key, crypto.SHA256, sum[:], sig) != nil {
		return "A JSON web token could not be decoded"
	}
	text, _ := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Iat, Exp int64
		Iss      string
	}
	if json.Unmarshal(text, &claims) != nil || claims.Iss != g.appID {
		return "Integration not found"
	}
	if claims.Exp-g.now.Unix() > 600 || claims.Exp <= g.now.Unix() || claims.Iat > g.now.Unix() {
		return "'Expiration time' claim ('exp') is too far in the future"
	}
	return ""
}

func (g *gitHub) set(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
}

func (g *gitHub) seen() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.calls...)
}

var oneKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func writeKey(t *testing.T, file string, key *rsa.PrivateKey) {
	t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// fixture is an App with a clock that tests move.
type fixture struct {
	*githubapp.App
	*gitHub
	file string
	// heard are the tokens that OnToken was told of.
	heard []string
	clock time.Time
}

func newFixture(t *testing.T, change func(*githubapp.Options)) *fixture {
	t.Helper()
	f := &fixture{clock: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), file: filepath.Join(t.TempDir(), "key.pem")}
	writeKey(t, f.file, oneKey())
	f.gitHub = newGitHub(t, &oneKey().PublicKey, f.clock)
	u, err := url.Parse(f.URL + "/acme/fleet.git")
	if err != nil {
		t.Fatal(err)
	}
	o := githubapp.Options{
		API: githubapp.APIOf(u), AppID: "4711", Repository: "acme/fleet", KeyFile: f.file, Now: func() time.Time { return f.clock },
		OnToken: func(s string) { f.heard = append(f.heard, s) },
	}
	if change != nil {
		change(&o)
	}
	if f.App, err = githubapp.New(o); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) pass(d time.Duration) {
	f.clock = f.clock.Add(d)
	f.set(func() { f.now = f.clock })
}

func (f *fixture) want(t *testing.T, token string) {
	t.Helper()
	got, err := f.Token(context.Background())
	if err != nil || got != token {
		t.Fatalf("token %q, %v; want %q", got, err, token)
	}
}

func (f *fixture) wantError(t *testing.T, parts ...string) {
	t.Helper()
	got, err := f.Token(context.Background())
	if err == nil {
		t.Fatalf("token %q, want an error", got)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("the error lacks %q: %v", p, err)
		}
	}
	for _, secret := range []string{"ghs_", "eyJ", "BEGIN"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error shows a secret: %v", err)
		}
	}
}

func TestTokenIsKeptUntilShortlyBeforeItsEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.want(t, "ghs_secret1")
	f.pass(49 * time.Minute)
	f.want(t, "ghs_secret1")
	f.pass(2 * time.Minute)
	f.want(t, "ghs_secret2")
	want := "GET /api/v3/repos/acme/fleet/installation, POST /api/v3/app/installations/1234567/access_tokens, POST /api/v3/app/installations/1234567/access_tokens"
	if got := strings.Join(f.seen(), ", "); got != want {
		t.Errorf("calls %s, want %s", got, want)
	}
	if got := strings.Join(f.heard, " "); got != "ghs_secret1 ghs_secret2" {
		t.Errorf("OnToken heard %s", got)
	}

	// While GitHub is down the old one does, until its last minute.
	f.set(func() {
		f.fail = func(w http.ResponseWriter, _ string) bool { w.WriteHeader(http.StatusBadGateway); return true }
	})
	f.pass(55 * time.Minute)
	f.want(t, "ghs_secret2")
	f.pass(4*time.Minute + time.Second)
	f.wantError(t, "502")
	f.set(func() { f.fail = nil })
	f.want(t, "ghs_secret3")
}

func TestOneRequestForMany(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(o *githubapp.Options) { o.InstallationID = "1234567" })
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if got, err := f.Token(context.Background()); err != nil || got != "ghs_secret1" {
				t.Errorf("token %q, %v", got, err)
			}
		})
	}
	wg.Wait()
	if n := len(f.seen()); n != 1 {
		t.Errorf("%d calls, want 1", n)
	}
}

func TestRejectedTokenIsReplaced(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.want(t, "ghs_secret1")
	f.Reject("another")
	f.want(t, "ghs_secret1")
	f.Reject("ghs_secret1")
	f.want(t, "ghs_secret2")
	if n := len(f.seen()); n != 4 {
		t.Errorf("%d calls, want the installation to be looked up again: 4", n)
	}
}

func TestKeyIsReadAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.want(t, "ghs_secret1")
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	writeKey(t, f.file, other)
	f.wantError(t, "does not accept App 4711", "401", f.file, "clock")
	f.set(func() { f.key = &other.PublicKey })
	f.want(t, "ghs_secret2")
	for _, text := range []string{"", "no key", "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n"} {
		if err := os.WriteFile(f.file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f.wantError(t, "no RSA private key in PEM")
	}
	if err := os.Remove(f.file); err != nil {
		t.Fatal(err)
	}
	f.wantError(t, "read auth.githubApp.privateKeyFile")
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	answer := func(status int, header, body string) func(http.ResponseWriter, string) bool {
		return func(w http.ResponseWriter, _ string) bool {
			if name, value, ok := strings.Cut(header, ": "); ok {
				w.Header().Set(name, value)
			}
			w.WriteHeader(status)
			fmt.Fprint(w, body)
			return true
		}
	}
	tests := map[string]struct {
		change func(*githubapp.Options)
		server func(*gitHub)
		want   []string
	}{
		"not installed":      {nil, func(g *gitHub) { g.notFound = true }, []string{"is not installed on acme/fleet", "install it"}},
		"wrong installation": {func(o *githubapp.Options) { o.InstallationID = "7" }, nil, []string{"no installation 7", "leave it out"}},
		"other repository":   {func(o *githubapp.Options) { o.InstallationID, o.Repository = "1234567", "acme/other" }, nil, []string{"does not reach acme/other", "give it access"}},
		"wrong app":          {func(o *githubapp.Options) { o.AppID = "1" }, nil, []string{"does not accept App 1", "Integration not found", "appID"}},
		"suspended":          {nil, func(g *gitHub) { g.fail = answer(403, "", `{"message":"This installation has been suspended"}`) }, []string{"has been suspended"}},
		"rate limit": {nil, func(g *gitHub) {
			g.fail = answer(403, "X-RateLimit-Remaining: 0", `{"message":"API rate limit exceeded"}`)
		}, []string{"limits the requests"}},
		"secondary limit":    {nil, func(g *gitHub) { g.fail = answer(429, "", `{}`) }, []string{"limits the requests"}},
		"redirect":           {nil, func(g *gitHub) { g.fail = answer(301, "Location: http://127.0.0.1:1/", "") }, []string{"301"}},
		"echo":               {nil, func(g *gitHub) { g.echo = true }, []string{"400 bad Bearer …"}},
		"no API":             {nil, func(g *gitHub) { g.fail = answer(200, "", "<html>ghs_x") }, []string{"does not answer as GitHub's API"}},
		"ended already":      {nil, func(g *gitHub) { g.life = -time.Minute }, []string{"clock"}},
		"control characters": {nil, func(g *gitHub) { g.fail = answer(500, "", `{"message":"a\nb\u001b[31m`+strings.Repeat("x", 5000)+`"}`) }, []string{"500 a b [31mxxx"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, tt.change)
			if tt.server != nil {
				f.set(func() { tt.server(f.gitHub) })
			}
			f.wantError(t, tt.want...)
		})
	}
	t.Run("down", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, nil)
		f.Close()
		f.wantError(t, "ask GitHub for a token", "check the network")
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := f.Token(ctx); err == nil {
			t.Error("a token after the end")
		}
	})
}

func TestAPIOf(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"https://github.com/acme/fleet.git":    "https://api.github.com",
		"https://acme.ghe.com/acme/fleet":      "https://api.acme.ghe.com",
		"https://git.acme.example:8443/acme/f": "https://git.acme.example:8443/api/v3",
		"http://127.0.0.1:3000/acme/fleet":     "http://127.0.0.1:3000/api/v3",
	} {
		u, err := url.Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := githubapp.APIOf(u); got != want {
			t.Errorf("APIOf(%s) = %s, want %s", in, got, want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	good := githubapp.Options{API: "https://api.github.com", AppID: "1", KeyFile: "k", Repository: "a/b"}
	for name, change := range map[string]func(*githubapp.Options){
		"API": func(o *githubapp.Options) { o.API = "x" }, "app": func(o *githubapp.Options) { o.AppID = "" },
		"key": func(o *githubapp.Options) { o.KeyFile = "" }, "repository": func(o *githubapp.Options) { o.Repository = "a/b/c" },
	} {
		o := good
		change(&o)
		if _, err := githubapp.New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := githubapp.New(good); err != nil {
		t.Error(err)
	}
}
