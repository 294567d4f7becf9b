package sourcetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// TLSServer is a server with TLS and a log of its requests.
type TLSServer struct {
	// URL is the server's address. CAFile is the authority that its certificate names as its issuer.
	URL, CAFile string

	mu    sync.Mutex
	heard []string
}

// Heard returns the requests, with their credentials.
func (s *TLSServer) Heard() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.heard...)
}

func (s *TLSServer) hear(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = append(s.heard, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
}

// authority signs certificates.
type authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t testing.TB, name string) *authority {
	t.Helper()
	a := &authority{t: t, file: filepath.Join(t.TempDir(), "ca.pem")}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := a.sign(template)
	a.cert, a.key = leaf.Leaf, leaf.PrivateKey.(*ecdsa.PrivateKey)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
	if err := os.WriteFile(a.file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

// sign returns a certificate. It is self-signed if the authority has no certificate yet.
func (a *authority) sign(template *x509.Certificate) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		a.t.Fatal(err)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key, Leaf: cert}
}

// leaf returns a certificate for this machine. change makes it invalid.
func (a *authority) leaf(change func(*x509.Certificate)) tls.Certificate {
	a.t.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "server"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if change != nil {
		change(template)
	}
	return a.sign(template)
}

// HostileTLS returns servers that no client may trust, by defect. They end with the test.
func HostileTLS(t testing.TB) map[string]*TLSServer {
	t.Helper()
	ca, unknown := newAuthority(t, "ours"), newAuthority(t, "unknown")
	of := func(change func(*x509.Certificate)) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{ca.leaf(change)}} //nolint:gosec // These are to be bad.
	}
	chained := ca.leaf(nil)
	for more := unknown.leaf(nil).Certificate[0]; len(chained.Certificate) < 2000; {
		chained.Certificate = append(chained.Certificate, more)
	}
	leaf := ca.leaf(nil)
	through := &authority{t: t, cert: leaf.Leaf, key: leaf.PrivateKey.(*ecdsa.PrivateKey)}
	middle := through.leaf(nil)
	middle.Certificate = append(middle.Certificate, leaf.Certificate[0])
	old := of(nil)
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS10 //nolint:gosec // It is to be bad.
	older := of(nil)
	older.MinVersion, older.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 //nolint:gosec // It is to be bad.
	out := map[string]*TLSServer{
		"expired": serveTLS(t, ca, of(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })),
		"not yet valid": serveTLS(t, ca, of(func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = time.Now().Add(24*time.Hour), time.Now().Add(48*time.Hour)
		})),
		"of another host":         serveTLS(t, ca, of(func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"else.example.com"} })),
		"with a name alone":       serveTLS(t, ca, of(func(c *x509.Certificate) { c.Subject.CommonName, c.IPAddresses, c.DNSNames = "127.0.0.1", nil, nil })),
		"for clients":             serveTLS(t, ca, of(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} })),
		"of an unknown authority": serveTLS(t, ca, &tls.Config{Certificates: []tls.Certificate{unknown.leaf(nil)}}),            //nolint:gosec // It is to be bad.
		"of itself":               serveTLS(t, ca, &tls.Config{Certificates: []tls.Certificate{(&authority{t: t}).leaf(nil)}}), //nolint:gosec // It is to be bad.
		"of another server":       serveTLS(t, ca, &tls.Config{Certificates: []tls.Certificate{middle}}),                       //nolint:gosec // It is to be bad.
		"with a huge chain":       serveTLS(t, ca, &tls.Config{Certificates: []tls.Certificate{chained}}),                      //nolint:gosec // It is to be bad.
		"TLS 1.0":                 serveTLS(t, ca, old),
		"TLS 1.1":                 serveTLS(t, ca, older),
	}
	plain := &TLSServer{CAFile: ca.file}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { plain.hear(r) }))
	t.Cleanup(server.Close)
	plain.URL = "https" + server.URL[len("http"):]
	out["no TLS"] = plain
	return out
}

// GoodTLS returns a server with a valid certificate.
func GoodTLS(t testing.TB, h http.Handler) *TLSServer {
	t.Helper()
	ca := newAuthority(t, "ours")
	s := &TLSServer{CAFile: ca.file}
	s.start(t, &tls.Config{Certificates: []tls.Certificate{ca.leaf(nil)}, MinVersion: tls.VersionTLS12}, h)
	return s
}

func serveTLS(t testing.TB, ca *authority, conf *tls.Config) *TLSServer {
	t.Helper()
	s := &TLSServer{CAFile: ca.file}
	s.start(t, conf, http.NotFoundHandler())
	return s
}

func (s *TLSServer) start(t testing.TB, conf *tls.Config, h http.Handler) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.hear(r)
		h.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes are expected here
	server.TLS = conf
	server.StartTLS()
	t.Cleanup(server.Close)
	s.URL = server.URL
}
