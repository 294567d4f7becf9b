package sdk

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Clients of a hundred roles hold the authorities of one bundle once, and no client those of
// another.
func TestEqualAuthoritiesAreHeldOnce(t *testing.T) {
	defer authorities.Store(authorities.Swap(nil))
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	with := func(custom bool) *http.Transport {
		pool := x509.NewCertPool()
		if custom {
			pool.AddCert(server.Certificate())
		}
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
		shareAuthorities(tr)
		return tr
	}
	first, second, other := with(true), with(true), with(false)
	if first.TLSClientConfig.RootCAs != second.TLSClientConfig.RootCAs {
		t.Error("one bundle is held twice")
	}
	if other.TLSClientConfig.RootCAs.Equal(first.TLSClientConfig.RootCAs) {
		t.Error("a client trusts the authorities of another")
	}
	none := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	shareAuthorities(none)
	shareAuthorities(&http.Transport{})
	if none.TLSClientConfig.RootCAs != nil {
		t.Error("a client without a bundle no longer trusts those of the system")
	}
}
