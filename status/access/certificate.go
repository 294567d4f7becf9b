package access

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
)

// Certificate is the TLS certificate of the server. It is read again when one of its files changes. While
// the files do not match each other, the previous certificate stays in use.
type Certificate struct {
	log *slog.Logger

	mu                sync.Mutex
	certFile, keyFile string
	seen              [2]os.FileInfo
	cert              *tls.Certificate
}

// OpenCertificate reads a certificate and its key.
func OpenCertificate(certFile, keyFile string, log *slog.Logger) (*Certificate, error) {
	c := &Certificate{log: log}
	return c, c.Set(certFile, keyFile)
}

// Set switches to a certificate in other files, unless they are invalid.
func (c *Certificate) Set(certFile, keyFile string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen, err := stat(certFile, keyFile)
	if err != nil {
		return fmt.Errorf("read certificate: %w", err)
	}
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return fmt.Errorf("read certificate: %s and %s: %w", certFile, keyFile, err)
	}
	c.certFile, c.keyFile, c.seen, c.cert = certFile, keyFile, seen, &cert
	return nil
}

// Config returns the server configuration: TLS 1.2 and newer, and HTTP/2.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: c.get}
}

// get returns the certificate for a TLS handshake.
func (c *Certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen, err := stat(c.certFile, c.keyFile)
	if err != nil || unchanged(c.seen, seen) {
		return c.cert, nil // a file that is being replaced will soon exist again
	}
	c.seen = seen // do not try the same files again
	cert, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		c.log.Error("the new certificate cannot be used, and the previous one stays in use", "certFile", c.certFile, "keyFile", c.keyFile, "error", err)
		return c.cert, nil
	}
	c.cert = &cert
	c.log.Info("the certificate was read again", "certFile", c.certFile, "until", cert.Leaf.NotAfter)
	return c.cert, nil
}

func stat(certFile, keyFile string) (out [2]os.FileInfo, err error) {
	for i, name := range []string{certFile, keyFile} {
		if out[i], err = os.Stat(name); err != nil {
			return out, err
		}
	}
	return out, nil
}

func unchanged(a, b [2]os.FileInfo) bool {
	for i := range a {
		if !os.SameFile(a[i], b[i]) || a[i].Size() != b[i].Size() || !a[i].ModTime().Equal(b[i].ModTime()) {
			return false
		}
	}
	return true
}
