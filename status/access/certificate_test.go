package access

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// writeCertificate puts a certificate with a serial number in place of another.
func writeCertificate(t *testing.T, certFile, keyFile string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"weir"}}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: cert}, keyFile: {Type: "PRIVATE KEY", Bytes: secret}} {
		if name == "" {
			continue
		}
		if err := os.WriteFile(name+".new", pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+".new", name); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCertificateIsReplacedWhileRunning(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	log := &strings.Builder{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	if _, err := OpenCertificate(certFile, keyFile, logger); err == nil {
		t.Error("a certificate that is not there is taken")
	}
	writeCertificate(t, certFile, keyFile, 1)
	c, err := OpenCertificate(certFile, keyFile, logger)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{TLSConfig: c.Config(), ReadHeaderTimeout: time.Minute, Handler: http.NotFoundHandler(), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}
	done := make(chan error, 1)
	go func() { done <- server.ServeTLS(l, "", "") }()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	serial := func() int64 {
		t.Helper()
		d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}} //nolint:gosec // the certificate is what is looked at
		conn, err := d.DialContext(context.Background(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		s := conn.(*tls.Conn).ConnectionState()
		if s.Version < tls.VersionTLS12 || s.NegotiatedProtocol != "h2" {
			t.Errorf("version %x, protocol %q", s.Version, s.NegotiatedProtocol)
		}
		return s.PeerCertificates[0].SerialNumber.Int64()
	}
	for _, step := range []struct {
		do   func()
		want int64
	}{
		{func() {}, 1},
		{func() { writeCertificate(t, certFile, keyFile, 2) }, 2},
		{func() { writeCertificate(t, certFile, "", 3) }, 2}, // its key is still to come
		{func() { writeCertificate(t, certFile, keyFile, 4) }, 4},
		{func() { _ = os.Remove(keyFile) }, 4},
		{func() { writeCertificate(t, certFile, keyFile, 5) }, 5},
	} {
		step.do()
		if got := serial(); got != step.want {
			t.Errorf("certificate %d, want %d", got, step.want)
		}
	}
	if !strings.Contains(log.String(), "the previous one stays in use") {
		t.Errorf("log:\n%s", log)
	}
	old := &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10} //nolint:gosec // it must be refused
	if conn, err := tls.Dial("tcp", l.Addr().String(), old); err == nil {
		_ = conn.Close()
		t.Error("TLS 1.1 is taken")
	}
	if !slices.Contains(c.Config().NextProtos, "h2") {
		t.Error("no HTTP/2")
	}
}
