package source_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
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

// guarded serves a repository to requests with one Authorization header. Others
// get theirs back in the refusal's body and headers.
func guarded(t *testing.T, repo *sourcetest.Repo, want func() string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := r.Header.Get("Authorization")
		if got != want() {
			w.Header().Set("WWW-Authenticate", "Basic realm=\""+got+"\"")
			_, secret, _ := r.BasicAuth()
			http.Error(w, got+secret, http.StatusUnauthorized)
			return
		}
		repo.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/" + filepath.Base(repo.Dir())
}

func TestBearerToken(t *testing.T) {
	t.Parallel()
	repo, one := oneCommit(t)
	url := guarded(t, repo, func() string { return "Bearer hunter2-right" })
	file := filepath.Join(t.TempDir(), "token")
	g := open(t, source.Config{URL: url, Settings: transport.Settings{Auth: transport.Auth{BearerTokenFile: file}}}, source.Options{})
	for text, want := range map[string]string{"hunter2-wrong": "401", "": "is empty", "hunter2\nand more": "several lines"} {
		overwrite(t, file, text)
		ue := wantUnavailable(t, g, fault.AuthFailed)
		if !strings.Contains(ue.Error(), want) || strings.Contains(ue.Error(), "hunter2") {
			t.Errorf("%q: %v, want an error with %q and no token", text, ue, want)
		}
	}
	overwrite(t, file, "hunter2-right\n")
	wantRevision(t, g, one)
}

// tokens is a source of tokens that expire.
type tokens struct {
	mu       sync.Mutex
	n        int
	rejected []string
	err      error
}

func (s *tokens) Token(context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("hunter2-%d", s.n), s.err
}

func (s *tokens) Reject(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rejected = append(s.rejected, token)
	s.n++
}

func TestTokensThatExpire(t *testing.T) {
	t.Parallel()
	repo, one := oneCommit(t)
	var mu sync.Mutex
	good := "hunter2-0"
	url := guarded(t, repo, func() string {
		mu.Lock()
		defer mu.Unlock()
		return "Basic " + base64.StdEncoding.EncodeToString([]byte("x-access-token:"+good))
	})
	s := &tokens{}
	g := open(t, source.Config{URL: url, Settings: transport.Settings{Auth: transport.Auth{Tokens: s}}}, source.Options{})
	wantRevision(t, g, one)
	mu.Lock()
	good = "hunter2-1"
	mu.Unlock()
	if ue := wantUnavailable(t, g, fault.AuthFailed); strings.Contains(ue.Error(), "hunter2") {
		t.Errorf("the error shows a token: %v", ue)
	}
	if len(s.rejected) != 1 || s.rejected[0] != "hunter2-0" {
		t.Errorf("rejected %v, want the old token once", s.rejected)
	}
	wantRevision(t, g, one)
	s.err = errors.New("the App is not installed; install it")
	if ue := wantUnavailable(t, g, fault.AuthFailed); !strings.Contains(ue.Error(), "install it") {
		t.Errorf("the error lacks its cause: %v", ue)
	}
}

// authority makes certificates.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	var der []byte
	der, a.key = a.make(&x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a.cert = cert
	return a
}

func (a *authority) make(c, parent *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.Subject = pkix.Name{CommonName: "weir test"}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	signer := a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	return der, key
}

// issue writes a client's certificate into the files.
func (a *authority) issue(files transport.ClientCert) {
	a.t.Helper()
	der, key := a.make(&x509.Certificate{SerialNumber: big.NewInt(2), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, a.cert)
	text, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	overwrite(a.t, files.CertFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	overwrite(a.t, files.KeyFile, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: text})))
}

func TestClientCertificate(t *testing.T) {
	t.Parallel()
	repo, one := oneCommit(t)
	ours, theirs := newAuthority(t), newAuthority(t)
	server := httptest.NewUnstartedServer(repo.Server)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // Refusals are wanted here.
	pool := x509.NewCertPool()
	pool.AddCert(ours.cert)
	server.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	server.StartTLS()
	defer server.Close()
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	overwrite(t, ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	cfg := source.Config{URL: server.URL + "/" + filepath.Base(repo.Dir()), Settings: transport.Settings{CAFile: ca}}
	if ue := wantUnavailable(t, open(t, cfg, source.Options{}), fault.Unreachable); !strings.Contains(ue.Error(), "clientCert") {
		t.Errorf("the error does not say what to do: %v", ue)
	}

	cfg.ClientCert = transport.ClientCert{CertFile: filepath.Join(dir, "client.pem"), KeyFile: filepath.Join(dir, "client.key")}
	g := open(t, cfg, source.Options{})
	wantUnavailable(t, g, fault.AuthFailed) // No files yet.
	theirs.issue(cfg.ClientCert)
	wantUnavailable(t, g, fault.Unreachable)
	ours.issue(cfg.ClientCert) // Taken without being made anew.
	wantRevision(t, g, one)
	g.Close()
	overwrite(t, cfg.ClientCert.KeyFile, "hunter2")
	if ue := wantUnavailable(t, g, fault.AuthFailed); strings.Contains(ue.Error(), "hunter2") {
		t.Errorf("the error shows the file's content: %v", ue)
	}
	cfg.ClientCert.KeyFile = ""
	if _, err := source.New(source.Config{Name: "f", URL: cfg.URL, Dir: dir, Settings: transport.Settings{ClientCert: cfg.ClientCert}}, source.Options{}); err == nil {
		t.Error("a certificate without its key is taken")
	}
}

func TestProxyCredentials(t *testing.T) {
	t.Parallel()
	repo, one := oneCommit(t)
	forward := &httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}, Transport: &http.Transport{DisableKeepAlives: true}}
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte("bot:hunter2"))
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Proxy-Authorization"); got != want {
			http.Error(w, got, http.StatusProxyAuthRequired)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	defer plain.Close()
	secured := httptest.NewTLSServer(repo.Server)
	defer secured.Close()
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	overwrite(t, ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secured.Certificate().Raw})))
	for kind, cfg := range map[string]source.Config{
		"http":    {URL: repo.URL(), Settings: transport.Settings{Proxy: plain.URL}},
		"connect": {URL: secured.URL + "/" + filepath.Base(repo.Dir()), Settings: transport.Settings{CAFile: ca, Proxy: connectProxy(t, "bot", "hunter2")}},
	} {
		t.Run(kind, func(t *testing.T) {
			bare := wantUnavailable(t, open(t, cfg, source.Options{}), fault.AuthFailed)
			file := filepath.Join(dir, kind)
			cfg.ProxyAuth = transport.ProxyAuth{Username: "bot", PasswordFile: file}
			g := open(t, cfg, source.Options{})
			gone := wantUnavailable(t, g, fault.AuthFailed)
			overwrite(t, file, "hunter2-old")
			wrong := wantUnavailable(t, g, fault.AuthFailed)
			for _, ue := range []*fault.UnavailableError{bare, gone, wrong} {
				if !strings.Contains(ue.Error(), "proxy") || strings.Contains(ue.Error(), "hunter2") || strings.Contains(ue.Error(), want) {
					t.Errorf("the error does not speak of the proxy, or shows the password: %v", ue)
				}
			}
			overwrite(t, file, "hunter2")
			wantRevision(t, g, one)
		})
	}
}
